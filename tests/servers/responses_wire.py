"""OpenAI Responses."""

from __future__ import annotations

from servers.turns import Call, Turn
from servers.wires import Event, Json, Said, Wire


class ResponsesWire(Wire):
    """`POST /v1/responses`, streaming and not."""

    name = "responses"
    errors = {  # noqa: RUF012
        "bad_request": Said(400, "invalid_request_error", "Invalid value for 'input'"),
        "too_long": Said(
            400,
            "invalid_request_error",
            "Your input exceeds the context window of this model.",
            "context_length_exceeded",
        ),
        "no_tools": Said(400, "invalid_request_error", "tools are not supported"),
        "auth": Said(401, "invalid_request_error", "Incorrect API key", "invalid_api_key"),
        "billing": Said(402, "payment_required", "Insufficient credits"),
        "denied": Said(403, "permission_error", "Your project has no access to the model"),
        "not_found": Said(
            404, "invalid_request_error", "The model 'x' does not exist", "model_not_found"
        ),
        "too_large": Said(413, "invalid_request_error", "Request too large"),
        "rate_limited": Said(429, "requests", "Rate limit reached", "rate_limit_exceeded"),
        "usage_limit": Said(429, "usage_limit_reached", "The usage limit has been reached"),
        "failed": Said(500, "server_error", "The server had an error"),
        "overloaded": Said(
            503, "server_error", "Our servers are overloaded", "server_is_overloaded"
        ),
    }

    def events(self, turn: Turn, asked: Json, quirks: frozenset[str]) -> list[Event]:
        begun = self._response(turn, asked, "in_progress", [])
        made: list[Json] = [{"type": "response.created", "response": begun}]
        items = _items(turn)
        for index, item in enumerate(items):
            at = {"output_index": index, "item_id": item["id"]}
            made.append({"type": "response.output_item.added", **at, "item": _begun(item)})
            if item["type"] == "message":
                for piece in turn.pieces(turn.text or ""):
                    made.append(
                        {"type": "response.output_text.delta", **at, "delta": piece}
                        | {"content_index": 0, "logprobs": []}
                    )
            made.append({"type": "response.output_item.done", **at, "item": item})
        status = "incomplete" if turn.ending == "cut" else "completed"
        response = self._response(turn, asked, status, items)
        if turn.ending == "cut":
            response["incomplete_details"] = {"reason": "max_output_tokens"}
        made.append({"type": f"response.{status}", "response": response})
        return [(one["type"], {**one, "sequence_number": n}) for n, one in enumerate(made)]

    def whole(self, turn: Turn, asked: Json) -> Json:
        return self._response(turn, asked, "completed", _items(turn))

    def error_body(self, said: Said) -> Json:
        error = {"message": said.message, "type": said.type, "param": None, "code": said.code}
        return {"error": error}

    def error_event(self, said: Said) -> Event:
        error = {"code": said.code or said.type, "message": said.message}
        response = {"id": "resp_1", "object": "response", "status": "failed", "error": error}
        return "response.failed", {"type": "response.failed", "response": response}

    def _response(self, turn: Turn, asked: Json, status: str, output: list[Json]) -> Json:
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "status": status,
            "model": turn.model or asked.get("model", "x"),
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": None if status == "in_progress" else _usage(turn),
        }


def _items(turn: Turn) -> list[Json]:
    made: list[Json] = []
    if turn.thinking is not None:
        summary = [{"type": "summary_text", "text": turn.thinking}]
        made.append(
            {"type": "reasoning", "id": "rs_1", "summary": summary}
            | {"encrypted_content": turn.signature or turn.hidden}
        )
    if turn.text is not None:
        content = [{"type": "output_text", "text": turn.text, "annotations": []}]
        made.append(
            {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
            | {"status": "completed"}
        )
    return [*made, *(_call_item(call) for call in turn.calls)]


def _call_item(call: Call) -> Json:
    item: Json = {"id": f"fc_{call.id}", "call_id": call.id, "name": call.tool}
    if call.input is not None:
        item |= {"type": "custom_tool_call", "input": call.input}
    else:
        item |= {"type": "function_call", "arguments": call.arguments}
    return {**item, "status": "completed", **call.more}


def _begun(item: Json) -> Json:
    match item["type"]:
        case "message":
            return {**item, "content": [], "status": "in_progress"}
        case "reasoning":
            return {**item, "summary": []}
        case _:
            field = "input" if "input" in item else "arguments"
            return {**item, field: "", "status": "in_progress"}


def _usage(turn: Turn) -> Json:
    return {
        "input_tokens": turn.input_tokens,
        "input_tokens_details": {"cached_tokens": turn.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": turn.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": turn.input_tokens + turn.output_tokens,
    }
