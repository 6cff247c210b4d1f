"""All the state of a run. It moves on by records alone, and only forward."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, count, islice
from typing import overload

from agl.loop.records import Answered, Begun, Record, Returned, Told
from agl.ports.llm import Block, Ending, LLMResponse, Message, TextBlock, ToolResult, ToolUse
from agl.ports.models import Usage

Keep = Callable[[Record], None]
"""Puts a record where a kill cannot reach it; when it returns, the record counts."""


class Trajectory:
    """What was said, what was used, and which calls are open.

    `calls` are those of the last answer while any of them has no answer, `answers` what came of
    them so far, by their places; `begun` those that were set going, in this process or a dead one.
    """

    def __init__(self, keep: Keep = lambda record: None) -> None:
        self.keep = keep
        self._messages: list[Message] = []
        self.usage = Usage()
        self.turns = 0
        self.model = ""
        self.text = ""
        self.ending = Ending.DONE
        self.calls: tuple[ToolUse, ...] = ()
        self.begun: set[int] = set()
        self.answers: dict[int, Returned] = {}
        self.unfit_turns = 0

    @property
    def messages(self) -> Messages:
        """The conversation up to now; it stays as it is when the run goes on."""
        return Messages(self._messages)

    @property
    def is_models_turn(self) -> bool:
        return bool(self._messages) and self._messages[-1].role == "user"

    @property
    def open_calls(self) -> list[int]:
        """The places of the calls that have no answer."""
        return [place for place in range(len(self.calls)) if place not in self.answers]

    def add(self, record: Record) -> None:
        """Keeps the record, then moves on by it."""
        self.keep(record)
        self.take(record)

    def take(self, record: Record) -> None:
        """Moves on by a record that is kept already.

        Raises:
            ValueError: it does not follow on what is there.
        """
        if not self._is_next(record):
            raise ValueError("does not follow on the lines before it")
        match record:
            case Told(text):
                self._messages.append(Message("user", (TextBlock(text),)))
            case Answered(response):
                message = Message("assistant", response.blocks)
                self._messages.append(message)
                self.usage += response.usage
                self.turns += 1
                self.model = response.model
                self.text = message.text or self.text
                self.ending = response.ending
                self.calls = message.calls
            case Begun(places):
                self.begun.update(places)
            case Returned(place, _):
                self.answers[place] = record
                if len(self.answers) == len(self.calls):
                    self._end_turn()

    def _is_next(self, record: Record) -> bool:
        match record:
            case Told():
                return not self.calls and not self.is_models_turn
            case Answered():
                return self.is_models_turn
            case Begun(places):
                return all(place < len(self.calls) for place in places)
            case Returned(place):
                return place < len(self.calls) and place not in self.answers

    def _end_turn(self) -> None:
        answers = [self.answers[place].answer for place in range(len(self.calls))]
        results = tuple(
            ToolResult(call.id, answer.text, answer.is_error)
            for call, answer in zip(self.calls, answers, strict=True)
        )
        self._messages.append(Message("user", results))
        fit = any(answer.arguments_fit for answer in answers)
        self.unfit_turns = 0 if fit else self.unfit_turns + 1
        self.calls, self.begun, self.answers = (), set(), {}


class Messages(Sequence[Message]):
    """The first part of a list that only grows: it never changes, and nothing is copied."""

    __slots__ = ("_all", "_count")

    def __init__(self, messages: list[Message]) -> None:
        self._all = messages
        self._count = len(messages)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Message]:
        return islice(self._all, self._count)

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...

    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        places = range(self._count)[index]
        return (
            self._all[places]
            if isinstance(places, int)
            else tuple(map(self._all.__getitem__, places))
        )


def with_own_ids(response: LLMResponse) -> LLMResponse:
    """The answer with an id of its own for each call: some servers send none, or one twice."""
    ids = [block.id for block in response.blocks if isinstance(block, ToolUse)]
    if all(ids) and len(set(ids)) == len(ids):
        return response
    seen: set[str] = set()
    blocks: list[Block] = []
    for block in response.blocks:
        if isinstance(block, ToolUse):
            wanted = block.id or "call"
            names = chain([block.id] if block.id else [], (f"{wanted}_{n}" for n in count(2)))
            use_id = next(name for name in names if name not in seen)
            seen.add(use_id)
            block = block if use_id == block.id else replace(block, id=use_id)
        blocks.append(block)
    return replace(response, blocks=tuple(blocks))
