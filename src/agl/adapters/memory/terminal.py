"""A person whose every answer a test writes down."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from agl.ports.errors import InternalError, NeedsAnswer
from agl.ports.events import Event
from agl.ports.terminal import Answer, Answers, Screen, Terminal, answer_meant


class MemoryTerminal(Terminal):
    """Answers at once: by title, in order, or by a function. An answer is a choice's label or a
    text to type; without one, nobody is there. `asked` holds the titles of the questions, `shown`
    the passive screens, `told` the events."""

    def __init__(self, answers: Answers = ()) -> None:
        self._answers = list(answers) if isinstance(answers, Sequence) else answers
        self._open = False
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
        screen = view()
        self.asked.append(screen.title)
        text = self._answer_to(screen)
        if text is None:
            raise NeedsAnswer(
                f"{screen.title!r} needs an answer and nobody is here to give it; pass --answers",
                questions=(screen.title,),
            )
        meant = answer_meant(screen, text)
        if meant is None:
            labels = ", ".join(repr(response.label) for response in screen.responses)
            raise InternalError(
                f"{text!r} is no answer to {screen.title!r}; it takes {labels or 'none'}"
            )
        return meant

    def _answer_to(self, screen: Screen[object]) -> str | None:
        if callable(self._answers):
            return self._answers(screen)
        if isinstance(self._answers, Mapping):
            return self._answers.get(screen.title)
        return self._answers.pop(0) if self._answers else None

    def _require_open(self) -> None:
        if not self._open:
            raise InternalError("the terminal is not open")
