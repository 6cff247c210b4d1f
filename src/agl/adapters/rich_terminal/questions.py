"""Questions in line: the highest priority first, in order of asking within one. Pure."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from agl.ports.errors import InputError
from agl.ports.terminal import Answer, Choice, Picked, Response, Screen, TextInput, Typed


@dataclass(eq=False, slots=True, weakref_slot=True)
class Question:
    """One that was asked, with what the person typed so far. Known by itself, never by its screen:
    two agents may ask the same."""

    view: Callable[[], Screen[object]]
    screen: Screen[object]
    priority: int
    answer: asyncio.Future[Answer]
    draft: str = ""
    cursor: int = 0
    typing: TextInput[object] | None = None
    problem: str = ""

    def __post_init__(self) -> None:
        responses = self.screen.responses
        if len(responses) == 1 and isinstance(responses[0], TextInput):
            self.typing = responses[0]

    @property
    def prompt(self) -> str:
        if self.typing is not None:
            return self.typing.label
        return f"1 to {len(self.screen.responses)}"

    def look(self) -> None:
        """Takes the screen anew from its view; a view that fails fails the question."""
        try:
            screen = self.view()
        except Exception as error:  # noqa: BLE001 a workflow's own code
            if not self.answer.done():
                self.answer.set_exception(error)
        else:
            if screen.responses:
                self.screen = screen

    def take(self, text: str) -> Answer | None:
        """What the text answers; None when the question goes on, with `problem` saying why."""
        self.problem, self.draft, self.cursor = "", "", 0
        if self.typing is not None:
            return self._typed(self.typing, text)
        match self._meant(text.strip()):
            case Choice(label):
                return Picked(label)
            case TextInput() as response:
                self.typing = response
            case None:
                self.problem = f"{text.strip()!r} is none of them"
        return None

    def _typed(self, response: TextInput[object], text: str) -> Answer | None:
        try:
            response.maps(text)
        except (ValueError, InputError) as error:
            self.problem = f"that does not fit: {error}"
            self.draft, self.cursor = text, len(text)
            return None
        return Typed(response.label, text)

    def _meant(self, text: str) -> Response[object] | None:
        responses = self.screen.responses
        named = {response.label: response for response in reversed(responses)}
        numbered = {str(number): response for number, response in enumerate(responses, 1)}
        return (named | numbered).get(text)


class Questions:
    """Which one is up is derived, so that one that gives way keeps its place."""

    def __init__(self) -> None:
        self._line: list[Question] = []

    @property
    def up(self) -> Question | None:
        return max(self._line, key=lambda question: question.priority, default=None)

    @property
    def waiting(self) -> Mapping[int, int]:
        """How many wait behind the one that is up, by priority."""
        return Counter(question.priority for question in self._line if question is not self.up)

    def add(self, question: Question) -> None:
        self._line.append(question)

    def remove(self, question: Question) -> None:
        if question in self._line:
            self._line.remove(question)

    def __iter__(self) -> Iterator[Question]:
        return iter(tuple(self._line))
