"""OpenAI chat completions, with the ways of those who speak it too."""

from __future__ import annotations

import json

from servers.turns import Turn
from servers.wires import Event, Json, Said, Wire

_ENDINGS = {
    "done": "stop",
    "cut": "length",
    "paused": "stop",
    "refused": "content_filter",
    "failed": "error",
}


class ChatWire(Wire):
    """`POST /v1/chat/completions`, streaming and not. Quirks of calls: `no_index`, `index_0`,
    `whole_calls`, `no_call_ids`, `ids_again` (in each part), `late_ids` (in the last part),
    `arguments_object`. Of the rest: `usage_with_finish`, `no_done`, `null_choices`, `reasoning`
    (the other name of the field), `reasoning_details`."""

    name = "chat"
    errors = {  # noqa: RUF012
        "bad_request": Said(400, "invalid_request_error", "Invalid value for 'messages'"),
        "too_long": Said(
            400,
            "invalid_request_error",
            "This model's maximum context length is 8192 tokens. However, your messages resulted"
            " in 9001 tokens.",
            "context_length_exceeded",
        ),
        "no_tools": Said(400, "api_error", "registry.ollama.ai/library/x does not support tools"),
        "auth": Said(401, "invalid_request_error", "Incorrect API key", "invalid_api_key"),
        "billing": Said(402, "payment_required", "Insufficient credits"),
        "denied": Said(403, "permission_error", "Your project has no access to the model"),
        "not_found": Said(
            404, "invalid_request_error", "The model 'x' does not exist", "model_not_found"
        ),
        "too_large": Said(413, "invalid_request_error", "Request too large"),
        "rate_limited": Said(429, "requests", "Rate limit reached", "rate_limit_exceeded"),
        "usage_limit": Said(
            429, "insufficient_quota", "You exceeded your current quota", "insufficient_quota"
        ),
        "failed": Said(500, "server_error", "The server had an error"),
        "overloaded": Said(503, "server_error", "The engine is currently overloaded"),
    }

    def events(self, turn: Turn, asked: Json, quirks: frozenset[str]) -> list[Event]:
        made = [self._chunk(turn, asked, {"role": "assistant", "content": ""})]
        made += [self._chunk(turn, asked, delta) for delta in _deltas(turn, quirks)]
        last = self._chunk(turn, asked, {}, _reason(turn))
        if "usage_with_finish" in quirks:
            last["usage"] = _usage(turn)
        made.append(last)
        if asked.get("stream_options", {}).get("include_usage") and "usage" not in last:
            none: object = None if "null_choices" in quirks else []
            made.append({**last, "choices": none, "usage": _usage(turn)})
        done: list[Event] = [] if "no_done" in quirks else [(None, "[DONE]")]
        return [*((None, chunk) for chunk in made), *done]

    def whole(self, turn: Turn, asked: Json) -> Json:
        message: Json = {"role": "assistant", "content": turn.text}
        if turn.calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.tool, "arguments": call.arguments},
                }
                for call in turn.calls
            ]
        choice = {"index": 0, "message": message, "finish_reason": _reason(turn)}
        head = self._chunk(turn, asked, {})
        return {
            **head,
            "object": "chat.completion",
            "choices": [choice],
            "usage": _usage(turn),
        }

    def error_body(self, said: Said) -> Json:
        error = {"message": said.message, "type": said.type, "param": None, "code": said.code}
        return {"error": error}

    def error_event(self, said: Said) -> Event:
        body = self.error_body(said)
        return None, {"error": {**body["error"], "code": said.code or said.status}}

    def _chunk(self, turn: Turn, asked: Json, delta: Json, reason: str | None = None) -> Json:
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": turn.model or asked.get("model", "x"),
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        }


def _deltas(turn: Turn, quirks: frozenset[str]) -> list[Json]:
    made: list[Json] = []
    field = "reasoning" if quirks & {"reasoning", "reasoning_details"} else "reasoning_content"
    for piece in turn.pieces(turn.thinking or ""):
        delta: Json = {field: piece}
        if "reasoning_details" in quirks:
            delta["reasoning_details"] = [{"type": "reasoning.text", "text": piece, "index": 0}]
        made.append(delta)
    if turn.signature and "reasoning_details" in quirks:
        sealed = {"type": "reasoning.text", "signature": turn.signature, "index": 0}
        made.append({"reasoning_details": [sealed]})
    made += [{"content": piece} for piece in turn.pieces(turn.text or "")]
    for place, call in enumerate(turn.calls):
        size = len(call.arguments) + 1
        if not quirks & {"whole_calls", "arguments_object"}:
            size = max(turn.piece, size // 50)
        given: object = call.arguments[:size]
        if "arguments_object" in quirks:
            given = json.loads(call.arguments)
        head: Json = {
            "id": call.id,
            "type": "function",
            "function": {"name": call.tool, "arguments": given},
        }
        if "no_call_ids" in quirks:
            del head["id"]
        parts = [head]
        for at in range(size, len(call.arguments), size):
            parts.append({"function": {"arguments": call.arguments[at : at + size]}})
        if "late_ids" in quirks:
            del head["id"]
            parts[-1]["id"] = call.id
        for part in parts:
            if "ids_again" in quirks:
                part["id"] = call.id
            if "no_index" not in quirks:
                part["index"] = 0 if "index_0" in quirks else place
            made.append({"tool_calls": [part]})
    return made


def _reason(turn: Turn) -> str:
    return "tool_calls" if turn.calls and turn.ending == "done" else _ENDINGS[turn.ending]


def _usage(turn: Turn) -> Json:
    usage: Json = {
        "prompt_tokens": turn.input_tokens,
        "completion_tokens": turn.output_tokens,
        "total_tokens": turn.input_tokens + turn.output_tokens,
        "prompt_tokens_details": {"cached_tokens": turn.cached_tokens},
    }
    if turn.cost_usd is not None:
        usage["cost"] = turn.cost_usd
    return usage
