"""A person whose every answer a test writes down."""

from __future__ import annotations

import asyncio
from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from itertools import count

from agl.ports.errors import InputError, InternalError, NeedsAnswer
from agl.ports.events import Event
from agl.ports.terminal import (
    Answer,
    Answers,
    Screen,
    Terminal,
    TextInput,
    Typed,
    answer_meant,
)


class MemoryTerminal(Terminal):
    """Answers each question as it comes up: by title, in order, or by a function. An answer is a
    choice's label or a text to type; without one, nobody is there. `asked` holds the titles of the
    questions, `shown` the passive screens, `told` the events."""

    def __init__(self, answers: Answers = ()) -> None:
        self._answers = list(answers) if isinstance(answers, Sequence) else answers
        self._open = False
        self._came = count()
        self._line: list[tuple[int, int, asyncio.Event]] = []
        self.asked: list[str] = []
        self.shown: list[Screen[object]] = []
        self.told: list[Event] = []

    async def __aenter__(self) -> Terminal:
        self._open = True
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._open = False

    def tell(self, event: Event) -> None:
        self.told.append(event)

    def show(self, view: Callable[[], Screen[object]]) -> None:
        self._require_open()
        self.shown.append(view())

    async def ask(self, view: Callable[[], Screen[object]], *, priority: int = 0) -> Answer:
        self._require_open()
        up = asyncio.Event()
        place = (-priority, next(self._came), up)
        insort(self._line, place, lo=1)  # behind the one that is up
        self._call_first()
        try:
            await up.wait()
            screen = view()
            if not screen.responses:
                raise InternalError(f"{screen.title!r} was asked and takes no answer")
            self.asked.append(screen.title)
            await asyncio.sleep(0)
            return self._answer(screen)
        finally:
            self._line.remove(place)
            self._call_first()

    def _call_first(self) -> None:
        for _, _, up in self._line[:1]:
            up.set()

    def _answer(self, screen: Screen[object]) -> Answer:
        text = self._text_for(screen)
        if text is None:
            raise NeedsAnswer(
                f"{screen.title!r} needs an answer and nobody is here to give it; pass --answers",
                questions=(screen.title,),
            )
        meant = answer_meant(screen, text)
        if meant is None:
            labels = ", ".join(repr(response.label) for response in screen.responses)
            raise InternalError(f"{text!r} is no answer to {screen.title!r}; it takes {labels}")
        if isinstance(meant, Typed):
            _require_fit(screen, meant)
        return meant

    def _text_for(self, screen: Screen[object]) -> str | None:
        if callable(self._answers):
            return self._answers(screen)
        if isinstance(self._answers, Mapping):
            return self._answers.get(screen.title)
        return self._answers.pop(0) if self._answers else None

    def _require_open(self) -> None:
        if not self._open:
            raise InternalError("the terminal is not open")


def _require_fit(screen: Screen[object], typed: Typed) -> None:
    response = next(one for one in screen.responses if isinstance(one, TextInput))
    try:
        response.maps(typed.text)
    except (ValueError, InputError) as error:
        raise InternalError(
            f"{typed.text!r} does not fit {typed.label!r} of {screen.title!r}: {error}"
        ) from error
