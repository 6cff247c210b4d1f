"""What a failure of a server that speaks chat completions becomes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

import httpx2
from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError

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
from agl.ports.servers import Answered, Row, error_of, one_line, span_s, wait_named_s

ROWS = (
    Row(
        ContextTooLong,
        (400, 413, 422, 500),
        r"context_length_exceeded|exceed_context|(maximum|available|the|model's) context"
        r" (length|size|window)|prompt is too long|too many (input )?tokens",
        "give the step less, or a model with a larger context",
    ),
    Row(ContextTooLong, (413,), "", "give the step less"),
    Row(
        InputError,
        (400, 404, 405, 422, 500, 501),
        r"support (for )?tool|tools? .*(not |un)support|--jinja|--enable-auto-tool-choice",
        "choose a model, or start the server, so that it can call tools",
    ),
    Row(DeniedError, (400, 403), r"content.?(policy|filter|management)|flagged|moderation"),
    Row(DeniedError, (402,), "", "see to the account's billing"),
    Row(
        UsageLimited,
        (403, 429),
        r"quota|usage.limit|(daily|monthly|weekly|key) limit|credits|per.day",
        "raise the limit, or wait until it is over",
    ),
    Row(AuthenticationFailed, (401, 403), "", "check the key, and what it may be used for"),
    Row(
        NotFoundError,
        (400, 404, 422),
        r"model.*(not (be )?found|does not exist|not loaded)|model_not_found",
        "check the model's name",
    ),
    Row(NotFoundError, (404,), "", "check the base URL, which mostly ends in /v1, and the model"),
    Row(RateLimited, (429,)),
    Row(Overloaded, (503, 529)),
    Row(Transient, (408, 409, 425, 500, 502, 504, 520, 521, 522, 523, 524)),
    Row(UpstreamError),
)
"""The first that fits counts. The words are those of OpenAI, Ollama, llama.cpp, vLLM, LM Studio and
OpenRouter in their own sources and references."""

_STATUSES = {
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "context_length_exceeded": 400,
    "exceed_context_size_error": 400,
    "invalid_request_error": 400,
    "authentication_error": 401,
    "overloaded_error": 503,
    "unavailable_error": 503,
}
"""Of failures within a stream that name no status."""

_AGAIN = re.compile(r"(?:again|retry) (?:in|after) ([0-9][0-9.hms]*[hms])")


def translated(error: Exception, who: str, now: datetime, idle_s: float) -> AglError:
    """The error of AGL for one of the SDK, or of what it lets through from below."""
    match error:
        case APIConnectionError(__cause__=httpx2.ConnectError() | httpx2.ConnectTimeout() as cause):
            return Transient(f"cannot reach {who}: {one_line(str(cause)) or 'no connection'}")
        case APITimeoutError():
            return StreamDropped(f"{who} has been silent for {idle_s:g} s")
        case APIConnectionError(__cause__=cause):
            said = one_line(str(cause or error)) or type(cause).__name__
            return StreamDropped(f"{who} broke off: {said}")
        case APIError():
            return error_of(ROWS, _answered(error, now), who)
        case ValueError():
            return StreamDropped(f"{who} sent what cannot be read: {one_line(str(error))}")
    return UpstreamError(f"{who} could not be asked: {one_line(str(error))}")


def _answered(error: APIError, now: datetime) -> Answered:
    said = _said(error)
    code = f"{error.code or ''} {error.type or ''}"
    headers = error.response.headers if isinstance(error, APIStatusError) else {}
    wait_s = wait_named_s(headers, now)
    if wait_s is None:
        wait_s = _reset_s(error.body, now)
    if wait_s is None and (found := _AGAIN.search(said)):
        wait_s = span_s(found[1])
    return Answered(_status(error), said, code, wait_s)


def _status(error: APIError) -> int:
    if isinstance(error, APIStatusError):
        return error.status_code
    if error.code and error.code.isdecimal() and 400 <= int(error.code) < 600:
        return int(error.code)
    return _STATUSES.get(error.code or "", _STATUSES.get(error.type or "", 500))


def _said(error: APIError) -> str:
    """Some servers send an object, some a text, some neither."""
    if isinstance(error.body, Mapping) and isinstance(error.body.get("message"), str):
        return str(error.body["message"])
    return error.body if isinstance(error.body, str) and error.body else error.message


def _reset_s(body: object, now: datetime) -> float | None:
    """OpenRouter names the end of a limit in the body, in milliseconds since 1970."""
    for name in ("metadata", "headers", "X-RateLimit-Reset"):
        body = body.get(name) if isinstance(body, Mapping) else None
    if not isinstance(body, str | int) or not str(body).isdecimal():
        return None
    return max(0.0, int(body) / 1000 - now.timestamp())
