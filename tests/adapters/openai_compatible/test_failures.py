"""Each row of the table, through the SDK, from a server on loopback."""

import socket
import time
from collections.abc import Mapping
from typing import Any

import pytest

from agl.adapters.memory.clock import ManualClock
from agl.adapters.openai_compatible import OpenAICompatibleLLM
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

MODEL = ModelId("openai_compatible", "qwen")
REQUEST = LLMRequest(MODEL, "", (Message("user", (TextBlock("go"),)),))


def llm_at(session: Session, **more: Any) -> OpenAICompatibleLLM:
    return OpenAICompatibleLLM(ManualClock(), key="k", base_url=session.v1, **more)


async def failed(llm: OpenAICompatibleLLM) -> AglError:
    with pytest.raises(AglError) as raised:
        await llm.generate(REQUEST, lambda text: None)
    said = str(raised.value)
    assert "\n" not in said
    assert said.startswith(("openai_compatible (", "cannot reach", "the answer", "the server's"))
    return raised.value


AFTER = {"retry_after_s": 7}


def said(kind: str, message: str, **more: Any) -> Mapping[str, Any]:
    return {"kind": kind, "message": message, **more}


@pytest.mark.parametrize(
    ("error", "expected", "wait_s"),
    [
        ({"kind": "auth"}, AuthenticationFailed, None),
        ({"kind": "denied"}, AuthenticationFailed, None),
        (
            said("denied", "Your chosen model requires moderation; it was flagged"),
            DeniedError,
            None,
        ),
        (said("bad_request", "", code="content_filter"), DeniedError, None),
        ({"kind": "billing"}, DeniedError, None),
        ({"kind": "bad_request"}, UpstreamError, None),
        ({"kind": "bad_request", "status": 422}, UpstreamError, None),
        ({"kind": "no_tools"}, InputError, None),
        (said("failed", "tools param requires --jinja flag"), InputError, None),
        (
            said(
                "bad_request",
                '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser',
            ),
            InputError,
            None,
        ),
        (said("not_found", "No endpoints found that support tool use"), InputError, None),
        ({"kind": "not_found"}, NotFoundError, None),
        (said("not_found", "page not found", code=""), NotFoundError, None),
        (said("bad_request", "model 'x' not found, try pulling it first"), NotFoundError, None),
        ({"kind": "too_long"}, ContextTooLong, None),
        ({"kind": "too_large"}, ContextTooLong, None),
        (
            said("bad_request", "the request exceeds the available context size (4096)"),
            ContextTooLong,
            None,
        ),
        ({"kind": "rate_limited"}, RateLimited, None),
        ({"kind": "rate_limited", **AFTER}, RateLimited, 7),
        (
            said("rate_limited", "Limit 30000, used 29000. Please try again in 1m2.5s. Visit"),
            RateLimited,
            62.5,
        ),
        ({"kind": "usage_limit", **AFTER}, UsageLimited, 7),
        ({"kind": "usage_limit"}, DeniedError, None),
        (said("denied", "Key limit exceeded (daily limit)", **AFTER), UsageLimited, 7),
        ({"kind": "overloaded"}, Overloaded, None),
        ({"kind": "overloaded", "status": 529, **AFTER}, Overloaded, 7),
        ({"kind": "failed"}, Transient, None),
        ({"kind": "failed", "status": 502}, Transient, None),
        ({"kind": "failed", "status": 418}, UpstreamError, None),
        ({"kind": "said"}, Overloaded, None),
        ({"kind": "said", "what": "rate_limited"}, RateLimited, None),
        ({"kind": "said", "what": "too_long"}, ContextTooLong, None),
        ({"kind": "said", "what": "failed"}, Transient, None),
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


async def test_openrouter_names_the_time_in_the_body(server: ModelServer) -> None:
    metadata = {"headers": {"X-RateLimit-Reset": "1893456060000"}}
    error = {"kind": "rate_limited", "more": {"metadata": metadata}}
    raised = await failed(llm_at(server.session([{"error": error}])))
    assert isinstance(raised, RateLimited)
    assert raised.retry_after_s == 60


async def test_an_error_that_is_a_text_is_told(server: ModelServer) -> None:
    error = {"kind": "failed", "body": {"error": "llama runner process has terminated"}}
    assert "runner process" in str(await failed(llm_at(server.session([{"error": error}]))))


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
    llm = OpenAICompatibleLLM(ManualClock(), base_url=f"http://127.0.0.1:{port}/v1")
    raised = await failed(llm)
    assert type(raised) is Transient
    assert f"http://127.0.0.1:{port}/v1" in str(raised)


async def test_an_answer_that_was_kept_back_is_final(server: ModelServer) -> None:
    raised = await failed(llm_at(server.session([{"text": "I", "ending": "refused"}])))
    assert type(raised) is DeniedError


async def test_an_answer_that_ended_in_an_error_is_not_whole(server: ModelServer) -> None:
    raised = await failed(llm_at(server.session([{"text": "I", "ending": "failed"}])))
    assert type(raised) is StreamDropped


async def test_what_came_instead_of_a_stream_is_shown(server: ModelServer) -> None:
    said = str(await failed(llm_at(server.session([{"error": {"kind": "html"}}]))))
    assert "text/html instead of a stream" in said
    assert "Welcome" in said
