"""An answer put together from the events of its stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agl.adapters.anthropic.asking import HIDDEN
from agl.ports.errors import ContextTooLong, DeniedError, StreamDropped
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
from agl.ports.servers import one_line

_ENDINGS = {"max_tokens": Ending.CUT, "pause_turn": Ending.PAUSED}


class Heard:
    """What came so far. Servers that only speak like Anthropic send what they like: each field is
    taken for what it is, and what is not known is passed over."""

    def __init__(self, model: str, on_delta: Callable[[str], None]) -> None:
        self._model = model
        self._on_delta = on_delta
        self._blocks: dict[int, _Block] = {}
        self._usage: dict[str, int] = {}
        self._reason: str | None = None
        self._why_refused = ""
        self.is_whole = False

    def hear(self, event: Any) -> None:
        match getattr(event, "type", None):
            case "message_start":
                message = getattr(event, "message", None)
                self._model = _text(message, "model") or self._model
                self._count(getattr(message, "usage", None))
            case "content_block_start":
                self._begin(_index(event), getattr(event, "content_block", None))
            case "content_block_delta":
                self._add(_index(event), getattr(event, "delta", None))
            case "message_delta":
                delta = getattr(event, "delta", None)
                self._reason = _text(delta, "stop_reason") or self._reason
                self._why_refused = _text(getattr(delta, "stop_details", None), "explanation")
                self._count(getattr(event, "usage", None))
            case "message_stop":
                self.is_whole = True

    def response(self) -> LLMResponse:
        """The answer.

        Raises:
            StreamDropped: it is not whole.
            DeniedError: the model refused.
            ContextTooLong: the answer did not fit the model any more.
        """
        if not self.is_whole:
            raise StreamDropped(f"the answer of {self._model!r} ended before it was whole")
        if self._reason == "refusal":
            why = one_line(self._why_refused) or "no reason was given"
            raise DeniedError(f"{self._model!r} refused to answer: {why}; change what is asked")
        if self._reason == "model_context_window_exceeded":
            raise ContextTooLong(f"the conversation does not fit {self._model!r} any more")
        ending = _ENDINGS.get(self._reason or "", Ending.DONE)
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        made = [
            block.made(cut=ending is Ending.CUT and block is blocks[-1])
            for block in blocks
            if block.is_known
        ]
        return LLMResponse(tuple(made), self._spent(), ending, self._model)

    def _begin(self, index: int, start: Any) -> None:
        block = _Block(start)
        self._blocks[index] = block
        if block.kind == "text" and block.text:
            self._on_delta(block.text[0])

    def _add(self, index: int, delta: Any) -> None:
        block = self._blocks.get(index)
        if block is None:
            return
        match getattr(delta, "type", None):
            case "text_delta" if text := _text(delta, "text"):
                block.text.append(text)
                self._on_delta(text)
            case "thinking_delta":
                block.text.append(_text(delta, "thinking"))
            case "signature_delta":
                block.signature += _text(delta, "signature")
            case "input_json_delta":
                block.text.append(_text(delta, "partial_json"))

    def _count(self, usage: Any) -> None:
        """The counts of a stream are totals; a later one replaces an earlier one."""
        for name in _COUNTS:
            count = getattr(usage, name, None)
            if isinstance(count, int):
                self._usage[name] = count

    def _spent(self) -> Usage:
        new, made, read, out = (self._usage.get(name, 0) for name in _COUNTS)
        return Usage(new + made + read, out, read)


_COUNTS = (
    *("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
    "output_tokens",
)


class _Block:
    """A block that is coming in."""

    def __init__(self, start: Any) -> None:
        self.kind = getattr(start, "type", None)
        self.text = [text for text in (_text(start, "text"), _text(start, "thinking")) if text]
        self.signature = _text(start, "signature")
        self._start = start

    @property
    def is_known(self) -> bool:
        return self.kind in ("text", "thinking", "redacted_thinking", "tool_use")

    def made(self, *, cut: bool) -> Block:
        """The block; `cut`: the answer was cut off in it."""
        text = "".join(self.text)
        match self.kind:
            case "text":
                return TextBlock(text)
            case "thinking":
                return ThinkingBlock(text, self.signature)
            case "redacted_thinking":
                return ThinkingBlock("", HIDDEN + _text(self._start, "data"))
        name, use_id = _text(self._start, "name"), _text(self._start, "id")
        if text.strip():
            return ToolUse(use_id, name, read_arguments(text))
        if cut:
            return ToolUse(use_id, name, InvalidArguments("", "the answer was cut off here"))
        whole = getattr(self._start, "input", None)
        return ToolUse(use_id, name, whole if isinstance(whole, dict) else {})


def _index(event: Any) -> int:
    index = getattr(event, "index", None)
    return index if isinstance(index, int) else 0


def _text(of: Any, name: str) -> str:
    value = getattr(of, name, None)
    return value if isinstance(value, str) else ""
