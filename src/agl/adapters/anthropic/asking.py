"""A conversation as the Messages API takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agl.ports.errors import InputError
from agl.ports.llm import (
    Block,
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

HIDDEN = "redacted_thinking:"
"""Begins the signature of a thought that came as `redacted_thinking`. A seal is base64."""

_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_CACHED = {"cache_control": {"type": "ephemeral"}}


def body_of(request: LLMRequest, max_output_tokens: int) -> Json:
    """The request's body. The cache's four marks (its limit) are on the tools, the system, the last
    user's turn and the one before, which is where the call before left off."""
    body: Json = {
        "model": request.model.name,
        "max_tokens": request.max_output_tokens or max_output_tokens,
        "messages": _messages(request.messages),
        **settings_of(request.model, forced=request.force is not None),
    }
    if request.system.strip():
        body["system"] = [{"type": "text", "text": utf8(request.system), **_CACHED}]
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        body["tools"][-1] |= _CACHED
    if request.force is not None:
        body["tool_choice"] = {"type": "tool", "name": request.force}
    return body


def settings_of(model: ModelId, *, forced: bool = False) -> Json:
    """The settings that belong to the model. A model that must call a tool cannot think first.

    Raises:
        InputError: a setting is not known.
    """
    body: Json = {}
    for name, value in model.settings:
        match name, value:
            case "effort", effort if effort in _EFFORTS:
                body["output_config"] = {"effort": effort}
            case "thinking", "adaptive" | "disabled":
                body["thinking"] = {"type": value}
            case "thinking", tokens if tokens.isdecimal():
                body["thinking"] = {"type": "enabled", "budget_tokens": int(tokens)}
            case _:
                raise InputError(
                    f"model {str(model)!r} has {name} {value!r}; known are effort"
                    f" {', '.join(_EFFORTS)}, and thinking adaptive, disabled or a number of tokens"
                )
    if forced:
        body.pop("thinking", None)
    return body


def _messages(messages: Sequence[Message]) -> list[Json]:
    """Without empty turns, which the API refuses; it joins two turns of one side itself."""
    made: list[Json] = []
    for message in messages:
        blocks = [block for block in map(_block, message.blocks) if block is not None]
        if blocks:
            made.append({"role": message.role, "content": blocks})
    users = [turn for turn in made if turn["role"] == "user"]
    for turn in users[-2:]:
        turn["content"][-1] |= _CACHED
    return made


def _block(block: Block) -> Json | None:
    match block:
        case TextBlock(text):
            return {"type": "text", "text": utf8(text)} if text.strip() else None
        case ThinkingBlock(_, signature) if signature.startswith(HIDDEN):
            return {"type": "redacted_thinking", "data": signature.removeprefix(HIDDEN)}
        case ThinkingBlock(text, signature):
            return {"type": "thinking", "thinking": text, "signature": signature}
        case ToolUse(use_id, name, arguments):
            given = _input(arguments)
            return {"type": "tool_use", "id": use_id, "name": name, "input": given}
        case ToolResult(use_id, text, is_error):
            result: Json = {"type": "tool_result", "tool_use_id": use_id, "content": utf8(text)}
            return {**result, "is_error": True} if is_error else result


def _input(arguments: Mapping[str, object] | InvalidArguments) -> object:
    if isinstance(arguments, InvalidArguments):
        return {"unreadable": utf8(arguments.raw)}
    return utf8_json(arguments)


def _tool(tool: ToolSpec) -> Json:
    schema = utf8_json(tool.schema)
    return {"name": tool.name, "description": utf8(tool.description), "input_schema": schema}
