"""The table of failures, row by row, each told by the real program."""

from __future__ import annotations

import time
from typing import Any

import pytest

from adapters.claude_code.bench import Bench, call
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

pytestmark = pytest.mark.vendor

LIMIT_S = 50.0
"""Less than a program may take to start, or be silent."""

Row = tuple[dict[str, Any], type[AglError], str, float | None]

ROWS: dict[str, Row] = {
    "authentication": ({"kind": "auth"}, AuthenticationFailed, "agl doctor", None),
    "forbidden": ({"kind": "denied"}, AuthenticationFailed, "may not use", None),
    "billing": ({"kind": "billing"}, DeniedError, "billing", None),
    "bad request": ({"kind": "bad_request"}, UpstreamError, "at least one", None),
    "model not found": ({"kind": "not_found"}, NotFoundError, "another model", None),
    "context too long": ({"kind": "too_long"}, ContextTooLong, "larger context", None),
    "too large": ({"kind": "too_large"}, ContextTooLong, "give the step less", None),
    "rate limit": ({"kind": "rate_limited"}, RateLimited, "429", None),
    "rate limit with a time": ({"kind": "rate_limited", "retry_after_s": 8}, RateLimited, "", 8),
    "overloaded": ({"kind": "overloaded", "status": 529}, Overloaded, "529", None),
    "overloaded with a time": ({"kind": "overloaded", "retry_after_s": 8}, Overloaded, "", 8),
    "overloaded in the stream": ({"kind": "said"}, Overloaded, "Overloaded", None),
    "server error": ({"kind": "failed"}, Transient, "500", None),
    "gateway error": ({"kind": "failed", "status": 502}, Transient, "502", None),
    "connection refused": ({"kind": "hung_up"}, StreamDropped, "connection", None),
    "dropped": ({"kind": "dropped"}, StreamDropped, "connection", None),
    "reset": ({"kind": "reset"}, StreamDropped, "connection", None),
    "cut short": ({"kind": "cut"}, StreamDropped, "", None),
    "garbage": ({"kind": "garbage"}, StreamDropped, "JSON", None),
    "a web page": ({"kind": "html"}, StreamDropped, "Stream ended", None),
}


async def failure(bench: Bench, *turns: dict[str, Any], **more: Any) -> AglError:
    began = time.monotonic()
    with pytest.raises(AglError) as raised:
        await bench.ran(bench.script(*turns), **more)
    assert time.monotonic() - began < LIMIT_S
    return raised.value


@pytest.mark.parametrize("row", ROWS)
async def test_row(bench: Bench, row: str) -> None:
    told, kind, words, wait_s = ROWS[row]
    error = await failure(bench, *[{"text": "half of it", "error": told}] * 3)
    assert type(error) is kind
    assert words.lower() in str(error).lower()
    if isinstance(error, Transient):
        # The program adds up to a quarter of the time.
        assert error.retry_after_s == (wait_s and pytest.approx(wait_s * 1.125, rel=0.12))


async def test_nobody_there(bench: Bench) -> None:
    url = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
    assert type(await failure(bench, environ=url)) is StreamDropped


