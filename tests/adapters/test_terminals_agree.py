"""A person in memory and one at a TTY: whatever is asked and shown in whatever order, both
terminals answer the same."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from agl.adapters.memory.terminal import MemoryTerminal
from agl.adapters.plain_terminal import PlainTerminal
from agl.ports.errors import AglError, NeedsAnswer
from agl.ports.events import KINDS, Event
from agl.ports.terminal import (
    Choice,
    Component,
    Picked,
    Response,
    Row,
    Rows,
    Screen,
    Text,
    TextInput,
    answer_meant,
)

T = TypeVar("T")

MOMENT = datetime(2026, 1, 2, tzinfo=UTC)
SETTLED = 10


class ViewFailed(Exception):
    """A view of the workflow's own that raises."""


@dataclass(frozen=True)
class Question:
    """What is asked. `withdrawn`: by whoever asked, before the person is there."""

    body: tuple[Component, ...]
    responses: tuple[Response[object], ...]
    priority: int
    fails: bool
    withdrawn: bool


@dataclass(frozen=True)
class Asks:
    """Questions that are asked side by side."""

    questions: Sequence[Question]


@dataclass(frozen=True)
class Shows:
    screen: Screen[object]
    fails: bool


@dataclass(frozen=True)
class Tells:
    event: Event


@dataclass(frozen=True)
class Opens:
    """Or closes, when it is open."""


Call = Asks | Shows | Tells | Opens


@dataclass(frozen=True)
class Answering:
    """How a person answers the next question: by the choice that comes `nth`, or by typing. With
    `slips`, what is no answer is typed first."""

    nth: int
    text: str
    slips: bool

    def to(self, screen: Screen[object]) -> str:
        choices = [one.label for one in screen.responses if isinstance(one, Choice)]
        texts = [one for one in screen.responses if isinstance(one, TextInput)]
        nth = self.nth % (len(choices) + bool(texts))
        if nth < len(choices):
            return choices[nth]
        return str(self.nth) if texts[0].maps is int else self.text


def weighted(*strategies: tuple[int, st.SearchStrategy[T]]) -> st.SearchStrategy[T]:
    often = [strategy for weight, strategy in strategies for _ in range(weight)]
    return st.sampled_from(often).flatmap(lambda strategy: strategy)


words = st.text("ab 1", max_size=4)
components = st.one_of(
    st.builds(Text, st.text(max_size=9)),
    st.lists(words, max_size=3).map(lambda cells: Row(*cells)),
    st.lists(st.lists(words, max_size=3), max_size=3).map(Rows),
)
bodies = st.lists(components, max_size=2).map(tuple)
response = st.one_of(
    st.builds(Choice, st.sampled_from(["yes", "no", "2", "漢"]), st.none()),
    st.builds(TextInput, st.sampled_from(["yes", "why", "1"]), st.sampled_from([str, int])),
)
responses = weighted(
    (4, st.lists(response, min_size=1, max_size=4).map(tuple)),
    (1, st.just(())),
)
typed = st.text(st.sampled_from("ab 1\té漢\n\u2028\u0085\x0c"), max_size=6)
answerings = st.builds(Answering, st.integers(0, 9), typed, st.booleans())
# One who leaves early, or one who stays.
people = weighted(
    (1, st.lists(answerings, max_size=3)), (3, st.lists(answerings, min_size=9, max_size=20))
)
seldom = st.sampled_from([False] * 4 + [True])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)
details = st.dictionaries(
    st.sampled_from(["text", "activity", "usage", "answer", "processes", "nth", "duration_s"]),
    json_values,
    max_size=3,
)
asks = st.lists(
    st.builds(Question, bodies, responses, st.integers(-1, 1), seldom, seldom),
    min_size=1,
    max_size=5,
).map(Asks)
shows = st.builds(Shows, bodies.map(lambda body: Screen[object]("Board", *body)), st.booleans())
tells = st.builds(
    lambda kind, about, more: Tells(Event(kind, MOMENT, about, about, more)),
    st.sampled_from([*KINDS, "brand_new"]),
    st.text(max_size=3),
    details,
)
calls: st.SearchStrategy[Call] = weighted((5, asks), (2, shows), (2, tells), (1, st.just(Opens())))


class Typist(io.StringIO):
    """Sees what a terminal prints, and once `comes` types what it waits for."""

    def __init__(self, keyboard: int, answerings: Sequence[Answering]) -> None:
        super().__init__()
        self._keyboard = keyboard
        self._answerings = iter(answerings)
        self._screens: dict[str, Screen[object]] = {}
        self._here = False
        self._prompts: list[str] = []
        self._lines: list[str] = []
        self.asked: list[str] = []

    def is_asked(self, screens: dict[str, Screen[object]]) -> None:
        self._screens = screens
        self._here = False

    def comes(self) -> None:
        self._here = True
        if self._prompts:
            self._type()

    def write(self, text: str) -> int:
        if text.startswith("? "):
            self.asked.append(text[2:].split("\n")[0])
            self._prompts = []
            self._lines = []
        elif self.asked and text in _prompts(self._screens.get(self.asked[-1])):
            self._prompts.append(text)
            if self._here:
                self._type()
        return super().write(text)

    def _type(self) -> None:
        if len(self._prompts) == 1:
            self._lines = list(self._lines_for(self._screens[self.asked[-1]]))
        os.write(self._keyboard, self._lines.pop(0).encode())

    def _lines_for(self, screen: Screen[object]) -> Iterator[str]:
        answering = next(self._answerings, None)
        if answering is None:
            yield "\x04"
            return
        text = answering.to(screen)
        meant = answer_meant(screen, text)
        assert meant is not None
        kind = Choice if isinstance(meant, Picked) else TextInput
        nth, response = next(
            (nth, one)
            for nth, one in enumerate(screen.responses, 1)
            if isinstance(one, kind) and one.label == meant.label
        )
        if not isinstance(screen.responses[0], TextInput) or len(screen.responses) > 1:
            if answering.slips:
                yield "0\n"
            yield f"{nth}\n"
        if isinstance(response, TextInput):
            if answering.slips and response.maps is int:
                yield "x\n"
            yield f"{text}\n"


