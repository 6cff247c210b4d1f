"""A conversation as chat completions take it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from agl.ports.errors import InputError
from agl.ports.llm import (
    InvalidArguments,
    LLMRequest,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResult,
    ToolSpec,
    ToolUse,
)
from agl.ports.models import ModelId
from agl.ports.servers import utf8, utf8_json

Json = dict[str, Any]

BASE_URL = "https://api.openai.com/v1"


def body_of(request: LLMRequest, url: str, max_output_tokens: int | None) -> Json:
    """The request's body. Without a bound of the answer the server's own holds. A tool is forced
    in the way that every server knows: it is the only one, and one is required.
    """
    body: Json = {
        "model": request.model.name,
        "messages": [sent for turn in _turns(request) for sent in turn],
        "stream_options": {"include_usage": True},
        **settings_of(request.model),
    }
    tools = [tool for tool in request.tools if request.force in (None, tool.name)]
    if tools:
        body["tools"] = [_tool(tool) for tool in tools]
    if request.force is not None:
        body["tool_choice"] = "required"
    if limit := request.max_output_tokens or max_output_tokens:
        # OpenAI's own newer models refuse the old name, and other servers do not know the new one.
        body["max_completion_tokens" if url == BASE_URL else "max_tokens"] = limit
    return body


def settings_of(model: ModelId) -> Json:
    """The settings that belong to the model.

    Raises:
        InputError: a setting is not known.
    """
    body: Json = {}
    for name, value in model.settings:
        if name != "effort":
            raise InputError(f"model {str(model)!r} has {name} {value!r}; known is effort")
        body["reasoning_effort"] = value
    return body


def _turns(request: LLMRequest) -> Iterator[Iterator[Json] | list[Json]]:
    if request.system.strip():
        yield [{"role": "system", "content": utf8(request.system)}]
    for message in request.messages:
        yield _user(message) if message.role == "user" else [_assistant(message)]


def _user(message: Message) -> Iterator[Json]:
    for block in message.blocks:
        if isinstance(block, ToolResult):
            yield {"role": "tool", "tool_call_id": block.use_id, "content": utf8(block.text)}
    if any(isinstance(block, TextBlock) for block in message.blocks):
        yield {"role": "user", "content": utf8(message.text)}


def _assistant(message: Message) -> Json:
    made: Json = {"role": "assistant", "content": utf8(message.text)}
    if message.calls:
        made["tool_calls"] = [_call(call) for call in message.calls]
    for block in message.blocks:
        if isinstance(block, ThinkingBlock):
            made |= _thought(block)
    return made


def _thought(block: ThinkingBlock) -> Json:
    """A thought in the field in which it came: its signature is the field's name, or the details
    themselves."""
    if block.signature.startswith("["):
        return {"reasoning_details": json.loads(block.signature)}
    return {block.signature: utf8(block.text)} if block.signature else {}


def _call(call: ToolUse) -> Json:
    """Arguments that are none are wrapped: servers read them, and refuse the conversation."""
    given: Mapping[str, object] | object = call.arguments
    if isinstance(call.arguments, InvalidArguments):
        given = {"unreadable": call.arguments.raw}
    function = {"name": call.name, "arguments": json.dumps(utf8_json(given), ensure_ascii=False)}
    return {"id": call.id, "type": "function", "function": function}


def _tool(tool: ToolSpec) -> Json:
    function = {"name": tool.name, "description": utf8(tool.description)}
    return {"type": "function", "function": {**function, "parameters": utf8_json(tool.schema)}}
