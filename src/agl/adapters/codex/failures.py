"""What a failure of Codex becomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

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
from agl.ports.servers import Answered, Row, one_line

ROWS: Final = (
    Row(
        ContextTooLong,
        (),
        r"contextWindowExceeded|context_length_exceeded|ran out of room in the model.s context",
        "give the step less, or a model with a larger context",
    ),
    Row(ContextTooLong, (413,), "", "give the step less"),
    Row(DeniedError, (402,), "", "see to the account's billing"),
    Row(
        AuthenticationFailed,
        (),
        r"unauthorized|Missing environment variable",
        "log in with `codex login`, or check the key in the environment",
    ),
    Row(
        AuthenticationFailed,
        (401,),
        "",
        "log in with `codex login`, or check the key in the environment",
    ),
    Row(AuthenticationFailed, (403,), "", "this account may not do that; log in with another"),
    Row(NotFoundError, (404,), "", "choose another model"),
    Row(UsageLimited, (), "usageLimitExceeded|hit your usage limit|sessionBudgetExceeded"),
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
    Row(StreamDropped, (), "stream disconnected|responseStream|httpConnectionFailed"),
    Row(Transient, (), "internalServerError"),
    Row(Transient, (408, 409, 500, 502, 504, 520, 521, 522, 523, 524)),
    Row(UpstreamError),
)
"""The first that fits counts. Kinds and words as 0.163.0 has them; status 0: none came."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure as the program told it. `kind` is its word for it, `status` that of HTTP or 0,
    `wait_s` the time the far side named."""

    said: str
    kind: str = ""
    status: int = 0
    wait_s: float | None = None


def failure_of(error: Mapping[str, Any], wait_s: float | None) -> Failure:
    """Reads a turn's error."""
    info = error.get("codexErrorInfo")
    kind, status = (info, 0) if isinstance(info, str) else ("", 0)
    if isinstance(info, dict):
        kind = next(iter(info), "")
        status = (info.get(kind) or {}).get("httpStatusCode") or 0
    return Failure(str(error.get("message", "")), kind, status, wait_s)


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
        wait_s = failure.wait_s if row.error is UsageLimited else None
        return row.error(message, retry_after_s=wait_s)
    return row.error(message)
