"""What an agent tells while it works: records, which nobody can change the run by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agl.loop.trajectory import Messages
from agl.ports.agents import ToolAnswer
from agl.ports.llm import Ending, LLMResponse, ToolUse
from agl.ports.models import Usage


@dataclass(frozen=True, slots=True)
class Approved:
    """The gate lets the call through."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The gate does not; the model is told why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: the last words, the whole conversation, what it took."""

    text: str
    messages: Messages
    usage: Usage
    turns: int
    model: str
    ending: Ending


@dataclass(frozen=True, slots=True)
class RunStarted:
    """`turns`: how many a checkpoint already held."""

    prompt: str
    turns: int


@dataclass(frozen=True, slots=True)
class ModelCalled:
    """The model is asked for its answer number `turn`, from 1."""

    turn: int


@dataclass(frozen=True, slots=True)
class TextArrived:
    """A piece of the answer's text, while it is being written."""

    text: str


@dataclass(frozen=True, slots=True)
class ModelAnswered:
    """The answer is whole."""

    response: LLMResponse


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """The model asks for this call."""

    call: ToolUse


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """The gate is asked."""

    call: ToolUse


@dataclass(frozen=True, slots=True)
class ApprovalAnswered:
    """The gate answered."""

    call: ToolUse
    verdict: Approved | Refused


@dataclass(frozen=True, slots=True)
class ToolRaised:
    """A tool failed with an exception; the model gets it as an error."""

    call: ToolUse
    error: str


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """What a call came to. All of a turn are told together, in the order of the calls."""

    call: ToolUse
    answer: ToolAnswer


@dataclass(frozen=True, slots=True)
class ModelTold:
    """The model had ended and was told to go on."""

    text: str


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The model asked for nothing more."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class RunFailed:
    """The run ends with this error, which is raised after it."""

    error: str


@dataclass(frozen=True, slots=True)
class RunStopped:
    """The run was cancelled."""


Event = (
    RunStarted
    | ModelCalled
    | TextArrived
    | ModelAnswered
    | ToolCalled
    | ApprovalAsked
    | ApprovalAnswered
    | ToolRaised
    | ToolReturned
    | ModelTold
    | RunFinished
    | RunFailed
    | RunStopped
)

Emit = Callable[[Event], None]
