"""What a failure of Codex becomes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from agl.adapters.codex.reading import number, part
from agl.ports.errors import (
    AglError,
    AuthenticationFailed,
    ContextTooLong,
    DeniedError,
    NotFoundError,
    Overloaded,
    RateLimited,
    StreamDropped,
    Transient,
    UpstreamError,
    UsageLimited,
)
from agl.ports.servers import Answered, Row, one_line, span_s

_USED_UP: Final = "usageLimitExceeded"

ROWS: Final = (
    Row(
        ContextTooLong,
        (),
        r"contextWindowExceeded|context_length_exceeded|ran out of room in the model.s context",
        "give the step less, or a model with a larger context",
    ),
    Row(ContextTooLong, (), "Input exceeds the maximum length", "give the step less"),
    Row(ContextTooLong, (413,), "", "give the step less"),
    Row(DeniedError, (402,), "", "see to the account's billing"),
    Row(
        AuthenticationFailed,
        (),
        r"unauthorized|Missing environment variable",
        "log in again, `agl doctor` says how, or check the key in the environment",
    ),
    Row(
        AuthenticationFailed,
        (401,),
        "",
        "log in again, `agl doctor` says how, or check the key in the environment",
    ),
    Row(AuthenticationFailed, (403,), "", "this account may not do that; log in with another"),
    Row(NotFoundError, (404,), "", "choose another model"),
    Row(NotFoundError, (), "The model .* does not exist", "choose another model"),
    Row(UsageLimited, (), f"{_USED_UP}|hit your usage limit"),
    Row(RateLimited, (), "rateLimitExceeded"),
    Row(RateLimited, (429,)),
    Row(Overloaded, (), "serverOverloaded"),
    Row(Overloaded, (503, 529)),
    Row(
        DeniedError,
        (),
        "cyberPolicy|misalignmentPolicyViolation|content_filter",
        "change what the step asks for",
    ),
    Row(Transient, (), "internalServerError"),
    Row(Transient, (408, 409, 500, 502, 504, 520, 521, 522, 523, 524)),
    Row(StreamDropped, (), "stream disconnected|responseStream|httpConnectionFailed"),
    Row(UpstreamError),
)
"""The first that fits counts. Kinds and words as 0.163.0 and 0.171.0 have them; status 0: none
came."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure as the program told it. `kind` is its word for it, `status` that of HTTP or 0,
    `wait_s` the time the far side named."""

    said: str
    kind: str = ""
    status: int = 0
    wait_s: float | None = None


def failure_of(error: Mapping[str, Any], now: datetime, resets_at: float | None) -> Failure:
    """Reads a turn's error. `resets_at`: when an allowance that is used up begins anew."""
    said = str(error.get("additionalDetails") or error.get("message", ""))
    info = error.get("codexErrorInfo")
    kind, status = (info, 0) if isinstance(info, str) else ("", 0)
    if isinstance(info, dict):
        kind = next(iter(info), "")
        status = number(part(info, kind), "httpStatusCode")
    wait_s = wait_said_s(said, now)
    if kind == _USED_UP and resets_at is not None:
        wait_s = max(0.0, resets_at - now.timestamp())
    return Failure(said, kind, status, wait_s)


def wait_said_s(said: str, now: datetime) -> float | None:
    """The time to wait, out of a sentence: `try again in 20s`, `Try again at 3:05 PM` of today or
    tomorrow, `Try again at Dec 3rd, 2026 3:05 PM`; in local time (0.163.0)."""
    span = re.search(r"try again in ([\d.]+m?s)", said, re.IGNORECASE)
    if span is not None:
        return span_s(span[1])
    named = re.search(
        r"try again at (?:(\w{3}) (\d+)\w\w, (\d{4}) )?(\d+:\d\d [AP]M)", said, re.IGNORECASE
    )
    if named is None:
        return None
    local = now.astimezone()
    month, day, year, clock = named.groups()
    at = datetime.strptime(clock.upper(), "%I:%M %p").time()
    date = local.date()
    if month is not None:
        date = datetime.strptime(f"{month} {day} {year}", "%b %d %Y").date()
    until = datetime.combine(date, at).astimezone()
    if until <= local and month is None:
        until += timedelta(days=1)
    return max(0.0, (until - local).total_seconds())


def error_of(failure: Failure) -> AglError:
    """The error of the first row that fits. A used up allowance without a time to wait for stays
    used up until somebody changes something."""
    told = Answered(failure.status, failure.said, failure.kind)
    row = next(row for row in ROWS if row.fits(told))
    said = one_line(failure.said) or failure.kind or "it failed"
    message = f"Codex: {said}{row.advice and '; '}{row.advice}"
    if row.error is UsageLimited and failure.wait_s is None:
        return DeniedError(message)
    if issubclass(row.error, Transient):
        return row.error(message, retry_after_s=failure.wait_s)
    return row.error(message)
