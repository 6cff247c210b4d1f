"""What a model server plays: turns, written as the scripted agent's are, with more to go wrong.

A TURN is an object of any of these:

- `delay_s`: seconds before the first byte; `gap_s`: seconds before each event of the stream.
- `thinking`: text, or `{"text": …, "signature": …}`, or `{"hidden": …}` for a thought kept back.
- `text`, `calls`, `usage`: as for `scripted:PATH`. A call may have `input` (free text, where a wire
  knows that) instead of arguments, and `more`: fields of its item on the wire.
- `ending`: "done", "cut" (too long), "paused", "refused", and what a wire has besides.
- `model`: which one says it answers. `piece`: how many characters an event holds.
- `error`: `{"kind": KIND, "status": 400, "message": …, "retry_after_s": 1, "code": …, "after": 2}`;
  of an HTTP answer also `headers`, `more` (fields of the error on the wire) and `body` (all of it).

KIND is an HTTP answer (`STATUSES`), or a way for the stream to go wrong, after `after` events
(by default half of the turn's): `dropped` (closed in the middle), `reset` (TCP reset), `broken`
(closed within an event), `cut` (ended properly, too early), `stuck` (nothing more comes), `garbage`
(no JSON), `said` (an error event of the kind `what`); or before it begins: `silent` (no headers
ever), `stalled` (headers, then nothing), `hung_up` (closed without headers), `html` (a page).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

STATUSES = {
    "bad_request": 400,
    "too_long": 400,
    "auth": 401,
    "billing": 402,
    "denied": 403,
    "not_found": 404,
    "too_large": 413,
    "rate_limited": 429,
    "usage_limit": 429,
    "failed": 500,
    "no_tools": 400,
    "overloaded": 503,
}
BEFORE = ("silent", "stalled", "hung_up", "html")
WITHIN = ("dropped", "reset", "broken", "cut", "stuck", "garbage", "said")


@dataclass(frozen=True)
class Call:
    """A call of a tool; `arguments` is the text on the wire."""

    id: str
    tool: str
    arguments: str
    input: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """How a turn goes wrong."""

    kind: str
    status: int | None = None
    message: str | None = None
    retry_after_s: float | None = None
    code: str | None = None
    after: int | None = None
    what: str = "overloaded"
    headers: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None


@dataclass(frozen=True)
class Turn:
    """One answer of a model, or its failure."""

    delay_s: float = 0
    gap_s: float = 0
    thinking: str | None = None
    signature: str = ""
    hidden: str | None = None
    text: str | None = None
    calls: tuple[Call, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None
    ending: str = "done"
    model: str | None = None
    piece: int = 12
    failure: Failure | None = None

    def pieces(self, text: str) -> list[str]:
        return [text[at : at + self.piece] for at in range(0, len(text), self.piece)]


_KNOWN = {
    *("delay_s", "gap_s", "thinking", "text", "calls", "usage", "ending", "model", "piece"),
    "error",
}


def turn_of(written: Mapping[str, Any], number: int) -> Turn:
    """Reads a turn, the `number`-th of its script."""
    if unknown := written.keys() - _KNOWN:
        raise ValueError(f"a turn has unknown {sorted(unknown)}; known are {sorted(_KNOWN)}")
    thinking = written.get("thinking")
    thought = {"text": thinking} if isinstance(thinking, str) else dict(thinking or {})
    usage = written.get("usage", {})
    failure = written.get("error")
    if failure and failure["kind"] not in (*STATUSES, *BEFORE, *WITHIN):
        raise ValueError(f"unknown kind of error {failure['kind']!r}")
    return Turn(
        delay_s=written.get("delay_s", 0),
        gap_s=written.get("gap_s", 0),
        thinking=thought.get("text"),
        signature=thought.get("signature", ""),
        hidden=thought.get("hidden"),
        text=written.get("text"),
        calls=tuple(
            _call(call, f"call_{number}_{place}")
            for place, call in enumerate(written.get("calls", ()))
        ),
        input_tokens=usage.get("input_tokens", 0),
        output_tokens=usage.get("output_tokens", 0),
        cached_tokens=usage.get("cached_tokens", 0),
        cost_usd=usage.get("cost_usd"),
        ending=written.get("ending", "done"),
        model=written.get("model"),
        piece=written.get("piece", 12),
        failure=Failure(**failure) if failure else None,
    )


def _call(written: Mapping[str, Any], own_id: str) -> Call:
    raw = written.get("raw_arguments")
    return Call(
        id=written.get("id", own_id),
        tool=written["tool"],
        arguments=json.dumps(written.get("arguments", {})) if raw is None else raw,
        input=written.get("input"),
        more=written.get("more", {}),
    )
