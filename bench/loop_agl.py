"""`python loop_agl.py WORK TURNS CHECKPOINT`: the scripted work on AGL's loop; prints a number."""

from __future__ import annotations

import asyncio
import sys
import time
import tracemalloc
from collections.abc import Callable

from agl.loop import Agent, Checkpoint, Limits, Outcome, tool
from agl.ports.llm import LLM, Ending, LLMRequest, LLMResponse, TextBlock, ToolUse
from agl.ports.models import Usage


class Adding(LLM):
    """Asks for one sum each turn, `turns` times."""

    def __init__(self, turns: int) -> None:
        self._turns = turns

    async def generate(self, request: LLMRequest, on_delta: Callable[[str], None]) -> LLMResponse:
        turn = len(request.messages) // 2
        text = TextBlock("I add.")
        if turn == self._turns:
            return LLMResponse((text,), Usage(10, 5), Ending.DONE, "x")
        call = ToolUse(f"call_{turn}", "add", {"a": turn, "b": 1})
        return LLMResponse((text, call), Usage(10, 5), Ending.DONE, "x")


class Waiting(LLM):
    """Asks for `calls` calls at once."""

    def __init__(self, calls: int) -> None:
        self._calls = calls

    async def generate(self, request: LLMRequest, on_delta: Callable[[str], None]) -> LLMResponse:
        if len(request.messages) > 1:
            return LLMResponse((TextBlock("Ready."),), Usage(), Ending.DONE, "x")
        calls = [ToolUse(f"call_{number}", "wait", {}) for number in range(self._calls)]
        return LLMResponse(tuple(calls), Usage(), Ending.DONE, "x")


@tool
async def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@tool
def wait() -> str:
    """Waits for 100 ms."""
    time.sleep(0.1)
    return "waited"


async def worked(llm: LLM, checkpoint: str) -> Outcome:
    kept = Checkpoint(checkpoint) if checkpoint else None
    limits = Limits(turns=None)
    agent = Agent(llm, model="bench:x", tools=[add, wait], limits=limits, checkpoint=kept)
    return await agent.run("go")


def measured(work: str, turns: int, checkpoint: str) -> float:
    if work == "memory":
        tracemalloc.start()
    clock = time.perf_counter if work == "tools" else time.process_time
    before, started = tracemalloc.get_traced_memory()[0], clock()
    outcome = asyncio.run(worked(Adding(turns) if work != "tools" else Waiting(turns), checkpoint))
    passed = clock() - started
    kept = tracemalloc.get_traced_memory()[0] - before
    assert len(outcome.messages) == (2 * turns + 2 if work != "tools" else 4)
    return kept if work == "memory" else passed


sys.stdout.write(f"{measured(sys.argv[1], int(sys.argv[2]), sys.argv[3])}\n")
