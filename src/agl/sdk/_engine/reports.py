"""The tools of one attempt, as the agent gets them: the report, and the author's own."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from agl import schema
from agl.ports.agents import AgentTool, ToolAnswer
from agl.ports.errors import InputError, NeedsAnswer
from agl.ports.ids import Scope
from agl.sdk._engine import fingerprints
from agl.sdk.tools import ReportingTool, Tool


@dataclass(frozen=True, slots=True)
class AttemptAtWork:
    """The attempt in whose tool something is asked: the scope whose turn it holds, the step's
    fingerprint with its ordinal, and the attempt's own id."""

    scope: Scope
    step: str
    attempt: str


attempt_at_work: ContextVar[AttemptAtWork | None] = ContextVar("attempt_at_work", default=None)


def refuse_in_tool(scope: Scope, what: str) -> None:
    """Refuses what would wait for ever: for the turn of the step in whose tool it is called.

    Raises:
        InputError
    """
    at_work = attempt_at_work.get()
    if at_work is not None and at_work.scope == scope:
        raise InputError(
            f"{what} is called in a tool of a step that has the tree; call it after that step"
        )


_NOBODY = (
    "Nobody is present to answer. Decide yourself what is most sensible, go on, and say in your"
    " result what you assumed."
)


class Report:
    """Takes the first valid report of an attempt and turns every other one down."""

    def __init__(self, tool: ReportingTool[Any] | None) -> None:
        self._tool = tool
        self._nudged = False
        self.value: object = None
        self.is_in = False
        self.problems: tuple[str, ...] = ()

    @property
    def is_missing(self) -> bool:
        return self._tool is not None and not self.is_in

    def follow_up(self) -> str | None:
        """What to say to an agent that ended its turn: one nudge, if its report is missing."""
        if self._tool is None or self.is_in or self._nudged:
            return None
        self._nudged = True
        return (
            f"You ended without calling the tool {self._tool.name!r}. Your result counts only once"
            f" it was handed in there: call {self._tool.name!r} now."
        )

    async def take(self, arguments: object) -> ToolAnswer:
        assert self._tool is not None
        if self.is_in:
            return ToolAnswer("A report was taken already; the first one stands.", is_error=True)
        try:
            payload = schema.validate(self._tool.payload, arguments)
            value = schema.to_json(self._tool.payload, payload)
            fingerprints.canonical(value)
        except schema.Invalid as error:
            return self._turned_down(error.problems)
        except InputError as error:
            return self._turned_down((str(error),))
        self.value, self.is_in = value, True
        return ToolAnswer("Taken. End your turn.")

    def _turned_down(self, problems: tuple[str, ...]) -> ToolAnswer:
        self.problems = problems
        return _refused(problems)


def agent_tools(
    tools: tuple[Tool | ReportingTool[Any], ...],
    report: Report,
    at_work: AttemptAtWork,
    warn: Callable[[str], None],
) -> tuple[AgentTool, ...]:
    """The role's tools for one attempt. A tool that fails says so to the agent and the person."""

    def made(tool: Tool | ReportingTool[Any]) -> AgentTool:
        if isinstance(tool, ReportingTool):
            return AgentTool(tool.name, tool.description, tool.schema, report.take, reports=True)

        async def call(arguments: object) -> ToolAnswer:
            try:
                payload: object = schema.validate(tool.payload, arguments)
            except schema.Invalid as error:
                return _refused(error.problems)
            token = attempt_at_work.set(at_work)
            try:
                return ToolAnswer(await tool.handler(payload))
            except NeedsAnswer:
                warn("nobody answered; the agent decides for itself")
                return ToolAnswer(_NOBODY)
            except Exception as error:  # noqa: BLE001 - the author's handler may raise anything
                warn(f"tool {tool.name!r} failed: {type(error).__name__}: {error}")
                return ToolAnswer(f"The tool failed: {error}", is_error=True)
            finally:
                attempt_at_work.reset(token)

        return AgentTool(tool.name, tool.description, tool.schema, call)

    return tuple(made(tool) for tool in tools)


def _refused(problems: tuple[str, ...]) -> ToolAnswer:
    listed = "\n".join(f"- {problem}" for problem in problems)
    said = f"Not taken. Correct this and call again:\n{listed}"
    return ToolAnswer(said, is_error=True, arguments_fit=False)
