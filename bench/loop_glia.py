"""`python loop_glia.py WORK TURNS CHECKPOINT`: the same work on glia, with a Python that has it."""

# mypy: ignore-errors

from __future__ import annotations

import asyncio
import sys
import time
import tracemalloc
from typing import Any

from glia import Agent, LLMResponse, Message, Text, ToolUse, Usage, tool
from glia.checkpoint import checkpointer
from glia.trajectory import Trajectory


class Adding:
    def __init__(self, turns: int) -> None:
        self._turns = turns

    async def generate(self, request: Any) -> Any:
        turn = len(request.messages) // 2
        text = Text("I add.")
        if turn == self._turns:
            return LLMResponse(Message("assistant", [text]), "end_turn", Usage(10, 5))
        call = ToolUse(f"call_{turn}", "add", {"a": turn, "b": 1})
        return LLMResponse(Message("assistant", [text, call]), "tool_use", Usage(10, 5))


class Waiting:
    def __init__(self, calls: int) -> None:
        self._calls = calls

    async def generate(self, request: Any) -> Any:
        if len(request.messages) > 1:
            return LLMResponse(Message("assistant", [Text("Ready.")]), "end_turn")
        calls = [ToolUse(f"call_{number}", "wait", {}) for number in range(self._calls)]
        return LLMResponse(Message("assistant", calls), "tool_use")


@tool
async def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@tool
def wait() -> str:
    """Waits for 100 ms."""
    time.sleep(0.1)
    return "waited"


async def worked(llm: Any, checkpoint: str) -> Any:
    trajectory = Trajectory.new()
    hooks = [checkpointer(trajectory, checkpoint)] if checkpoint else []
    agent = Agent(llm, tools=[add, wait], hooks=hooks, max_steps=10**9)
    return await agent.run("go", trajectory=trajectory)


def measured(work: str, turns: int, checkpoint: str) -> float:
    if work == "memory":
        tracemalloc.start()
    clock = time.perf_counter if work == "tools" else time.process_time
    before, started = tracemalloc.get_traced_memory()[0], clock()
    result = asyncio.run(worked(Adding(turns) if work != "tools" else Waiting(turns), checkpoint))
    passed = clock() - started
    kept = tracemalloc.get_traced_memory()[0] - before
    assert len(result.trajectory.messages) == (2 * turns + 2 if work != "tools" else 4)
    return kept if work == "memory" else passed


sys.stdout.write(f"{measured(sys.argv[1], int(sys.argv[2]), sys.argv[3])}\n")
