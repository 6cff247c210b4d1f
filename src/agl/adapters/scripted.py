"""A model that says what a JSON file says, offline: model `scripted:PATH`.

    {"format": 1, "steps": {"fix": [TURN, …], "fix#2": […], "fix@left": […], "fix@left#2": […]}}

A key is a step's name, with `@namespace` (a nested child's namespaces joined with `/`) for one
scope and `#n` for the n-th of that name in its scope. The most exact one wins: `name@ns#n`, then
`name@ns`, then `name#n`, then `name`. A step with no key says so, hands in one report through each
of its reporting tools, made from the tool's schema, and ends.

A TURN is an object of any of these, met in this order:

- `delay_s`: seconds to wait.
- `error`: `{"kind": "overloaded" | "rate_limited" | "auth" | "too_long" | "dropped",
  "retry_after_s": 1}`: the attempt fails here. It is consumed: the next attempt, also
  of another process, plays the script from its start and passes by.
- `usage`: `input_tokens`, `output_tokens`, `cached_tokens`, `cost_usd`; no price means unknown.
- `text`: what the model says.
- `calls`: `{"tool": …, "arguments": {…}}` or, for what a model may send by mistake,
  `"raw_arguments": "…"`; optionally with an `id`. The calls of one turn run at the same time.

A turn with text and no calls ends the agent's turn: it may then be told to go on. The script is
played to its end in any case. A turn with neither is met together with the next one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from agl.ports.clock import Clock
from agl.ports.errors import (
    AglError,
    AuthenticationFailed,
    ContextTooLong,
    InputError,
    NotFoundError,
    Overloaded,
    RateLimited,
    StreamDropped,
)
from agl.ports.llm import (
    LLM,
    Block,
    Ending,
    InvalidArguments,
    LLMRequest,
    LLMResponse,
    TextBlock,
    ToolUse,
    read_arguments,
    strict_json,
)
from agl.ports.models import ModelId, Usage
from agl.ports.reasons import reason
from agl.ports.scripts import sample_of, script_keys

FORMAT = 1
_KEY = re.compile(r"[^@#]+(@[^@#]+)?(#[1-9][0-9]*)?")
_MOST_KEYS = 5
_KINDS = ("overloaded", "rate_limited", "auth", "too_long", "dropped")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool."""

    tool: str
    arguments: Mapping[str, object] | InvalidArguments
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """How a vendor would have failed."""

    kind: str
    retry_after_s: float | None = None

    def error(self) -> AglError:
        said = f"the script fails with {self.kind!r} here"
        match self.kind:
            case "overloaded":
                return Overloaded(said, retry_after_s=self.retry_after_s)
            case "rate_limited":
                return RateLimited(said, retry_after_s=self.retry_after_s)
            case "dropped":
                return StreamDropped(said, retry_after_s=self.retry_after_s)
            case "auth":
                return AuthenticationFailed(said)
            case _:
                return ContextTooLong(said)


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a script."""

    delay_s: float = 0
    failure: Failure | None = None
    usage: Usage | None = None
    text: str | None = None
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """The turns that make one answer: silent ones, then one that speaks. `failures_before` are
    those of the parts before it."""

    turns: tuple[Turn, ...]
    failures_before: int


Script = Mapping[str, tuple[Part, ...]]


class ScriptedLLM(LLM):
    """Plays scripts. It remembers nothing: which turn it is, the conversation tells."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def files(self, model: ModelId) -> tuple[Path, ...]:
        return (Path(model.name),)

    async def check_ready(self, model: ModelId) -> None:
        read_script(Path(model.name))

    async def generate(self, request: LLMRequest, on_delta: Callable[[str], None]) -> LLMResponse:
        script = read_script(Path(request.model.name))
        purpose = request.purpose
        keys = script_keys(purpose.step, purpose.namespace, purpose.nth)
        key = next((key for key in keys if key in script), None)
        parts = _report_once(request, script) if key is None else script[key]
        number = len(request.messages) // 2
        if number >= len(parts):
            return LLMResponse((), Usage(), Ending.DONE, request.model.name)
        blocks: list[Block] = []
        usage = Usage()
        passed_by = purpose.attempt - 1 - parts[number].failures_before
        for turn in parts[number].turns:
            if turn.delay_s:
                await self._clock.sleep(turn.delay_s)
            if turn.failure is not None:
                if passed_by <= 0:
                    raise turn.failure.error()
                passed_by -= 1
            usage += turn.usage or Usage()
            if turn.text is not None:
                on_delta(turn.text)
                blocks.append(TextBlock(turn.text))
            for place, call in enumerate(turn.calls):
                use_id = call.id or f"call_{number}_{place}"
                blocks.append(ToolUse(use_id, call.tool, call.arguments))
        ending = Ending.DONE if number == len(parts) - 1 else Ending.PAUSED
        return LLMResponse(tuple(blocks), usage, ending, request.model.name)


def _report_once(request: LLMRequest, script: Script) -> tuple[Part, ...]:
    samples = [(tool.name, sample_of(tool.schema)) for tool in request.tools if tool.reports]
    calls = tuple(Call(name, sample) for name, sample in samples if isinstance(sample, Mapping))
    keys = ", ".join(map(repr, tuple(script)[:_MOST_KEYS]))
    text = f"the script has no part for {request.purpose.step!r}"
    return _parts((Turn(text=f"{text}; it has {keys}" if keys else text, calls=calls),))


