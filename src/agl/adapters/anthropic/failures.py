"""What a failure of the Messages API becomes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import httpx2
from anthropic import APIConnectionError, APIStatusError, APITimeoutError

from agl.ports.errors import (
    AglError,
    AuthenticationFailed,
    ContextTooLong,
    DeniedError,
    InputError,
    NotFoundError,
    Overloaded,
    RateLimited,
    StreamDropped,
    Transient,
    UpstreamError,
    UsageLimited,
)
from agl.ports.servers import Answered, Row, error_of, one_line, wait_named_s

ROWS = (
    Row(
        ContextTooLong,
        (400,),
        r"prompt is too long|exceeds? .*(context|maximum)|context (window|length)",
        "give the step less, or a model with a larger context",
    ),
    Row(ContextTooLong, (413,), "", "give the step less"),
    Row(DeniedError, (402,), "", "see to the account's billing"),
    Row(DeniedError, (400, 403), "credit balance", "see to the account's billing"),
    Row(AuthenticationFailed, (401, 403), "", "check the key, and what it may be used for"),
    Row(NotFoundError, (404,), "", "check the model's name, and the base URL"),
    Row(
        UsageLimited,
        (400, 429),
        r"spend_limit|usage (limit|threshold)",
        "raise the limit, or wait until it is over",
    ),
    Row(RateLimited, (429,)),
    Row(Overloaded, (503, 529)),
    Row(Transient, (408, 409, 500, 502, 504, 520, 521, 522, 523, 524)),
    Row(InputError, (400,), r"tools? .*not support|not support.* tools?", "choose another model"),
    Row(UpstreamError),
)
"""The first that fits counts. Statuses and types: Anthropic's API reference, "Errors"; codes: the
SDK's `types/shared`, 2.14."""

_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def translated(error: Exception, who: str, now: datetime, idle_s: float) -> AglError:
    """The error of AGL for one of the SDK, or of what it lets through from below."""
    match error:
        case APIStatusError():
            return error_of(ROWS, _answered(error, now), who)
        case APIConnectionError(__cause__=httpx2.ConnectError() | httpx2.ConnectTimeout() as cause):
            return Transient(f"cannot reach {who}: {one_line(str(cause)) or 'no connection'}")
        case APITimeoutError() | httpx2.ReadTimeout():
            return StreamDropped(f"{who} has been silent for {idle_s:g} s")
        case APIConnectionError(__cause__=cause):
            return StreamDropped(f"{who} broke off: {one_line(str(cause or error))}")
        case httpx2.TransportError():
            return StreamDropped(f"{who} broke off: {one_line(str(error)) or type(error).__name__}")
        case ValueError():
            return StreamDropped(f"{who} sent what cannot be read: {one_line(str(error))}")
    return UpstreamError(f"{who} could not be asked: {one_line(str(error))}")


def _answered(error: APIStatusError, now: datetime) -> Answered:
    """A failure within a stream has the status 200 and a type."""
    status = error.status_code
    if status < 400:
        status = _STATUSES.get(error.type or "", 500)
    headers = error.response.headers
    wait_s = wait_named_s(headers, now)
    if wait_s is None and status == 429:
        wait_s = _reset_s(headers, now)
    said = error.api_message or error.message
    return Answered(status, said, f"{error.type or ''} {error.error_code or ''}", wait_s)


def _reset_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """The end of a plan's allowance, in seconds since 1970, as Claude Code reads it."""
    text = headers.get("anthropic-ratelimit-unified-reset", "")
    return max(0.0, int(text) - now.timestamp()) if text.isdecimal() else None