def _prompts(screen: Screen[object] | None) -> list[str]:
    """The lines after which a terminal waits."""
    if screen is None:
        return []
    labels = [one.label for one in screen.responses if isinstance(one, TextInput)]
    menu = f"  type a number from 1 to {len(screen.responses)}, then Enter:\n"
    return [menu, *(f"  {label}:\n" for label in labels)]


class Memory:
    def __init__(self, answerings: Sequence[Answering]) -> None:
        coming = iter(answerings)

        def answer(screen: Screen[object]) -> str | None:
            answering = next(coming, None)
            return None if answering is None else answering.to(screen)

        self.terminal = MemoryTerminal(answer)
        self.asked = self.terminal.asked

    async def person_comes(self, open_titles: Callable[[], set[str]]) -> None:
        """Is always there."""

    def is_asked(self, screens: dict[str, Screen[object]]) -> None:
        """Sees the screens themselves."""


class Tty:
    def __init__(self, typist: Typist, stdin: io.TextIOWrapper) -> None:
        self._typist = typist
        self.is_asked = typist.is_asked
        self.terminal = PlainTerminal(stdin, typist)
        self.asked = typist.asked

    async def person_comes(self, open_titles: Callable[[], set[str]]) -> None:
        for _ in range(SETTLED):
            await asyncio.sleep(0)
        if self.asked and self.asked[-1] in open_titles():
            self._typist.comes()


@contextmanager
def tty(answerings: Sequence[Answering]) -> Iterator[Tty]:
    keyboard, program = os.openpty()
    try:
        with os.fdopen(program) as stdin:
            yield Tty(Typist(keyboard, answerings), stdin)
    finally:
        os.close(keyboard)


async def answers_of(side: Memory | Tty, called: Sequence[Call]) -> list[object]:
    """What came of each call, and in which order the questions came up."""
    is_open, came = False, list[object]()
    person_left = False
    terminal = side.terminal
    for number, call in enumerate(called):
        match call:
            case Opens():
                await (terminal.__aexit__() if is_open else terminal.__aenter__())
                is_open = not is_open
            case Tells(event):
                terminal.tell(event)
            case Shows():
                try:
                    terminal.show(_view(call.screen, fails=call.fails))
                except (AglError, ViewFailed) as error:
                    came.append(type(error))
            case Asks(questions):
                titled = {f"question {number}.{nth}": one for nth, one in enumerate(questions)}
                before = len(side.asked)
                answers = [
                    (title, answer)
                    for title, answer in await _ask_all(side, titled)
                    if not titled[title].withdrawn
                ]
                came.append(sorted(answers, key=lambda one: one[0]))
                # Where nobody is there, no question has to wait for another.
                if not person_left:
                    came.append([title for title, _ in answers])
                    came.append([one for one in side.asked[before:] if not titled[one].withdrawn])
                person_left |= any(answer == (title,) for title, answer in answers)
    return came


def _view(screen: Screen[object], *, fails: bool) -> Callable[[], Screen[object]]:
    def view() -> Screen[object]:
        if fails:
            raise ViewFailed
        return screen

    return view


async def _ask_all(
    side: Memory | Tty, questions: Mapping[str, Question]
) -> list[tuple[str, object]]:
    """What came of each question that was not withdrawn in time, in the order in which it came."""
    came: list[tuple[str, object]] = []
    screens = {
        title: Screen[object](title, *one.body, responses=one.responses)
        for title, one in questions.items()
    }

    async def ask(title: str, question: Question) -> None:
        view = _view(screens[title], fails=question.fails)
        answer: object
        try:
            answer = await side.terminal.ask(view, priority=question.priority)
        except NeedsAnswer as error:
            answer = error.questions
        except (AglError, ViewFailed) as error:
            answer = type(error)
        came.append((title, answer))

    side.is_asked(screens)
    tasks = {
        title: asyncio.create_task(ask(title, question)) for title, question in questions.items()
    }
    await asyncio.sleep(0)
    for title, question in questions.items():
        if question.withdrawn:
            tasks[title].cancel()
    await side.person_comes(lambda: {title for title, task in tasks.items() if not task.done()})
    async with asyncio.timeout(60):
        for ended in await asyncio.gather(*tasks.values(), return_exceptions=True):
            assert ended is None or isinstance(ended, asyncio.CancelledError), ended
    return came


@pytest.mark.slow
@pytest.mark.parametrize("examples", [100, pytest.param(600, marks=pytest.mark.long)])
def test_both_terminals_answer_the_same(examples: int) -> None:
    # Shrinking would take minutes of waiting.
    @settings(max_examples=examples, deadline=None, phases=[Phase.generate])
    @given(st.lists(calls, min_size=1, max_size=6), people)
    def check(called: list[Call], answerings: list[Answering]) -> None:
        called = [Opens(), *called]
        memory = asyncio.run(answers_of(Memory(answerings), called))
        with tty(answerings) as side:
            assert asyncio.run(answers_of(side, called)) == memory

    check()