def _parts(turns: Sequence[Turn]) -> tuple[Part, ...]:
    parts: list[Part] = []
    failures, begin = 0, 0
    for end, turn in enumerate(turns, start=1):
        if turn.text is None and not turn.calls and end < len(turns):
            continue
        part = tuple(turns[begin:end])
        parts.append(Part(part, failures))
        failures += sum(turn.failure is not None for turn in part)
        begin = end
    return tuple(parts)


def read_script(path: Path) -> Script:
    """The script in the file; one that did not change is not read again.

    Raises:
        NotFoundError, InputError: naming the file, the place in it, and what belongs there.
    """
    try:
        found = path.stat()
        return _cached(path, found.st_mtime_ns, found.st_size, found.st_ino)
    except FileNotFoundError:
        raise NotFoundError(f"no script {str(path)!r}; pass scripted:PATH of a JSON file") from None
    except OSError as error:
        raise InputError(f"script {str(path)!r} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"script {str(path)!r}: {reason(error)}") from None


@lru_cache(maxsize=8)
def _cached(path: Path, *seen: int) -> Script:
    return _read_script(_Place(strict_json(path.read_bytes())))


@dataclass(frozen=True, slots=True)
class _Place:
    """A value in the document and the path to it, for messages."""

    value: object
    path: str = ""

    def wrong(self, expected: str) -> ValueError:
        found = json.dumps(self.value)
        found = found if len(found) <= 40 else found[:39] + "…"
        return ValueError(f"{self.path or 'the document'}: expected {expected}, found {found}")

    def _inner(self, name: str, value: object) -> _Place:
        return _Place(value, f"{self.path}.{name}" if self.path else name)

    def fields(self, *allowed: str) -> dict[str, _Place]:
        """The object's fields; with `allowed`, no other may be there."""
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        for name in self.value:
            if allowed and name not in allowed:
                raise ValueError(
                    f"{self.path or 'the document'}: unknown {name!r};"
                    f" expected {', '.join(allowed)}"
                )
        return {name: self._inner(name, value) for name, value in self.value.items()}

    def items(self) -> list[_Place]:
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        return [_Place(item, f"{self.path}[{index}]") for index, item in enumerate(self.value)]

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.wrong("text")
        return self.value

    def amount(self) -> float:
        if not isinstance(self.value, int | float) or isinstance(self.value, bool):
            raise self.wrong("a number from 0")
        if not 0 <= self.value <= 1e9:
            raise self.wrong("a number from 0")
        return self.value

    def count(self) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool) or self.value < 0:
            raise self.wrong("a whole number from 0")
        return self.value


def _read_script(document: _Place) -> Script:
    fields = document.fields()
    written = fields.get("format")
    if written is None or type(written.value) is not int:
        raise ValueError(f'the document: expected "format": {FORMAT}')
    if written.value > FORMAT:
        raise ValueError(
            f"format {written.value} is newer than this AGL reads ({FORMAT}); upgrade AGL"
        )
    if written.value != FORMAT:
        raise written.wrong(str(FORMAT))
    fields = document.fields("format", "steps")
    if "steps" not in fields:
        raise ValueError('the document: expected "steps"')
    steps = fields["steps"].fields()
    for key, place in steps.items():
        if not _KEY.fullmatch(key):
            raise ValueError(f"{place.path}: expected a key like name, name@ns, name#2, name@ns#2")
    return {key: _parts([_read_turn(turn) for turn in at.items()]) for key, at in steps.items()}


def _read_turn(place: _Place) -> Turn:
    fields = place.fields("delay_s", "error", "usage", "text", "calls")
    return Turn(
        delay_s=fields["delay_s"].amount() if "delay_s" in fields else 0,
        failure=_read_failure(fields["error"]) if "error" in fields else None,
        usage=_read_usage(fields["usage"]) if "usage" in fields else None,
        text=fields["text"].text() if "text" in fields else None,
        calls=tuple(map(_read_call, fields["calls"].items())) if "calls" in fields else (),
    )


def _read_failure(place: _Place) -> Failure:
    fields = place.fields("kind", "retry_after_s")
    kind = fields.get("kind", _Place(None, f"{place.path}.kind"))
    if kind.value not in _KINDS:
        raise kind.wrong(f"one of {', '.join(_KINDS)}")
    after = fields.get("retry_after_s")
    return Failure(kind.text(), None if after is None else after.amount())


def _read_usage(place: _Place) -> Usage:
    fields = place.fields("input_tokens", "output_tokens", "cached_tokens", "cost_usd")
    cost = fields.pop("cost_usd", None)
    counts = {name: field.count() for name, field in fields.items()}
    return Usage(**counts, cost_usd=None if cost is None else cost.amount())


def _read_call(place: _Place) -> Call:
    fields = place.fields("tool", "arguments", "raw_arguments", "id")
    if "tool" not in fields:
        raise ValueError(f'{place.path}: expected a "tool"')
    if "arguments" in fields and "raw_arguments" in fields:
        raise ValueError(f"{place.path}: expected arguments or raw_arguments, found both")
    arguments: Mapping[str, object] | InvalidArguments = {}
    if "arguments" in fields:
        given = fields["arguments"]
        arguments = {name: inner.value for name, inner in given.fields().items()}
    elif "raw_arguments" in fields:
        arguments = read_arguments(fields["raw_arguments"].text())
    return Call(fields["tool"].text(), arguments, fields["id"].text() if "id" in fields else None)
