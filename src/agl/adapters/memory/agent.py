"""An agent whose every move a test writes down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from agl.ports.agents import (
    Acted,
    AgentEvent,
    AgentOutcome,
    AgentRunner,
    AgentTask,
    Equipped,
    Said,
    Spent,
)
from agl.ports.errors import InternalError
from agl.ports.models import Capability, ModelId
from agl.ports.scripts import (
    NO_SCRIPT_TEXT,
    AgentFunction,
    Play,
    Plays,
    sample_of,
    script_keys,
)


class MemoryAgent(AgentRunner):
    """Plays steps by their keys, which are those of a script (`agl.ports.scripts`); one function
    may play them all. Between the plays of a sequence the task's follow-up is asked. A step with no
    key hands in one report made from its schema. `ran` holds the keys of the steps it was given,
    `tasks` the tasks themselves."""

    def __init__(self, plays: Plays | None = None) -> None:
        self._plays: Plays = {} if plays is None else plays
        self.ran: list[str] = []
        self.tasks: list[AgentTask] = []

    def capabilities(self, model: ModelId) -> frozenset[Capability]:
        return frozenset(Capability)

    def files(self, model: ModelId) -> tuple[Path, ...]:
        return ()

    async def check_ready(self, model: ModelId) -> str:
        return "a fake"

    async def run(self, task: AgentTask, emit: Callable[[AgentEvent], None]) -> AgentOutcome:
        keys = script_keys(task.step, "/".join(task.scope.path), task.nth)
        self.ran.append(keys[0])
        self.tasks.append(task)
        emit(Equipped("a fake"))
        play = self._play_for(keys)
        if not callable(play):
            said = await self._turns(task, (play,) if isinstance(play, Play) else play, emit)
            return AgentOutcome(said, task.model.name)
        said = await play(task, emit) or ""
        if said:
            emit(Said(said))
        task.follow_up()
        return AgentOutcome(said, task.model.name)

    def _play_for(self, keys: tuple[str, ...]) -> Play | Sequence[Play] | AgentFunction:
        if callable(self._plays):
            return self._plays
        return next((self._plays[key] for key in keys if key in self._plays), _report_once)

    async def _turns(
        self, task: AgentTask, plays: Sequence[Play], emit: Callable[[AgentEvent], None]
    ) -> str:
        said, passed_by = "", task.attempt - 1
        for play in plays:
            for line in play.activity:
                emit(Acted(line))
            if play.usage is not None:
                emit(Spent(play.usage))
            for name, content in play.files.items():
                _write(task.tree / name, content)
            for name, arguments in play.calls:
                await _call(task, name, arguments)
            if play.fails is not None:
                if passed_by == 0:
                    raise play.fails
                passed_by -= 1
            if play.report is not None:
                await _report(task, play.report)
            if play.says:
                said = play.says
                emit(Said(said))
            task.follow_up()
        return said


async def _report_once(task: AgentTask, emit: Callable[[AgentEvent], None]) -> str:
    for tool in task.tools:
        if tool.reports:
            await tool.handler(sample_of(tool.schema))
    return NO_SCRIPT_TEXT


async def _report(task: AgentTask, payload: object) -> None:
    names = [tool.name for tool in task.tools if tool.reports]
    if len(names) != 1:
        raise InternalError(
            f"step {task.step!r} has {len(names)} reporting tools; name the one meant in `calls`"
        )
    await _call(task, names[0], payload)


async def _call(task: AgentTask, name: str, arguments: object) -> None:
    tool = next((tool for tool in task.tools if tool.name == name), None)
    if tool is None:
        raise InternalError(f"step {task.step!r} has no tool {name!r}; see its play")
    await tool.handler(arguments)


def _write(path: Path, content: str | bytes | None) -> None:
    if content is None:
        path.unlink()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
