"""A model whose every answer a test writes down."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agl.ports.llm import LLM, Ending, LLMRequest, LLMResponse, TextBlock, ToolUse
from agl.ports.models import Usage

Answers = Sequence[LLMResponse | Exception] | Callable[[LLMRequest], LLMResponse]


class MemoryLLM(LLM):
    """Gives the answer whose turn it is in the conversation, or raises it; after the last one it
    has nothing to say. One function may give them all. `requests` holds what it was asked."""

    def __init__(self, answers: Answers = ()) -> None:
        self._answers = answers
        self.requests: list[LLMRequest] = []

    async def generate(self, request: LLMRequest, on_delta: Callable[[str], None]) -> LLMResponse:
        self.requests.append(request)
        found = self._answer_to(request)
        if isinstance(found, Exception):
            raise found
        for block in found.blocks:
            if isinstance(block, TextBlock):
                on_delta(block.text)
        return found

    def _answer_to(self, request: LLMRequest) -> LLMResponse | Exception:
        if callable(self._answers):
            return self._answers(request)
        turn = len(request.messages) // 2
        return self._answers[turn] if turn < len(self._answers) else answer()


def answer(
    text: str = "",
    *calls: ToolUse,
    usage: Usage = Usage(),  # noqa: B008 - frozen
    ending: Ending = Ending.DONE,
) -> LLMResponse:
    """An answer of a text and calls."""
    said = (TextBlock(text),) if text else ()
    return LLMResponse((*said, *calls), usage, ending, "memory")
