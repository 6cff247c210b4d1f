"""What goes over the wire, and what is made of what comes back, as differently as servers do it."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from agl.adapters.memory.clock import ManualClock
from agl.adapters.openai_compatible import OpenAICompatibleLLM
from agl.adapters.openai_compatible.asking import BASE_URL, body_of
from agl.ports.errors import AuthenticationFailed, InputError, NotFoundError, UpstreamError
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

MODEL = ModelId("openai_compatible", "qwen")
LOOK = ToolSpec("look", "Looks.", {"type": "object"})
GO = Message("user", (TextBlock("go"),))
REQUEST = LLMRequest(MODEL, "Work.", (GO,), (LOOK, replace(LOOK, name="b")))


async def answered(
    server: ModelServer,
    turn: Mapping[str, Any],
    request: LLMRequest = REQUEST,
    *,
    quirks: tuple[str, ...] = (),
) -> tuple[LLMResponse, Any]:
    """The answer, and the body of the request."""
    session = server.session([turn], quirks=quirks)
    llm = OpenAICompatibleLLM(ManualClock(), key="k", base_url=session.v1)
    response = await llm.generate(request, lambda text: None)
    return response, session.asked[-1].body


CALLS = [
    {"tool": "look", "arguments": {"path": "a long name of a file", "n": 1}, "id": "c1"},
    {"tool": "look", "arguments": {"path": "b"}, "id": "c2"},
    {"tool": "b", "id": "c3"},
]
MADE: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("look", {"path": "a long name of a file", "n": 1}),
    ("look", {"path": "b"}),
    ("b", {}),
)
FULL: Mapping[str, Any] = {
    "text": "I look at it.",
    "calls": CALLS,
    "usage": {"input_tokens": 100, "output_tokens": 20, "cached_tokens": 60},
}


@pytest.mark.parametrize(
    "quirks",
    [
        (),
        ("no_index",),
        ("index_0",),
        ("whole_calls",),
        ("whole_calls", "no_index"),
        ("whole_calls", "no_index", "no_call_ids"),
        ("whole_calls", "index_0"),
        ("no_call_ids",),
        ("no_index", "no_call_ids"),
        ("arguments_object",),
        ("usage_with_finish",),
        ("null_choices",),
        ("no_space",),
        ("comments",),
        ("crlf",),
        ("no_done",),
        ("ids_again",),
        ("late_ids",),
        ("no_space", "crlf", "comments", "no_index", "whole_calls", "no_done"),
    ],
    ids="+".join,
)
async def test_servers_that_differ_say_the_same(
    server: ModelServer, quirks: tuple[str, ...]
) -> None:
    response, _ = await answered(server, FULL, quirks=quirks)
    text, *calls = response.blocks
    assert text == TextBlock("I look at it.")
    uses = [call for call in calls if isinstance(call, ToolUse)]
    assert [(use.name, use.arguments) for use in uses] == list(MADE)
    ids = ["", "", ""] if "no_call_ids" in quirks else ["c1", "c2", "c3"]
    assert [use.id for use in uses] == ids
    assert response.usage == Usage(100, 20, 60, None)
    assert response.ending is Ending.DONE


@pytest.mark.parametrize(
    ("quirks", "field"),
    [((), "reasoning_content"), (("reasoning",), "reasoning")],
)
async def test_a_thought_goes_back_in_its_field(
    server: ModelServer, quirks: tuple[str, ...], field: str
) -> None:
    turn = {"thinking": "hm, let me see, héllo", "text": "x"}
    response, _ = await answered(server, turn, quirks=quirks)
    assert response.blocks == (ThinkingBlock("hm, let me see, héllo", field), TextBlock("x"))
    turns = (GO, Message("assistant", response.blocks), GO)
    _, body = await answered(server, {"text": "x"}, replace(REQUEST, messages=turns))
    assert body["messages"][2] == {
        "role": "assistant",
        "content": "x",
        field: "hm, let me see, héllo",
    }


async def test_a_sealed_thought_goes_back_with_its_seal(server: ModelServer) -> None:
    turn = {"thinking": {"text": "hm, let me see", "signature": "c2VhbA=="}, "text": "x"}
    response, _ = await answered(server, turn, quirks=("reasoning_details",))
    turns = (GO, Message("assistant", response.blocks), GO)
    _, body = await answered(server, {"text": "x"}, replace(REQUEST, messages=turns))
    assert body["messages"][2]["reasoning_details"] == [
        {"type": "reasoning.text", "text": "hm, let me see", "index": 0, "signature": "c2VhbA=="}
    ]


async def test_results_stand_each_under_its_own_call(server: ModelServer) -> None:
    uses = (ToolUse("c1", "look", {"a": "é"}), ToolUse("c2", "look", InvalidArguments("{", "no")))
    results = (ToolResult("c1", "", True), ToolResult("c2", "fine"))
    turns = (GO, Message("assistant", uses), Message("user", results))
    _, body = await answered(server, {"text": "x"}, replace(REQUEST, messages=turns))
    assert body["messages"] == [
        {"role": "system", "content": "Work."},
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "look", "arguments": '{"a": "é"}'},
                },
                {
                    "id": "c2",
                    "type": "function",
                    "function": {"name": "look", "arguments": '{"unreadable": "{"}'},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": ""},
        {"role": "tool", "tool_call_id": "c2", "content": "fine"},
    ]


async def test_what_utf8_cannot_say_does_not_break_the_request(server: ModelServer) -> None:
    use = ToolUse("c1", "look", {"a\ud800": "\ud800"})
    result = Message("user", (ToolResult("c1", "é\udcff"),))
    turns = (GO, Message("assistant", (use,)), result)
    _, body = await answered(server, {"text": "x"}, replace(REQUEST, messages=turns))
    assert body["messages"][2]["tool_calls"][0]["function"]["arguments"] == '{"a?": "?"}'
    assert body["messages"][3]["content"] == "é?"


async def test_a_forced_tool_is_the_only_one(server: ModelServer) -> None:
    _, body = await answered(server, {"calls": [{"tool": "b"}]}, replace(REQUEST, force="b"))
    assert [tool["function"]["name"] for tool in body["tools"]] == ["b"]
    assert body["tool_choice"] == "required"


async def test_only_what_is_asked_is_sent(server: ModelServer) -> None:
    _, body = await answered(server, {"text": "x"}, LLMRequest(MODEL, "", (GO,)))
    assert body == {
        "model": "qwen",
        "messages": [{"role": "user", "content": "go"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    asked = replace(
        REQUEST, model=replace(MODEL, settings=(("effort", "low"),)), max_output_tokens=9
    )
    _, body = await answered(server, {"text": "x"}, asked)
    assert (body["reasoning_effort"], body["max_tokens"]) == ("low", 9)


async def test_a_bound_of_the_settings_holds_where_none_is_asked(server: ModelServer) -> None:
    session = server.session([{"text": "x"}, {"text": "y"}])
    llm = OpenAICompatibleLLM(ManualClock(), base_url=session.v1, max_output_tokens=100)
    for asked in (None, 9):
        await llm.generate(replace(REQUEST, max_output_tokens=asked), lambda text: None)
    assert [request.body["max_tokens"] for request in session.asked] == [100, 9]


def test_openai_has_a_name_of_its_own_for_the_bound() -> None:
    request = replace(REQUEST, max_output_tokens=9)
    assert body_of(request, BASE_URL, None)["max_completion_tokens"] == 9
    assert "max_tokens" not in body_of(request, BASE_URL, None)


async def test_an_answer_that_is_too_long_was_cut(server: ModelServer) -> None:
    calls = [{"tool": "look", "raw_arguments": ""}, {"tool": "b", "raw_arguments": ""}]
    response, _ = await answered(server, {"calls": calls, "ending": "cut"})
    assert response.ending is Ending.CUT
    whole, cut = response.blocks
    assert isinstance(whole, ToolUse)
    assert whole.arguments == {}
    assert isinstance(cut, ToolUse)
    assert isinstance(cut.arguments, InvalidArguments)


async def test_a_price_is_told_where_the_vendor_does(server: ModelServer) -> None:
    usage = {"input_tokens": 1, "output_tokens": 2, "cost_usd": 0.25}
    response, _ = await answered(server, {"text": "x", "usage": usage, "model": "real/one"})
    assert response.usage == Usage(1, 2, 0, 0.25)
    assert response.model == "real/one"


async def test_the_key_and_the_headers_go_along(server: ModelServer) -> None:
    keys = iter(["first", "second"])

    async def key() -> str:
        return next(keys)

    session = server.session([{"text": "x"}, {"text": "y"}])
    llm = OpenAICompatibleLLM(
        ManualClock(), key=key, base_url=f"{session.v1}/", headers={"X-Team": "t"}
    )
    for _ in range(2):
        await llm.generate(REQUEST, lambda text: None)
    sent = [request.headers["authorization"] for request in session.asked]
    assert sent == ["Bearer first", "Bearer second"]
    assert session.asked[0].headers["x-team"] == "t"


async def test_a_connection_is_not_kept_to_go_stale(server: ModelServer) -> None:
    session = server.session([{"text": "x"}])
    llm = OpenAICompatibleLLM(ManualClock(), base_url=session.v1)
    await llm.generate(REQUEST, lambda text: None)
    assert session.asked[0].headers["connection"] == "close"


async def test_a_cancelled_request_leaves_nothing_open(server: ModelServer) -> None:
    session = server.session([{"text": "xyz", "error": {"kind": "stuck", "after": 2}}])
    llm = OpenAICompatibleLLM(ManualClock(), base_url=session.v1)
    begun = asyncio.Event()
    work = asyncio.create_task(llm.generate(REQUEST, lambda text: begun.set()))
    await asyncio.wait_for(begun.wait(), 60)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


def ready(session: Session, **more: Any) -> OpenAICompatibleLLM:
    return OpenAICompatibleLLM(ManualClock(), **{"base_url": session.v1, **more})


def listed(name: str, **more: Any) -> Mapping[str, Any]:
    return {"id": name, "object": "model", **more}


async def test_readiness_costs_no_turn(server: ModelServer) -> None:
    session = server.session(models=["qwen"], key="k")
    await ready(session, key="k").check_ready(MODEL)
    assert [request.method for request in session.requests] == ["GET"]


@pytest.mark.parametrize(
    "models",
    [
        None,
        [],
        ["other"],
        [listed("other.gguf", owned_by="llamacpp")],
        [listed("qwen", owned_by="vllm")],
        [listed("qwen:latest", owned_by="library")],
        [listed("qwen", supported_parameters=["tools"])],
    ],
)
async def test_what_could_work_is_not_refused(server: ModelServer, models: Any) -> None:
    await ready(server.session(models=models)).check_ready(MODEL)


async def test_a_tag_that_is_not_listed_is_the_models(server: ModelServer) -> None:
    session = server.session(models=[listed("a/b", supported_parameters=["tools"])])
    await ready(session).check_ready(replace(MODEL, name="a/b:nitro"))


@pytest.mark.parametrize("owner", ["vllm", "library"])
async def test_a_model_that_a_server_does_not_have_is_refused(
    server: ModelServer, owner: str
) -> None:
    session = server.session(models=[listed("gemma", owned_by=owner)])
    with pytest.raises(NotFoundError, match="no model 'qwen'; it has 'gemma'"):
        await ready(session).check_ready(MODEL)


async def test_a_model_without_tools_is_refused(server: ModelServer) -> None:
    router = server.session(models=[listed("qwen", supported_parameters=["temperature"])])
    ollama = server.session(
        models=[listed("qwen", owned_by="library")],
        shows={"qwen": {"capabilities": ["completion"]}},
    )
    for session in (router, ollama):
        with pytest.raises(InputError, match="cannot call tools"):
            await ready(session).check_ready(MODEL)
    able = {"qwen": {"capabilities": ["completion", "tools"]}}
    ollama.shows = able
    await ready(ollama).check_ready(MODEL)


async def test_a_url_without_v1_is_refused_with_the_right_one(server: ModelServer) -> None:
    session = server.session(models=["qwen"])
    session.only_v1 = True
    with pytest.raises(InputError, match=f"write '{session.v1}'"):
        await ready(session, base_url=session.url).check_ready(MODEL)


async def test_a_wrong_key_is_not_ready(server: ModelServer) -> None:
    with pytest.raises(AuthenticationFailed):
        await ready(server.session(models=["qwen"], key="k"), key="wrong").check_ready(MODEL)


async def test_no_key_for_the_vendor_is_not_ready() -> None:
    with pytest.raises(AuthenticationFailed, match="set MY_KEY"):
        await OpenAICompatibleLLM(ManualClock(), key_name="MY_KEY").check_ready(MODEL)


async def test_nobody_there_is_not_ready() -> None:
    llm = OpenAICompatibleLLM(ManualClock(), base_url="http://127.0.0.1:1/v1")
    with pytest.raises(UpstreamError, match="is the server running"):
        await llm.check_ready(MODEL)


async def test_an_unknown_setting_is_refused() -> None:
    model = replace(MODEL, settings=(("mood", "good"),))
    with pytest.raises(InputError, match="mood"):
        await OpenAICompatibleLLM(ManualClock()).check_ready(model)
