"""Small agents in memory for the tests of the loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from agl.adapters.memory.llm import MemoryLLM, answer
from agl.loop import Agent, Event, Outcome
from agl.loop.events import ToolReturned
from agl.ports.agents import AgentTask, AgentTool, Kit, ToolAnswer, Toolbox
from agl.ports.llm import LLMResponse, ToolResult, ToolUse


class Bench:
    """A tool that notes its calls. What it does is given, else it answers `n done`."""

    def __init__(self, act: Callable[[Any], Awaitable[str]] | None = None) -> None:
        self.calls: list[object] = []
        self.at_work = 0
        self.most_at_work = 0
        self._act = act
        self.tool = AgentTool("work", "Works.", {"type": "object"}, self._handle)

    async def _handle(self, arguments: object) -> ToolAnswer:
        self.calls.append(arguments)
        self.at_work += 1
        self.most_at_work = max(self.at_work, self.most_at_work)
        try:
            await asyncio.sleep(0)
            return ToolAnswer("done" if self._act is None else await self._act(arguments))
        finally:
            self.at_work -= 1


class Box(Toolbox):
    """Holds what is given, for every task."""

    def __init__(self, *tools: AgentTool, sandbox: str = "") -> None:
        self._kit = Kit(tools, sandbox)

    async def check_ready(self) -> str:
        return self._kit.sandbox or "no sandbox"

    @asynccontextmanager
    async def opened(self, task: AgentTask) -> AsyncIterator[Kit]:
        yield self._kit


def use(number: int, **arguments: object) -> ToolUse:
    return ToolUse(f"c{number}", "work", arguments)


def agent_of(
    answers: Sequence[LLMResponse | Exception], *tools: AgentTool, **more: Any
) -> tuple[Agent, MemoryLLM]:
    llm = MemoryLLM(answers)
    return Agent(llm, model="memory:x", tools=tools, **more), llm


async def events_of(agent: Agent, prompt: str = "go") -> list[Event]:
    events: list[Event] = []
    await agent.run(prompt, events.append)
    return events


def results(outcome: Outcome, message: int = 2) -> list[ToolResult]:
    return [block for block in outcome.messages[message].blocks if isinstance(block, ToolResult)]


def returned(events: Sequence[Event]) -> list[tuple[str, str]]:
    return [(e.call.id, e.answer.text) for e in events if isinstance(e, ToolReturned)]


__all__ = ["Bench", "agent_of", "answer", "events_of", "results", "returned", "use"]
