"""Anthropic Messages."""

from __future__ import annotations

import json
from typing import Any

from servers.turns import Turn
from servers.wires import Event, Json, Said, Wire

_ENDINGS = {
    "done": "end_turn",
    "cut": "max_tokens",
    "paused": "pause_turn",
    "refused": "refusal",
    "overfull": "model_context_window_exceeded",
}


class AnthropicWire(Wire):
    """`POST /v1/messages`, streaming and not."""

    name = "anthropic"
    errors = {  # noqa: RUF012
        "bad_request": Said(400, "invalid_request_error", "messages: at least one is required"),
        "too_long": Said(
            400, "invalid_request_error", "prompt is too long: 214092 tokens > 200000 maximum"
        ),
        "no_tools": Said(400, "invalid_request_error", "this model does not support tools"),
        "auth": Said(401, "authentication_error", "invalid x-api-key"),
        "billing": Said(402, "billing_error", "Your credit balance is too low."),
        "denied": Said(403, "permission_error", "Your key may not use this resource."),
        "not_found": Said(404, "not_found_error", "model: claude-none"),
        "too_large": Said(413, "request_too_large", "Request exceeds the maximum size"),
        "rate_limited": Said(429, "rate_limit_error", "This request would exceed your rate limit."),
        "usage_limit": Said(
            429,
            "rate_limit_error",
            "You have reached your monthly usage threshold.",
            "enforced_spend_limit_reached",
        ),
        "failed": Said(500, "api_error", "Internal server error"),
        "overloaded": Said(529, "overloaded_error", "Overloaded"),
    }

    def events(self, turn: Turn, asked: Json, quirks: frozenset[str]) -> list[Event]:
        message = {**self._message(turn, asked), "content": [], "stop_reason": None}
        message["usage"] = {**_usage(turn), "output_tokens": 1}
        made: list[Event] = [_named({"type": "message_start", "message": message})]
        made.append(_named({"type": "ping"}))
        for index, block in enumerate(_blocks(turn)):
            made += _block_events(turn, index, block)
        delta = {"stop_reason": _reason(turn), "stop_sequence": None}
        usage = {"output_tokens": turn.output_tokens}
        made.append(_named({"type": "message_delta", "delta": delta, "usage": usage}))
        made.append(_named({"type": "message_stop"}))
        return made

    def whole(self, turn: Turn, asked: Json) -> Json:
        content = _blocks(turn)
        for block in content:
            if block["type"] == "tool_use":
                block["input"] = _object(block["input"])
        return {**self._message(turn, asked), "content": content}

    def error_body(self, said: Said) -> Json:
        error: Json = {"type": said.type, "message": said.message}
        if said.code:
            error["details"] = {"error_code": said.code}
        return {"type": "error", "error": error, "request_id": "req_1"}

    def error_event(self, said: Said) -> Event:
        return "error", self.error_body(said)

    def _message(self, turn: Turn, asked: Json) -> Json:
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": turn.model or asked.get("model", "claude"),
            "stop_reason": _reason(turn),
            "stop_sequence": None,
            "usage": _usage(turn),
        }


def _reason(turn: Turn) -> str:
    return "tool_use" if turn.calls and turn.ending == "done" else _ENDINGS[turn.ending]


def _usage(turn: Turn) -> Json:
    return {
        "input_tokens": turn.input_tokens - turn.cached_tokens,
        "output_tokens": turn.output_tokens,
        "cache_read_input_tokens": turn.cached_tokens,
        "cache_creation_input_tokens": 0,
    }


def _blocks(turn: Turn) -> list[Json]:
    made: list[Json] = []
    if turn.thinking is not None:
        made.append({"type": "thinking", "thinking": turn.thinking, "signature": turn.signature})
    if turn.hidden is not None:
        made.append({"type": "redacted_thinking", "data": turn.hidden})
    if turn.text is not None:
        made.append({"type": "text", "text": turn.text})
    for call in turn.calls:
        made.append(
            {"type": "tool_use", "id": call.id, "name": call.tool, "input": call.arguments}
            | dict(call.more)
        )
    return made


def _block_events(turn: Turn, index: int, block: Json) -> list[Event]:
    match block["type"]:
        case "thinking":
            start: Json = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": p} for p in turn.pieces(block["thinking"])
            ]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        case "text":
            start = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": p} for p in turn.pieces(block["text"])]
        case "tool_use":
            start = {**block, "input": {}}
            size = max(turn.piece, len(block["input"]) // 50)
            raw = block["input"]
            deltas = [
                {"type": "input_json_delta", "partial_json": raw[at : at + size]}
                for at in range(0, len(raw), size)
            ]
        case _:
            start, deltas = block, []
    made = [_named({"type": "content_block_start", "index": index, "content_block": start})]
    made += [_named({"type": "content_block_delta", "index": index, "delta": d}) for d in deltas]
    made.append(_named({"type": "content_block_stop", "index": index}))
    return made


def _object(raw: str) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return {}


def _named(data: Json) -> Event:
    return data["type"], data
