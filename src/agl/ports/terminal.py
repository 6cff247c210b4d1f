"""Screens: what a workflow shows, and the one way it asks a person."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from agl.ports.events import Event

# Generic values here have no slots: calling Screen[bool](…) on a frozen, slotted dataclass raises
# TypeError in Python 3.11 (typing sets __orig_class__, and only AttributeError is expected of it).
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True, slots=True, init=False)
class Row:
    """Cells side by side. Takes texts; a plain str is a Text."""

    cells: tuple[Text, ...]

    def __init__(self, *cells: Text | str) -> None:
        object.__setattr__(self, "cells", tuple(_text(cell) for cell in cells))


@dataclass(frozen=True, slots=True, init=False)
class Rows:
    """A table. Takes rows, or sequences of cells."""

    rows: tuple[Row, ...]

    def __init__(self, rows: Sequence[Row | Sequence[Text | str]]) -> None:
        made = tuple(row if isinstance(row, Row) else Row(*row) for row in rows)
        object.__setattr__(self, "rows", made)


Component = Text | Row | Rows


@dataclass(frozen=True)
class Choice(Generic[T_co]):
    """An answer to pick. The label is what is shown, recorded, and looked up again on a resume."""

    label: str
    value: T_co


@dataclass(frozen=True)
class TextInput(Generic[T_co]):
    """An answer to type; `maps` makes a value of it and must be pure."""

    label: str
    maps: Callable[[str], T_co] = field(compare=False, repr=False)


Response = Choice[T_co] | TextInput[T_co]


@dataclass(frozen=True, init=False)
class Screen(Generic[T_co]):
    """A title, a body, and for a question the possible responses. A plain str is a Text."""

    title: str
    body: tuple[Component, ...]
    responses: tuple[Response[T_co], ...]

    def __init__(
        self,
        title: str,
        *body: Component | str,
        responses: Sequence[Response[T_co]] = (),
    ) -> None:
        object.__setattr__(self, "title", title)
        parts = tuple(Text(part) if isinstance(part, str) else part for part in body)
        object.__setattr__(self, "body", parts)
        object.__setattr__(self, "responses", tuple(responses))


def _text(cell: Text | str) -> Text:
    return Text(cell) if isinstance(cell, str) else cell


@dataclass(frozen=True, slots=True)
class Picked:
    """The person picked the choice with this label."""

    label: str


@dataclass(frozen=True, slots=True)
class Typed:
    """The person typed this into the text input with this label."""

    label: str
    text: str


Answer = Picked | Typed


def answer_meant(screen: Screen[T], text: str) -> Answer | None:
    """The answer that a text gives: the choice with that label, else the first text input with it
    typed in, else None."""
    for response in screen.responses:
        if isinstance(response, Choice) and response.label == text:
            return Picked(text)
    for response in screen.responses:
        if isinstance(response, TextInput):
            return Typed(response.label, text)
    return None


Answers = Mapping[str, str] | Sequence[str] | Callable[[Screen[object]], str | None]
"""Answers written down beforehand, each a choice's label or a text to type: by title, in order, or
by a function that may know none."""


# ECMA-48 control sequences and strings, then all control characters but tab and line feed, and the
# marks that turn the direction of text around (Unicode TR9).
_HARMFUL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def harmless(text: str) -> str:
    """The text without what could act on a terminal; tabs and line feeds stay."""
    return _HARMFUL.sub("", text)


class Terminal(ABC):
    """The person's side. Open as an async context around a workflow's function and nothing else."""

    @abstractmethod
    async def __aenter__(self) -> Terminal:
        """Takes the display."""

    @abstractmethod
    async def __aexit__(self, *exc: object) -> None:
        """Gives the display back; never swallows an exception."""

    @abstractmethod
    def tell(self, event: Event) -> None:
        """Progress. Cheap, never raises, allowed also outside the context."""

    @abstractmethod
    def show(self, view: Callable[[], Screen[object]]) -> None:
        """Puts a passive view into the one slot, in place of the last. The view is pure and may be
        called again at any time.

        Raises:
            InternalError: the terminal is not open.
        """

    @abstractmethod
    async def ask(self, view: Callable[[], Screen[object]], *, priority: int = 0) -> Answer:
        """Asks and waits: the highest priority first, in order of asking within one. What was
        typed is left as it is, and fits.

        Raises:
            NeedsAnswer: nobody is there to answer.
            InternalError: the terminal is not open, or the screen has no responses.
        """
