"""What the server says is what the vendors' own SDKs take for valid, checked strictly."""

from collections.abc import Iterator
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from servers.model_server import ModelServer

FULL: dict[str, Any] = {
    "thinking": {"text": "hm", "signature": "c2VhbA=="},
    "text": "I look at it.",
    "calls": [{"tool": "look", "arguments": {"a": 1}, "id": "c1"}],
    "usage": {"input_tokens": 9, "output_tokens": 3, "cached_tokens": 2},
}
ENDINGS = ["done", "cut"]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.mark.parametrize("ending", ENDINGS)
async def test_messages(server: ModelServer, ending: str) -> None:
    session = server.session([{**FULL, "ending": ending}] * 2)
    async with AsyncAnthropic(
        api_key="k", base_url=session.url, max_retries=0, _strict_response_validation=True
    ) as client:
        asked: Any = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
        whole = await client.messages.create(**asked)
        async with client.messages.stream(**asked) as stream:
            streamed = await stream.get_final_message()
    for message in (whole, streamed):
        assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
        assert message.usage.cache_read_input_tokens == 2
        assert message.usage.output_tokens == 3
    assert whole.stop_reason == streamed.stop_reason


@pytest.mark.parametrize("ending", ENDINGS)
async def test_chat_completions(server: ModelServer, ending: str) -> None:
    session = server.session([{**FULL, "ending": ending}] * 2)
    async with AsyncOpenAI(
        api_key="k", base_url=session.v1, max_retries=0, _strict_response_validation=True
    ) as client:
        asked: Any = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
        whole = await client.chat.completions.create(**asked)
        asked["stream_options"] = {"include_usage": True}
        chunks = [one async for one in await client.chat.completions.create(**asked, stream=True)]
    assert whole.choices[0].message.content == "I look at it."
    assert chunks[-1].usage == whole.usage
    said = [choice.delta.content or "" for one in chunks for choice in one.choices]
    assert "".join(said) == "I look at it."


@pytest.mark.parametrize("ending", ENDINGS)
async def test_responses(server: ModelServer, ending: str) -> None:
    session = server.session([{**FULL, "ending": ending}] * 2)
    async with AsyncOpenAI(
        api_key="k", base_url=session.v1, max_retries=0, _strict_response_validation=True
    ) as client:
        whole = await client.responses.create(model="m", input="x")
        events = [
            one async for one in await client.responses.create(model="m", input="x", stream=True)
        ]
    assert whole.output_text == "I look at it."
    said = [one.delta for one in events if one.type == "response.output_text.delta"]
    assert "".join(said) == "I look at it."
    last: Any = events[-1]
    assert [item.type for item in last.response.output] == ["reasoning", "message", "function_call"]
    assert last.response.usage.input_tokens_details.cached_tokens == 2
