"""Language models: a conversation goes down, one answer comes back."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from agl.ports.models import ModelId, Usage

_MAX_RAW = 2_000
_MAX_DEPTH = 100
_NO_OBJECT = "not a JSON object"


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Words."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingBlock:
    """What a model thought, to be sent back as it came. `signature` is the vendor's seal, or what
    the vendor sends in place of a thought that it hides."""

    text: str
    signature: str = ""


@dataclass(frozen=True, slots=True)
class InvalidArguments:
    """Arguments that are no JSON object: how they begin, and what is wrong."""

    raw: str
    problem: str


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call that a model asks for. The arguments are read-only through and through, lists as
    tuples; `plain` makes a copy of one's own. What is not a JSON object becomes InvalidArguments.
    """

    id: str
    name: str
    arguments: Mapping[str, object] | InvalidArguments

    def __post_init__(self) -> None:
        if not isinstance(self.arguments, InvalidArguments):
            object.__setattr__(self, "arguments", _checked(self.arguments))


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of a call."""

    use_id: str
    text: str
    is_error: bool = False


Block = TextBlock | ThinkingBlock | ToolUse | ToolResult


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation. The results of all calls of an answer are one user's turn, in
    the order of the calls."""

    role: Literal["user", "assistant"]
    blocks: tuple[Block, ...]

    @property
    def text(self) -> str:
        return "\n".join(block.text for block in self.blocks if isinstance(block, TextBlock))

    @property
    def calls(self) -> tuple[ToolUse, ...]:
        return tuple(block for block in self.blocks if isinstance(block, ToolUse))


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it. `reports`: calling it hands in the result of the work."""

    name: str
    description: str
    schema: Mapping[str, object]
    reports: bool = False


@dataclass(frozen=True, slots=True)
class Purpose:
    """For which step a model is asked. A scripted model goes by it; vendors look away.

    `namespace` is the scope's path joined with `/`, `nth` which of that name in its scope, from 1,
    `attempt` which try at it, from 1.
    """

    step: str = "agent"
    namespace: str = ""
    nth: int = 1
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class LLMRequest:
    """One call of a model. `messages` never changes; user and assistant take turns in it, and the
    user has the first and the last. `force`: the name of the one tool that is to be called."""

    model: ModelId
    system: str
    messages: Sequence[Message]
    tools: tuple[ToolSpec, ...] = ()
    force: str | None = None
    max_output_tokens: int | None = None
    purpose: Purpose = Purpose()


class Ending(Enum):
    """Why an answer ended. Whether tools are to run is seen from its blocks alone. The values are
    stored text: never renamed."""

    DONE = "done"
    CUT = "cut"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class LLMResponse:
    """A model's answer. `model` is the one that really answered. `CUT`: it was longer than it may
    be; `PAUSED`: the model means to go on once it is told to."""

    blocks: tuple[Block, ...]
    usage: Usage
    ending: Ending
    model: str


class LLM(ABC):
    """Models of one provider."""

    @abstractmethod
    async def generate(self, request: LLMRequest, on_delta: Callable[[str], None]) -> LLMResponse:
        """One whole answer; its text is also handed to `on_delta` in pieces as it comes, which
        never raises. An answer that breaks off raises: no half of one is returned.

        Raises:
            Transient, ContextTooLong, AuthenticationFailed, DeniedError, UpstreamError.
        """

    def files(self, model: ModelId) -> tuple[Path, ...]:
        """Local files that are part of what the model is; their content belongs to its identity."""
        return ()

    async def check_ready(self, model: ModelId) -> None:
        """Refuses a model that could not work now; costs no paid turn.

        Raises:
            InputError, NotFoundError, UpstreamError, DeniedError: with what to type.
        """
        return


def read_arguments(raw: str) -> Mapping[str, object] | InvalidArguments:
    """The arguments of a call from the text that a model wrote: one JSON object (RFC 8259, no name
    twice in one object), or what is wrong with it."""
    try:
        value = strict_json(raw)
    except ValueError as error:
        return InvalidArguments(raw[:_MAX_RAW], f"not JSON: {error}")
    if isinstance(value, dict):
        return value
    return InvalidArguments(raw[:_MAX_RAW], _NO_OBJECT)


def strict_json(text: bytes | str) -> object:
    """JSON as RFC 8259 has it: no NaN, no name twice in one object.

    Raises:
        ValueError: it is none.
    """
    try:
        return json.loads(text, object_pairs_hook=_names_once, parse_constant=_not_json)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def plain(value: object) -> object:
    """A copy of a JSON value in dicts and lists, to be changed at will."""
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, tuple | list):
        return [plain(inner) for inner in value]
    return value


def _names_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    names = [name for name, _ in pairs]
    twice = next(name for name in names if names.count(name) > 1)
    raise ValueError(f"{twice[:40]!r} stands twice in one object")


def _not_json(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")


def _checked(value: object) -> Mapping[str, object] | InvalidArguments:
    try:
        frozen = _frozen(value, 0)
    except ValueError as error:
        return InvalidArguments(_beginning(value), str(error))
    if isinstance(frozen, MappingProxyType):
        return frozen
    return InvalidArguments(_beginning(value), _NO_OBJECT)


def _frozen(value: object, depth: int) -> object:
    if value is None or isinstance(value, str):
        return value
    # Python neither reads nor writes more than 4,300 digits (sys.int_info).
    if isinstance(value, int) and value.bit_length() < 14_000:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if depth > _MAX_DEPTH:
        raise ValueError(f"nested deeper than {_MAX_DEPTH}")
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise ValueError("a name that is no text")
        return MappingProxyType({k: _frozen(inner, depth + 1) for k, inner in value.items()})
    if isinstance(value, list | tuple):
        return tuple([_frozen(inner, depth + 1) for inner in value])
    raise ValueError(f"a {type(value).__name__} that is not JSON")


def _beginning(value: object) -> str:
    try:
        return json.dumps(value, default=repr)[:_MAX_RAW]
    except (ValueError, RecursionError, TypeError):
        return f"a {type(value).__name__}"
