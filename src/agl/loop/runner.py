"""The loop as an `AgentRunner`, with tools that work in a tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from agl.loop import events
from agl.loop.agent import Agent
from agl.ports.agents import (
    Acted,
    AgentEvent,
    AgentOutcome,
    AgentRunner,
    AgentTask,
    Equipped,
    Said,
    Spent,
    Toolbox,
    Wait,
)
from agl.ports.errors import Transient
from agl.ports.llm import LLM, LLMRequest, LLMResponse, Message, Purpose, ToolUse
from agl.ports.models import Capability, ModelId

_BEGIN = "Begin."
_MAX_LINE = 120
_PROGRAM = "AGL's own loop"


class LoopRunner(AgentRunner):
    """Runs each task as an Agent with the toolbox's tools and the task's own. What a restriction
    forbids is in no toolbox, and a call of a tool that was not offered is refused. An `emit` that
    raises, as a full disk makes the ledger's, ends the run before the next tool."""

    def __init__(self, llm: LLM, toolbox: Toolbox) -> None:
        self._llm = llm
        self._toolbox = toolbox

    def capabilities(self, model: ModelId) -> frozenset[Capability]:
        return frozenset(Capability)

    def files(self, model: ModelId) -> tuple[Path, ...]:
        return self._llm.files(model)

    async def check_ready(self, model: ModelId) -> str:
        await self._llm.check_ready(model)
        return f"{_PROGRAM}, {await self._toolbox.check_ready()}"

    async def run(self, task: AgentTask, emit: Callable[[AgentEvent], None]) -> AgentOutcome:
        trouble: list[Exception] = []

        def tell(event: events.Event) -> None:
            try:
                _tell(event, emit)
            except Exception as error:  # noqa: BLE001 - raised where the run can end
                trouble.append(error)

        async def gate(call: ToolUse) -> events.Approved:
            if trouble:
                raise trouble[0]
            return events.Approved()

        async with self._toolbox.opened(task) as kit:
            emit(Equipped(_PROGRAM, kit.sandbox, kit.lack))
            agent = Agent(
                _Patient(self._llm, task.wait),
                model=task.model,
                system=task.instructions,
                tools=(*kit.tools, *task.tools),
                gate=gate,
                follow_up=task.follow_up,
                purpose=Purpose(task.step, "/".join(task.scope.path), task.nth, task.attempt),
            )
            outcome = await agent.run(task.prompt or _BEGIN, tell)
        if trouble:
            raise trouble[0]
        return AgentOutcome(outcome.text, outcome.model)


class _Patient(LLM):
    """Asks again, as often as may be waited. Of an answer that broke off nothing is kept."""

    def __init__(self, llm: LLM, wait: Wait) -> None:
        self._llm = llm
        self._wait = wait

    async def generate(self, request: LLMRequest, on_delta: Callable[[str], None]) -> LLMResponse:
        tries = request.purpose.attempt
        while True:
            try:
                return await self._llm.generate(request, on_delta)
            except Transient as error:
                await self._wait(error)
                tries += 1
                request = replace(request, purpose=replace(request.purpose, attempt=tries))


def _tell(event: events.Event, emit: Callable[[AgentEvent], None]) -> None:
    match event:
        case events.ModelAnswered(response):
            _tell_answer(response, emit)
        case events.ToolCalled(call):
            emit(Acted(_line_about(call)))
        case events.ToolReturned(call, answer) if answer.is_error:
            emit(Acted(_short(f"{_line_about(call)} failed: {answer.text}")))


def _tell_answer(response: LLMResponse, emit: Callable[[AgentEvent], None]) -> None:
    if not response.usage.is_nothing:
        emit(Spent(response.usage))
    if text := Message("assistant", response.blocks).text:
        emit(Said(text))


def _line_about(call: ToolUse) -> str:
    arguments = call.arguments if isinstance(call.arguments, Mapping) else {}
    about = arguments.get("command") or arguments.get("path") or arguments.get("pattern")
    return _short(f"{call.name} {about}" if isinstance(about, str) else call.name)


def _short(text: str) -> str:
    # A lone surrogate, which JSON can spell, cannot be printed.
    line = " ".join(text[: 4 * _MAX_LINE].encode(errors="replace").decode().split())
    return line if len(line) <= _MAX_LINE else line[: _MAX_LINE - 1] + "…"
