"""What a failure of Claude Code becomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

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

_BROKEN = (
    r"connection|ECONN|ENOTFOUND|socket|timed out|truncated|Stream ended|JSON Parse|No data arrived"
)

ROWS: Final = (
    Row(
        ContextTooLong,
        (),
        r"prompt_too_long|prompt is too long|request_too_large",
        "give the step less, or a model with a larger context",
    ),
    Row(ContextTooLong, (413,), "", "give the step less"),
    Row(DeniedError, (), "billing_error|credit balance", "see to the account's billing"),
    Row(
        AuthenticationFailed,
        (),
        "authentication_failed|oauth_org_not_allowed|/login",
        "log in again, `agl doctor` says how, or check ANTHROPIC_API_KEY",
    ),
    Row(NotFoundError, (404,), "", "choose another model"),
    Row(NotFoundError, (), "model_not_found", "choose another model"),
    Row(UsageLimited, (), r"usage_limit|hit your .*limit|spend_limit|usage (limit|threshold)"),
    Row(RateLimited, (429,)),
    Row(Overloaded, (503, 529)),
    Row(Overloaded, (), "overloaded"),
    Row(Transient, (408, 409, 500, 502, 504, 520, 521, 522, 523, 524)),
    Row(DeniedError, (), "refusal", "change what the step asks for"),
    Row(StreamDropped, (0,), _BROKEN),
    Row(Transient, (0,), "server_error|api_retry"),
    Row(UpstreamError),
)
"""The first that fits counts. Kinds, reasons and words as 2.1.332 has them; status 0: none came."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure as the program told it. `kind` is its word for it, `status` that of HTTP or 0,
    `wait_s` the time the far side named."""

    said: str
    kind: str = ""
    status: int = 0
    wait_s: float | None = None


def error_of(failure: Failure) -> AglError:
    """The error of the first row that fits. A used up allowance without a time to wait for stays
    used up until somebody changes something."""
    told = Answered(failure.status, failure.said, failure.kind)
    row = next(row for row in ROWS if row.fits(told))
    said = one_line(failure.said.removeprefix("API Error: ")) or failure.kind or "it failed"
    message = f"Claude Code: {said}{row.advice and '; '}{row.advice}"
    if row.error is UsageLimited and failure.wait_s is None:
        return DeniedError(message)
    if issubclass(row.error, Transient):
        return row.error(message, retry_after_s=failure.wait_s)
    return row.error(message)
