"""The roles of the measured workflows, and an agent that does what each says and no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agl.ports.agents import AgentEvent, AgentOutcome, AgentRunner, AgentTask
from agl.ports.models import Capability, ModelId
from agl.sdk import Restriction, Role, reporting_tool, role

MODEL = ModelId("bench", "agent")


@dataclass(frozen=True)
class Note:
    text: str


@role(model=MODEL)
def looker() -> Role[None]:
    return Role(name="look", instructions="Look.", restrictions=[Restriction.NO_FILE_WRITES])


@role(model=MODEL)
def reporter() -> Role[Note]:
    return Role(
        name="report",
        instructions="Say what you saw.",
        restrictions=[Restriction.NO_FILE_WRITES],
        tools=[reporting_tool("hand_in", "Hands it in.", Note)],
    )


@role(model=MODEL)
def writer() -> Role[None]:
    return Role(name="write", instructions="Write a file.")


class BenchAgent(AgentRunner):
    """Takes no time: writes one file in a step called `write`, reports a text of `note_chars`
    characters where it can. With `by_namespace`, children write files of other names."""

    def __init__(self, note_chars: int = 100, *, by_namespace: bool = False) -> None:
        self._note = "x" * note_chars
        self._by_namespace = by_namespace

    def capabilities(self, model: ModelId) -> frozenset[Capability]:
        return frozenset(Capability)

    def files(self, model: ModelId) -> tuple[Path, ...]:
        return ()

    async def check_ready(self, model: ModelId) -> str:
        return "a fake"

    async def run(self, task: AgentTask, emit: Callable[[AgentEvent], None]) -> AgentOutcome:
        if task.step == "write":
            name = "-".join(task.scope.path) if self._by_namespace else ""
            (task.tree / f"written{name}{task.nth}.txt").write_text("new\n")
        for tool in task.tools:
            await tool.handler({"text": self._note})
        return AgentOutcome("done", str(task.model))
