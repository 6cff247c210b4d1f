"""Each row of the table, through the SDK, from a server on loopback."""

import socket
import time
from collections.abc import Mapping
from typing import Any

import pytest

from agl.adapters.anthropic import AnthropicLLM
from agl.adapters.memory.clock import ManualClock
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
from agl.ports.llm import LLMRequest, Message, TextBlock
from agl.ports.models import ModelId
from servers.model_server import ModelServer, Session

REQUEST = LLMRequest(ModelId("anthropic", "claude-x"), "", (Message("user", (TextBlock("go"),)),))


def llm_at(session: Session, **more: Any) -> AnthropicLLM:
    return AnthropicLLM(ManualClock(), key="k", base_url=session.url, **more)


async def failed(llm: AnthropicLLM) -> AglError:
    with pytest.raises(AglError) as raised:
        await llm.generate(REQUEST, lambda text: None)
    assert "\n" not in str(raised.value)
    assert str(raised.value).startswith(
        ("anthropic (", "cannot reach", "the answer", "the conversation", "'claude-x'")
    )
    return raised.value


AFTER = {"retry_after_s": 7}


@pytest.mark.parametrize(
    ("error", "expected", "wait_s"),
    [
        ({"kind": "auth"}, AuthenticationFailed, None),
        ({"kind": "denied"}, AuthenticationFailed, None),
        ({"kind": "billing"}, DeniedError, None),
        (
            {"kind": "bad_request", "message": "Your credit balance is too low to access"},
            DeniedError,
            None,
        ),
        ({"kind": "bad_request"}, UpstreamError, None),
        ({"kind": "bad_request", "status": 422}, UpstreamError, None),
        ({"kind": "no_tools"}, InputError, None),
        ({"kind": "not_found"}, NotFoundError, None),
        ({"kind": "too_long"}, ContextTooLong, None),
        (
            {
                "kind": "too_long",
                "message": "input length and `max_tokens` exceed context limit: 199000 + 32000",
            },
            ContextTooLong,
            None,
        ),
        ({"kind": "too_large"}, ContextTooLong, None),
        ({"kind": "rate_limited"}, RateLimited, None),
        ({"kind": "rate_limited", **AFTER}, RateLimited, 7),
        ({"kind": "rate_limited", "headers": {"retry-after-ms": "1500"}}, RateLimited, 1.5),
        (
            {"kind": "rate_limited", "headers": {"retry-after": "Tue, 01 Jan 2030 00:01:00 GMT"}},
            RateLimited,
            60,
        ),
        ({"kind": "usage_limit", **AFTER}, UsageLimited, 7),
        (
            {"kind": "usage_limit", "headers": {"anthropic-ratelimit-unified-reset": "1893459600"}},
            UsageLimited,
            3600,
        ),
        ({"kind": "usage_limit"}, DeniedError, None),
        ({"kind": "overloaded"}, Overloaded, None),
        ({"kind": "overloaded", "status": 503, **AFTER}, Overloaded, 7),
        ({"kind": "failed"}, Transient, None),
        ({"kind": "failed", "status": 502}, Transient, None),
        ({"kind": "failed", "status": 418}, UpstreamError, None),
        ({"kind": "said"}, Overloaded, None),
        ({"kind": "said", "what": "rate_limited"}, RateLimited, None),
        ({"kind": "said", "what": "failed"}, Transient, None),
        ({"kind": "said", "what": "auth"}, AuthenticationFailed, None),
        ({"kind": "dropped"}, StreamDropped, None),
        ({"kind": "reset"}, StreamDropped, None),
        ({"kind": "broken"}, StreamDropped, None),
        ({"kind": "cut"}, StreamDropped, None),
        ({"kind": "garbage"}, StreamDropped, None),
        ({"kind": "hung_up"}, StreamDropped, None),
        ({"kind": "html"}, UpstreamError, None),
    ],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else None,
)
async def test_a_failure_becomes_its_row(
    server: ModelServer, error: Mapping[str, Any], expected: type[AglError], wait_s: float | None
) -> None:
    session = server.session([{"text": "some words", "error": error}])
    raised = await failed(llm_at(session))
    assert type(raised) is expected
    assert getattr(raised, "retry_after_s", None) == wait_s
    assert len(session.asked) == 1


@pytest.mark.parametrize("kind", ["silent", "stalled", "stuck"])
async def test_a_silent_server_is_given_up_in_time(server: ModelServer, kind: str) -> None:
    session = server.session([{"text": "x", "error": {"kind": kind}}])
    raised = await failed(llm_at(session, idle_s=0.3))
    assert type(raised) is StreamDropped
    assert "silent for 0.3 s" in str(raised)


@pytest.mark.parametrize(("quirks", "expected"), [((), StreamDropped), (("comments",), Overloaded)])
async def test_comments_keep_a_server_alive(
    server: ModelServer, quirks: tuple[str, ...], expected: type[AglError]
) -> None:
    turn = {"text": "x", "gap_s": 2.5, "error": {"kind": "said", "after": 1}}
    session = server.session([turn], quirks=quirks)
    assert type(await failed(llm_at(session, idle_s=2))) is expected


async def test_comments_do_not_keep_it_alive_for_ever(server: ModelServer) -> None:
    session = server.session([{"text": "x", "gap_s": 1}], quirks=["comments"])
    assert "said nothing for 0.2 s" in str(await failed(llm_at(session, mute_s=0.2)))


async def test_a_slow_server_that_goes_on_is_not_given_up(server: ModelServer) -> None:
    """Slower than the limit in all, and never silent for as long."""
    session = server.session([{"text": "x" * 15, "gap_s": 0.22, "piece": 1}])
    llm = llm_at(session, idle_s=3, mute_s=3)
    begun = time.monotonic()
    assert (await llm.generate(REQUEST, lambda text: None)).blocks
    assert time.monotonic() - begun > 3


async def test_nobody_there_is_said_with_the_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    llm = AnthropicLLM(ManualClock(), base_url=f"http://127.0.0.1:{port}")
    raised = await failed(llm)
    assert type(raised) is Transient
    assert f"http://127.0.0.1:{port}" in str(raised)


async def test_a_refusal_is_final(server: ModelServer) -> None:
    raised = await failed(llm_at(server.session([{"text": "I", "ending": "refused"}])))
    assert type(raised) is DeniedError


async def test_an_answer_that_filled_the_model_is_too_long(server: ModelServer) -> None:
    raised = await failed(llm_at(server.session([{"text": "I", "ending": "overfull"}])))
    assert type(raised) is ContextTooLong


async def test_what_came_instead_of_a_stream_is_shown(server: ModelServer) -> None:
    said = str(await failed(llm_at(server.session([{"error": {"kind": "html"}}]))))
    assert "text/html instead of a stream" in said
    assert "Welcome" in said
