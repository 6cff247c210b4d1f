"""The table of failures, row by row, each told by the real program."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

import pytest

from adapters.codex.bench import Bench, call
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

Row = tuple[dict[str, Any], type[AglError], str]

ROWS: dict[str, Row] = {
    "authentication": ({"kind": "auth"}, AuthenticationFailed, "agl doctor"),
    "forbidden": ({"kind": "denied"}, AuthenticationFailed, "may not do that"),
    "billing": ({"kind": "billing"}, DeniedError, "billing"),
    "bad request": ({"kind": "bad_request"}, UpstreamError, "Invalid value for 'input'"),
    "model not found": ({"kind": "not_found"}, NotFoundError, "another model"),
    "context too long": ({"kind": "too_long"}, ContextTooLong, "larger context"),
    "too large": ({"kind": "too_large"}, ContextTooLong, "give the step less"),
    "rate limit": ({"kind": "rate_limited"}, RateLimited, "429"),
    "overloaded": ({"kind": "overloaded"}, Overloaded, "at capacity"),
    "overloaded in the stream": ({"kind": "said"}, Overloaded, "at capacity"),
    "too long in the stream": (
        {"kind": "said", "what": "too_long"},
        ContextTooLong,
        "larger context",
    ),
    "rate limit in the stream": (
        {"kind": "said", "what": "rate_limited", "message": "Please try again in 8s."},
        RateLimited,
        "again in 8s",
    ),
    "server error": ({"kind": "failed"}, Transient, "high demand"),
    "gateway error": ({"kind": "failed", "status": 502}, Transient, "502"),
    "connection refused": ({"kind": "hung_up"}, StreamDropped, "disconnected"),
    "dropped": ({"kind": "dropped"}, StreamDropped, "disconnected"),
    "reset": ({"kind": "reset"}, StreamDropped, "disconnected"),
    "cut short": ({"kind": "cut"}, StreamDropped, "disconnected"),
    "garbage": ({"kind": "garbage"}, StreamDropped, "disconnected"),
    "a web page": ({"kind": "html"}, StreamDropped, "disconnected"),
}


async def failure(bench: Bench, *turns: dict[str, Any], **more: Any) -> AglError:
    began = time.monotonic()
    with pytest.raises(AglError) as raised:
        await bench.ran(bench.script(*turns), **more)
    assert time.monotonic() - began < LIMIT_S
    return raised.value


@pytest.mark.parametrize(
    ("said", "wait_s"),
    [
        ("Rate limit reached. Please try again in 1.898s.", 1.898),
        ("Please try again in 28ms.", 0.028),
        ("You've hit your usage limit. Try again at 3:05 PM", 3600),
        ("You've hit your usage limit. Try again at 2:05 pm.", 24 * 3600),
        ("You've hit your usage limit. Try again at Dec 3rd, 2026 2:05 PM", 48 * 3600),
        ("You've hit your usage limit. Try again at Dec 3rd, 1999 2:05 PM", 0),
        ("You've hit your usage limit. Try again later.", None),
    ],
)
def test_a_time_in_a_sentence(said: str, wait_s: float | None) -> None:
    pytest.importorskip("codex_cli_bin", reason="needs openai-codex-cli-bin of agl[codex]")
    from agl.adapters.codex.failures import wait_said_s

    assert wait_said_s(said, datetime(2026, 12, 1, 14, 5).astimezone()) == wait_s


@pytest.mark.parametrize("row", ROWS)
async def test_row(bench: Bench, row: str) -> None:
    told, kind, words = ROWS[row]
    wait_s = 8 if told.get("message") else None
    session = bench.script(*[{"text": "half of it", "error": told}] * 3)
    began = time.monotonic()
    with pytest.raises(AglError) as raised:
        await bench.ran(session)
    assert time.monotonic() - began < LIMIT_S
    assert type(raised.value) is kind
    assert words.lower() in str(raised.value).lower()
    if isinstance(raised.value, Transient):
        assert raised.value.retry_after_s == wait_s
    assert len(session.asked) == 1


async def test_a_prompt_longer_than_the_program_takes(bench: Bench) -> None:
    error = await failure(bench, task={"prompt": "x" * (2**20 + 1)})
    assert type(error) is ContextTooLong
    assert "exceeds the maximum length of 1048576 characters" in str(error)
    assert str(error).endswith("; give the step less")


async def test_nobody_there(bench: Bench) -> None:
    session = bench.script()
    runner = bench.runner(session)
    config = bench.home / "config.toml"
    config.write_text(config.read_text().replace(session.v1, "http://127.0.0.1:9/v1"))
    with pytest.raises(StreamDropped):
        await runner.run(bench.task(), bench.events.append)


async def test_a_plan_that_is_used_up_says_until_when(bench: Bench) -> None:
    headers = {
        "x-codex-primary-used-percent": "100.0",
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": str(int(time.time()) + 3600),
        "x-codex-secondary-used-percent": "50.0",
        "x-codex-secondary-window-minutes": "10080",
        "x-codex-secondary-reset-at": str(int(time.time()) + 360000),
    }
    told = {"error": {"kind": "usage_limit", "headers": headers}}
    error = await failure(bench, told)
    assert isinstance(error, UsageLimited)
    assert "hit your usage limit" in str(error)
    assert error.retry_after_s == pytest.approx(3600, abs=10)


async def test_a_plan_that_says_it_in_the_answer(bench: Bench) -> None:
    told = {"kind": "usage_limit", "more": {"resets_at": int(time.time()) + 3600}}
    error = await failure(bench, {"error": told})
    assert isinstance(error, UsageLimited)
    assert error.retry_after_s == pytest.approx(3600, abs=70)


async def test_a_limit_without_an_end_is_a_refusal(bench: Bench) -> None:
    error = await failure(bench, {"error": {"kind": "usage_limit"}})
    assert type(error) is DeniedError


async def test_an_answer_that_is_always_cut_off(bench: Bench) -> None:
    error = await failure(bench, *[{"text": "a", "ending": "cut"}] * 8)
    assert type(error) is UpstreamError
    assert "token" in str(error)


@pytest.mark.parametrize("kind", ["silent", "stalled", "stuck"])
async def test_a_silent_server(bench: Bench, kind: str) -> None:
    error = await failure(bench, {"text": "half of it", "error": {"kind": kind}}, idle_s=1.0)
    assert type(error) is StreamDropped
    assert "silent for 1 s" in str(error)


async def test_a_tool_may_take_longer_than_a_model_may_be_silent(bench: Bench) -> None:
    session = bench.script(call("shell", command="sleep 5; echo slept > a.txt"))
    await bench.ran(session, idle_s=4.0)
    assert (bench.tree / "a.txt").exists()


async def test_a_silent_server_is_noticed_while_a_command_is_left_at_work(bench: Bench) -> None:
    left = {"cmd": "sleep 60", "yield_time_ms": 250}
    turns: list[dict[str, Any]] = [
        {"calls": [{"tool": "exec_command", "arguments": left}]},
        {"error": {"kind": "silent"}},
    ]
    error = await failure(bench, *turns, idle_s=1.0, command_s=1.0)
    assert type(error) is StreamDropped


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


USE = {"input_tokens": 10, "output_tokens": 2}


async def test_after_a_failure_the_same_conversation_goes_on(bench: Bench) -> None:
    session = bench.script(
        {**call("shell", command="echo one >> a.txt"), "usage": USE},
        {"error": {"kind": "overloaded"}},
        {**call("report_findings", findings=["x"]), "usage": USE},
        {"text": "done", "usage": USE},
    )
    patience = Patience(1)
    outcome = await bench.ran(session, task={"wait": patience.wait})
    assert [type(error) for error in patience.waited] == [Overloaded]
    assert (bench.tree / "a.txt").read_text() == "one\n"
    assert bench.desk.report == {"findings": ["x"]}
    assert outcome.text == "done"
    assert "echo one" in session.asked[-1].text
    assert (bench.usage.input_tokens, bench.usage.output_tokens) == (30, 6)


async def test_a_conversation_that_never_began_begins_anew(bench: Bench) -> None:
    session = bench.script({"error": {"kind": "overloaded"}}, {"text": "hello"})
    await bench.ran(session, task={"wait": Patience(1).wait, "prompt": "the inputs"})
    assert bench.said[0] == "hello"
    first, again = session.asked[:2]
    for request in (first, again):
        assert request.body["input"][-1]["content"][0]["text"] == "the inputs"
        assert request.text.count("the inputs") == 1


async def test_a_failure_that_stays_is_waited_for_as_often_as_it_may_be(bench: Bench) -> None:
    patience = Patience(2)
    with pytest.raises(RateLimited):
        await bench.ran(
            bench.script(*[{"error": {"kind": "rate_limited"}}] * 9), task={"wait": patience.wait}
        )
    assert len(patience.waited) == 3


async def test_a_failure_that_stays_is_no_progress(bench: Bench) -> None:
    """Whoever waits takes any event for a sign that it got on."""
    turns = [{**call("shell", command="true"), "usage": USE}]
    heard: list[int] = []

    async def wait(error: Transient) -> None:
        heard.append(len(bench.events))
        if len(heard) == 3:
            raise error

    told = {"error": {"kind": "overloaded"}}
    with pytest.raises(Overloaded):
        await bench.ran(bench.script(*turns, *[told] * 9), task={"wait": wait})
    assert len(set(heard)) == 1


async def test_where_a_thread_is_no_more_a_new_one_begins(bench: Bench) -> None:
    waited: list[Transient] = []

    async def wait(error: Transient) -> None:
        waited.append(error)
        for path in (bench.home / "sessions").rglob("*.jsonl"):
            path.unlink()
        for path in bench.home.glob("*.sqlite*"):
            path.unlink()

    session = bench.script(
        {**call("shell", command="echo one >> a.txt"), "usage": USE},
        {"error": {"kind": "overloaded"}},
        {"error": {"kind": "overloaded"}},
        {"text": "done", "usage": USE},
    )
    task = {"wait": wait, "prompt": "the inputs", "follow_up": lambda: None}
    outcome = await bench.ran(session, task=task)
    assert outcome.text == "done"
    assert len(waited) == 2
    for request in session.asked[2:]:
        assert request.body["input"][-1]["content"][0]["text"] == "the inputs"
        assert "echo one" not in request.text
    assert (bench.usage.input_tokens, bench.usage.output_tokens) == (20, 4)