async def test_a_plan_that_is_used_up_says_until_when(bench: Bench) -> None:
    headers = {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": str(int(time.time()) + 3600),
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
    }
    told = {"error": {"kind": "rate_limited", "headers": headers}}
    plan = {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-scripted", "ANTHROPIC_API_KEY": ""}
    error = await failure(bench, told, environ=plan)
    assert isinstance(error, UsageLimited)
    assert "5-hour limit" in str(error)
    assert error.retry_after_s == pytest.approx(3600, abs=10)


async def test_a_limit_without_an_end_is_a_refusal(bench: Bench) -> None:
    error = await failure(bench, *[{"error": {"kind": "usage_limit"}}] * 3)
    assert type(error) is DeniedError


async def test_a_refusal(bench: Bench) -> None:
    refused = {"text": "no", "ending": "refused"}
    error = await failure(bench, *[refused] * 3)
    assert type(error) is DeniedError
    assert "can't help with this" in str(error)


async def test_an_answer_that_is_always_cut_off(bench: Bench) -> None:
    error = await failure(bench, *[{"text": "a", "ending": "cut"}] * 8)
    assert type(error) is UpstreamError
    assert "token maximum" in str(error)


@pytest.mark.parametrize("kind", ["silent", "stalled", "stuck"])
async def test_a_silent_server(bench: Bench, kind: str) -> None:
    error = await failure(bench, {"text": "half of it", "error": {"kind": kind}}, idle_s=1.0)
    assert type(error) is StreamDropped
    assert "silent for 1 s" in str(error)


async def test_a_tool_may_take_longer_than_a_model_may_be_silent(bench: Bench) -> None:
    session = bench.script(call("shell", command="sleep 5; echo slept > a.txt"))
    await bench.ran(session, idle_s=4.0)
    assert (bench.tree / "a.txt").exists()


async def test_work_without_an_end_is_ended(bench: Bench) -> None:
    error = await failure(bench, call("shell", command="sleep 60"), wall_s=2.0)
    assert type(error) is UpstreamError
    assert "after 2 s" in str(error)


class Patience:
    """Waits for anything, up to so many times."""

    def __init__(self, most: int) -> None:
        self.waited: list[Transient] = []
        self._most = most

    async def wait(self, error: Transient) -> None:
        self.waited.append(error)
        if len(self.waited) > self._most:
            raise error


async def test_after_a_failure_the_same_conversation_goes_on(bench: Bench) -> None:
    use = {"input_tokens": 10, "output_tokens": 2}
    session = bench.script(
        {**call("shell", command="echo one >> a.txt"), "usage": use},
        {"error": {"kind": "overloaded", "status": 529}},
        {**call("report_findings", findings=["x"]), "usage": use},
        {"text": "done", "usage": use},
    )
    patience = Patience(1)
    outcome = await bench.ran(session, task={"wait": patience.wait})
    assert [type(error) for error in patience.waited] == [Overloaded]
    assert (bench.tree / "a.txt").read_text() == "one\n"
    assert bench.desk.report == {"findings": ["x"]}
    assert outcome.text == "done"
    assert "echo one" in session.asked[-1].text
    assert (bench.usage.input_tokens, bench.usage.output_tokens) == (30, 6)
    assert bench.usage.cost_usd is not None


async def test_a_conversation_that_never_began_begins_anew(bench: Bench) -> None:
    session = bench.script({"error": {"kind": "overloaded", "status": 529}}, {"text": "hello"})
    await bench.ran(session, task={"wait": Patience(1).wait, "prompt": "the inputs"})
    assert bench.said[0] == "hello"
    first, again = session.asked[:2]
    assert first.body["messages"][0]["content"] == "the inputs"
    assert again.body["messages"][0] == first.body["messages"][0]


async def test_a_failure_that_stays_is_waited_for_as_often_as_it_may_be(bench: Bench) -> None:
    patience = Patience(2)
    with pytest.raises(RateLimited):
        await bench.ran(
            bench.script(*[{"error": {"kind": "rate_limited"}}] * 9), task={"wait": patience.wait}
        )
    assert len(patience.waited) == 3


async def test_a_failure_that_stays_is_no_progress(bench: Bench) -> None:
    """Whoever waits takes any event for a sign that it got on."""
    use = {"input_tokens": 10, "output_tokens": 2}
    turns = [{**call("shell", command="true"), "usage": use}]
    heard: list[int] = []

    async def wait(error: Transient) -> None:
        heard.append(len(bench.events))
        if len(heard) == 3:
            raise error

    told = {"error": {"kind": "overloaded", "status": 529}}
    with pytest.raises(Overloaded):
        await bench.ran(bench.script(*turns, *[told] * 9), task={"wait": wait})
    assert len(set(heard)) == 1


async def test_it_is_not_asked_again_behind_the_back(bench: Bench) -> None:
    session = bench.script(*[{"error": {"kind": "overloaded", "retry_after_s": 2}}] * 9)
    with pytest.raises(Overloaded):
        await bench.ran(session)
    assert len(session.asked) == 1
