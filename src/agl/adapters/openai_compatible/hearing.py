"""An answer put together from the chunks of its stream, as differently as servers send them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from agl.ports.errors import DeniedError, StreamDropped
from agl.ports.llm import (
    Block,
    Ending,
    InvalidArguments,
    LLMResponse,
    TextBlock,
    ThinkingBlock,
    ToolUse,
    read_arguments,
)
from agl.ports.models import Usage

_THOUGHTS = ("reasoning_content", "reasoning")
"""llama.cpp, LM Studio and DeepSeek call it the first, OpenRouter, Ollama and vLLM the second."""


class Heard:
    """What came so far. Each field is taken for what it is, and what is not known passed over."""

    def __init__(self, model: str, on_delta: Callable[[str], None]) -> None:
        self._model = model
        self._on_delta = on_delta
        self._text: list[str] = []
        self._thought: list[str] = []
        self._thought_field = ""
        self._details: list[dict[str, Any]] = []
        self._calls: list[_Call] = []
        self._usage: Any = None
        self._reason: str | None = None

    def hear(self, chunk: Any) -> None:
        """A chunk; usage may come with the last choice or after it."""
        self._model = _text(chunk, "model") or self._model
        self._usage = getattr(chunk, "usage", None) or self._usage
        for choice in _items(getattr(chunk, "choices", None))[:1]:
            self._add(getattr(choice, "delta", None))
            self._reason = _text(choice, "finish_reason") or self._reason

    def response(self) -> LLMResponse:
        """The answer.

        Raises:
            StreamDropped: it is not whole.
            DeniedError: a filter kept it back.
        """
        if self._reason is None or self._reason == "error":
            raise StreamDropped(f"the answer of {self._model!r} ended before it was whole")
        if self._reason == "content_filter":
            raise DeniedError(
                f"the server's filter kept the answer of {self._model!r} back; change what is asked"
            )
        ending = Ending.CUT if self._reason == "length" else Ending.DONE
        blocks: list[Block] = []
        if self._details:
            blocks.append(ThinkingBlock("".join(self._thought), json.dumps(self._details)))
        elif self._thought:
            blocks.append(ThinkingBlock("".join(self._thought), self._thought_field))
        if self._text:
            blocks.append(TextBlock("".join(self._text)))
        for call in self._calls:
            blocks.append(call.made(cut=ending is Ending.CUT and call is self._calls[-1]))
        return LLMResponse(tuple(blocks), _spent(self._usage), ending, self._model)

    def _add(self, delta: Any) -> None:
        for field in _THOUGHTS:
            if thought := _text(delta, field):
                self._thought.append(thought)
                self._thought_field = field
                break
        for detail in _items(getattr(delta, "reasoning_details", None)):
            if isinstance(detail, dict):
                _join(self._details, detail)
        if text := _text(delta, "content") or _text(delta, "refusal"):
            self._text.append(text)
            self._on_delta(text)
        for part in _items(getattr(delta, "tool_calls", None)):
            self._call_of(part).add(part)

    def _call_of(self, part: Any) -> _Call:
        """The call that a part belongs to: its index says so, where there is one, and an id of its
        own begins another call, which some servers send under one index."""
        index, use_id = getattr(part, "index", None), _text(part, "id")
        if isinstance(index, int):
            same = [call for call in self._calls if call.index == index]
        else:
            is_new = not use_id and bool(_text(getattr(part, "function", None), "name"))
            same = [] if is_new else self._calls
        if same and (not use_id or use_id == same[-1].id or not same[-1].id):
            return same[-1]
        self._calls.append(_Call(index if isinstance(index, int) else None))
        return self._calls[-1]


class _Call:
    """A call that is coming in."""

    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id = ""
        self._name = ""
        self._arguments: list[str] = []

    def add(self, part: Any) -> None:
        function = getattr(part, "function", None)
        self.id = self.id or _text(part, "id")
        self._name = self._name or _text(function, "name")
        arguments = getattr(function, "arguments", None)
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments)
        if isinstance(arguments, str):
            self._arguments.append(arguments)

    def made(self, *, cut: bool) -> ToolUse:
        """The call; `cut`: the answer was cut off in it. No arguments at all are none."""
        raw = "".join(self._arguments)
        if raw.strip():
            return ToolUse(self.id, self._name, read_arguments(raw))
        if cut:
            return ToolUse(self.id, self._name, InvalidArguments("", "the answer was cut off here"))
        return ToolUse(self.id, self._name, {})


def _join(details: list[dict[str, Any]], detail: dict[str, Any]) -> None:
    """Adds a piece of OpenRouter's `reasoning_details`: pieces of one block have its index."""
    last = details[-1] if details else {}
    if (last.get("index"), last.get("type")) != (detail.get("index"), detail.get("type")):
        details.append(dict(detail))
        return
    for name, value in detail.items():
        if name in ("text", "summary", "data") and isinstance(value, str):
            last[name] = (last.get(name) or "") + value
        elif value is not None:
            last[name] = value


def _spent(usage: Any) -> Usage:
    """OpenRouter alone says what a call cost, in dollars."""
    cost = getattr(usage, "cost", None)
    return Usage(
        _count(usage, "prompt_tokens"),
        _count(usage, "completion_tokens"),
        _count(getattr(usage, "prompt_tokens_details", None), "cached_tokens"),
        float(cost) if isinstance(cost, int | float) else None,
    )


def _count(of: Any, name: str) -> int:
    value = getattr(of, name, None)
    return value if isinstance(value, int) else 0


def _text(of: Any, name: str) -> str:
    value = getattr(of, name, None)
    return value if isinstance(value, str) else ""


def _items(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str | dict) else []
