"""What goes over the wire, and what is made of what comes back."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from agl.adapters.anthropic import AnthropicLLM
from agl.adapters.memory.clock import ManualClock
from agl.ports.errors import (
    AglError,
    AuthenticationFailed,
    InputError,
    NotFoundError,
    UpstreamError,
)
from agl.ports.llm import (
    Ending,
    InvalidArguments,
    LLMRequest,
    LLMResponse,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResult,
    ToolSpec,
    ToolUse,
)
from agl.ports.models import ModelId, Usage
from servers.model_server import ModelServer, Session

MODEL = ModelId("anthropic", "claude-x")
LOOK = ToolSpec("look", "Looks.", {"type": "object"})
GO = Message("user", (TextBlock("go"),))
REQUEST = LLMRequest(MODEL, "Work.", (GO,), (replace(LOOK, name="a"), LOOK))
CACHED = {"cache_control": {"type": "ephemeral"}}


async def answered(
    server: ModelServer, turn: Mapping[str, Any], request: LLMRequest = REQUEST
) -> tuple[LLMResponse, Any]:
    """The answer, and the body of the request."""
    session = server.session([turn])
    llm = AnthropicLLM(ManualClock(), key="k", base_url=session.url)
    response = await llm.generate(request, lambda text: None)
    return response, session.asked[-1].body


async def test_what_does_not_change_is_marked_for_the_cache(server: ModelServer) -> None:
    told = Message("assistant", (TextBlock("one"),))
    turns = (GO, told, Message("user", (TextBlock("b"), TextBlock("c"))), told, GO)
    _, body = await answered(server, {"text": "x"}, replace(REQUEST, messages=turns))
    assert body["system"] == [{"type": "text", "text": "Work.", **CACHED}]
    assert ["cache_control" in tool for tool in body["tools"]] == [False, True]
    marks = [["cache_control" in block for block in m["content"]] for m in body["messages"]]
    assert marks == [[False], [False], [False, True], [False], [True]]


async def test_a_thought_goes_back_as_it_came(server: ModelServer) -> None:
    turn = {"thinking": {"text": "hm, héllo", "signature": "c2VhbA=="}, "text": "x"}
    response, _ = await answered(server, turn)
    hidden, _ = await answered(server, {"thinking": {"hidden": "ZGFyaw=="}, "text": "x"})
    omitted, _ = await answered(server, {"thinking": {"text": "", "signature": "c2VhbA=="}})
    assert response.blocks == (ThinkingBlock("hm, héllo", "c2VhbA=="), TextBlock("x"))
    messages = [GO]
    for one in (response, hidden, omitted):
        messages += [Message("assistant", one.blocks), GO]
    _, body = await answered(server, {"text": "x"}, replace(REQUEST, messages=messages))
    sent = [turn["content"] for turn in body["messages"] if turn["role"] == "assistant"]
    said = {"type": "text", "text": "x"}
    assert sent == [
        [{"type": "thinking", "thinking": "hm, héllo", "signature": "c2VhbA=="}, said],
        [{"type": "redacted_thinking", "data": "ZGFyaw=="}, said],
        [{"type": "thinking", "thinking": "", "signature": "c2VhbA=="}],
    ]


async def test_results_are_one_turn_under_their_own_calls(server: ModelServer) -> None:
    uses = (ToolUse("c1", "look", {"a": [1]}), ToolUse("c2", "look", InvalidArguments("{", "no")))
    results = (ToolResult("c1", "", True), ToolResult("c2", "fine"))
    turns = (GO, Message("assistant", uses), Message("user", results))
    _, body = await answered(server, {"text": "x"}, replace(REQUEST, messages=turns))
    assert body["messages"][1]["content"] == [
        {"type": "tool_use", "id": "c1", "name": "look", "input": {"a": [1]}},
        {"type": "tool_use", "id": "c2", "name": "look", "input": {"unreadable": "{"}},
    ]
    assert body["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "", "is_error": True},
        {"type": "tool_result", "tool_use_id": "c2", "content": "fine", **CACHED},
    ]


async def test_an_empty_answer_is_left_out(server: ModelServer) -> None:
    turns = (GO, Message("assistant", (TextBlock(" \n"),)), GO)
    _, body = await answered(server, {"text": "x"}, replace(REQUEST, messages=turns))
    assert [turn["role"] for turn in body["messages"]] == ["user", "user"]


async def test_what_utf8_cannot_say_does_not_break_the_request(server: ModelServer) -> None:
    use = ToolUse("c1", "look", {"a\ud800": "\ud800"})
    result = Message("user", (ToolResult("c1", "é\udcff"),))
    turns = (GO, Message("assistant", (use,)), result)
    _, body = await answered(server, {"text": "x"}, replace(REQUEST, messages=turns))
    assert body["messages"][1]["content"][0]["input"] == {"a?": "?"}
    assert body["messages"][2]["content"][0]["content"] == "é?"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ((), {}),
        ((("effort", "high"),), {"output_config": {"effort": "high"}}),
        ((("thinking", "adaptive"),), {"thinking": {"type": "adaptive"}}),
        ((("thinking", "2048"),), {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
    ],
)
async def test_settings_of_the_model_are_sent(
    server: ModelServer, settings: tuple[tuple[str, str], ...], expected: Mapping[str, Any]
) -> None:
    request = replace(REQUEST, model=replace(MODEL, settings=settings))
    _, body = await answered(server, {"text": "x"}, request)
    assert {name: body[name] for name in ("output_config", "thinking") if name in body} == expected


async def test_a_forced_tool_is_not_thought_about(server: ModelServer) -> None:
    request = replace(
        REQUEST, model=replace(MODEL, settings=(("thinking", "adaptive"),)), force="look"
    )
    _, body = await answered(server, {"calls": [{"tool": "look"}]}, request)
    assert body["tool_choice"] == {"type": "tool", "name": "look"}
    assert "thinking" not in body


@pytest.mark.parametrize(("asked", "sent"), [(None, 32_000), (50, 50)])
async def test_an_answer_has_a_bound(server: ModelServer, asked: int | None, sent: int) -> None:
    _, body = await answered(server, {"text": "x"}, replace(REQUEST, max_output_tokens=asked))
    assert body["max_tokens"] == sent


@pytest.mark.parametrize(
    ("ending", "expected"),
    [("done", Ending.DONE), ("cut", Ending.CUT), ("paused", Ending.PAUSED)],
)
async def test_how_it_ended_is_told(server: ModelServer, ending: str, expected: Ending) -> None:
    response, _ = await answered(server, {"text": "x", "ending": ending})
    assert response.ending is expected


async def test_a_call_that_was_cut_off_is_not_made(server: ModelServer) -> None:
    calls = [{"tool": "look"}, {"tool": "look", "raw_arguments": ""}]
    response, _ = await answered(server, {"calls": calls, "ending": "cut"})
    whole, cut = response.blocks
    assert isinstance(whole, ToolUse)
    assert whole.arguments == {}
    assert isinstance(cut, ToolUse)
    assert isinstance(cut.arguments, InvalidArguments)
    response, _ = await answered(server, {"calls": calls})
    assert [block.arguments for block in response.blocks if isinstance(block, ToolUse)] == [{}, {}]


async def test_cached_tokens_are_part_of_those_that_went_in(server: ModelServer) -> None:
    usage = {"input_tokens": 100, "output_tokens": 20, "cached_tokens": 60}
    response, _ = await answered(server, {"text": "x", "usage": usage, "model": "claude-real"})
    assert response.usage == Usage(100, 20, 60, None)
    assert response.model == "claude-real"


async def test_the_key_and_the_headers_go_along(server: ModelServer) -> None:
    keys = iter(["first", "second"])

    async def key() -> str:
        return next(keys)

    session = server.session([{"text": "x"}, {"text": "y"}])
    llm = AnthropicLLM(ManualClock(), key=key, base_url=f"{session.url}/", headers={"X-Team": "t"})
    for _ in range(2):
        await llm.generate(REQUEST, lambda text: None)
    sent = [request.headers["authorization"] for request in session.asked]
    assert sent == ["Bearer first", "Bearer second"]
    assert session.asked[0].headers["x-team"] == "t"


async def test_a_connection_is_not_kept_to_go_stale(server: ModelServer) -> None:
    session = server.session([{"text": "x"}])
    llm = AnthropicLLM(ManualClock(), base_url=session.url)
    await llm.generate(REQUEST, lambda text: None)
    assert session.asked[0].headers["connection"] == "close"


async def test_a_cancelled_request_leaves_nothing_open(server: ModelServer) -> None:
    session = server.session([{"text": "x", "error": {"kind": "stuck", "after": 4}}])
    llm = AnthropicLLM(ManualClock(), base_url=session.url)
    begun = asyncio.Event()
    work = asyncio.create_task(llm.generate(REQUEST, lambda text: begun.set()))
    await asyncio.wait_for(begun.wait(), 60)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


def ready(session: Session, **more: Any) -> AnthropicLLM:
    return AnthropicLLM(ManualClock(), base_url=session.url, **more)


async def test_readiness_costs_no_turn(server: ModelServer) -> None:
    session = server.session(models=["claude-x"], key="k")
    await ready(session, key="k").check_ready(MODEL)
    assert [request.method for request in session.requests] == ["GET"]


async def test_a_server_without_a_list_of_models_is_ready(server: ModelServer) -> None:
    await ready(server.session(models=None)).check_ready(MODEL)
    await ready(server.session(models=["other"])).check_ready(MODEL)


async def test_a_wrong_key_is_not_ready(server: ModelServer) -> None:
    with pytest.raises(AuthenticationFailed):
        await ready(server.session(models=["claude-x"], key="k"), key="wrong").check_ready(MODEL)


async def test_no_key_for_the_vendor_is_not_ready() -> None:
    with pytest.raises(AuthenticationFailed, match="set MY_KEY"):
        await AnthropicLLM(ManualClock(), key_name="MY_KEY").check_ready(MODEL)


async def test_a_retired_model_is_not_ready(server: ModelServer) -> None:
    session = server.session(models=[{"id": "claude-x", "lifecycle": "retired"}])
    with pytest.raises(NotFoundError, match="retired"):
        await ready(session).check_ready(MODEL)


async def test_nobody_there_is_not_ready() -> None:
    with pytest.raises(UpstreamError, match="is the server running"):
        await AnthropicLLM(ManualClock(), base_url="http://127.0.0.1:1").check_ready(MODEL)


@pytest.mark.parametrize("setting", [("effort", "huge"), ("thinking", "-1"), ("mood", "good")])
async def test_an_unknown_setting_is_refused(setting: tuple[str, str]) -> None:
    with pytest.raises(InputError, match=setting[0]) as raised:
        await AnthropicLLM(ManualClock()).check_ready(replace(MODEL, settings=(setting,)))
    assert isinstance(raised.value, AglError)
