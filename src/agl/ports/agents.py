"""Agents: a task with its tools goes down, activity comes up, an outcome is returned."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from agl.ports.errors import Transient
from agl.ports.ids import Scope
from agl.ports.models import Capability, ModelId, Restriction, Usage
from agl.ports.processes import Marker


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool says back to the model. `is_error`: the call did not do what it was asked.
    `arguments_fit` False: nothing was tried, because the arguments did not fit."""

    text: str
    is_error: bool = False
    arguments_fit: bool = True


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool as an agent sees it. `schema` is the JSON Schema of its arguments, an object.

    `handler` gets the arguments as they came (any JSON value) and answers; it does not raise
    except by cancellation. `reports`: calling it hands in the step's result.
    """

    name: str
    description: str
    schema: Mapping[str, object]
    handler: Callable[[object], Awaitable[ToolAnswer]]
    reports: bool = False


Wait = Callable[[Transient], Awaitable[None]]


async def give_up(error: Transient) -> None:
    """Waits for nothing."""
    raise error


@dataclass(frozen=True, slots=True)
class AgentTask:
    """One attempt of a step.

    `nth`: which of that name in its scope this is, from 1. `attempt`: which try at it, from 1,
    those of dead processes counted. `prompt`: the step's inputs in words.
    `follow_up`: asked when the agent has ended its turn; a text to go on with in the same
    conversation, or None to end. `wait`: called with a failure after which the same conversation
    can go on; it returns when that is to be tried, and raises when it is not.
    """

    scope: Scope
    step: str
    nth: int
    attempt: int
    model: ModelId
    instructions: str
    prompt: str
    tree: Path
    restrictions: frozenset[Restriction]
    tools: tuple[AgentTool, ...]
    marker: Marker
    follow_up: Callable[[], str | None]
    wait: Wait = give_up


@dataclass(frozen=True, slots=True)
class Said:
    """The agent wrote text."""

    text: str


@dataclass(frozen=True, slots=True)
class Acted:
    """One line for a person on what the agent is doing now."""

    activity: str


@dataclass(frozen=True, slots=True)
class Spent:
    """What one more model call used; to be added up."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class Priced:
    """What all that this attempt has spent so far cost, where the vendor tells the price of many
    calls at once; in place of any sum."""

    cost_usd: float


@dataclass(frozen=True, slots=True)
class Equipped:
    """What the agent works with. `program`: name and version, for a person. `sandbox`: what of the
    operating system confines its shell, empty: nothing does. `lack`: why nothing does though a
    restriction asks for it."""

    program: str
    sandbox: str = ""
    lack: str = ""


AgentEvent = Said | Acted | Spent | Priced | Equipped


@dataclass(frozen=True, slots=True)
class AgentOutcome:
    """How an attempt ended when nothing failed. `model` is the one that really answered."""

    text: str
    model: str


class AgentRunner(ABC):
    """Runs agents of one or more providers."""

    @abstractmethod
    def capabilities(self, model: ModelId) -> frozenset[Capability]:
        """What the model's backend can do. Stable while this process lives.

        Raises:
            InputError: no backend here knows the model's provider; the message says what to pass.
        """

    @abstractmethod
    def files(self, model: ModelId) -> tuple[Path, ...]:
        """Local files that are part of what the model is; their content belongs to its identity."""

    @abstractmethod
    async def check_ready(self, model: ModelId) -> str:
        """Refuses a model that could not work now; costs no paid turn. Returns in one line what
        would be used: the program, its version, its sandbox.

        Raises:
            InputError, UpstreamError, DeniedError: with what to type.
        """

    @abstractmethod
    async def run(self, task: AgentTask, emit: Callable[[AgentEvent], None]) -> AgentOutcome:
        """Runs one agent to its end, in `task.tree`. When this returns or raises, also by
        cancellation, the agent is gone; what it left behind carries the task's marker, and the
        engine ends it.

        Raises:
            Transient, ContextTooLong, AuthenticationFailed, DeniedError, UpstreamError.
        """


@dataclass(frozen=True, slots=True)
class Kit:
    """What an agent of AGL's own works with. `sandbox` and `lack` are those of `Equipped`."""

    tools: tuple[AgentTool, ...]
    sandbox: str = ""
    lack: str = ""


class Toolbox(ABC):
    """Makes the tools with which AGL's own agents work in a task's tree."""

    @abstractmethod
    async def check_ready(self) -> str:
        """In words, which sandbox there would be.

        Raises:
            InputError: one is required, and cannot be had.
        """

    @abstractmethod
    def opened(self, task: AgentTask) -> AbstractAsyncContextManager[Kit]:
        """The tools that the task's restrictions allow, to be used as long as this is open.

        Raises:
            InputError, UpstreamError.
        """
