"""Lines of toned text, measured in the cells they take on a screen."""

from __future__ import annotations

import re
from enum import Enum, auto

from rich.cells import cell_len, set_cell_size

from agl.ports.terminal import harmless


class Tone(Enum):
    """What a piece of text is, for whoever gives it a look."""

    PLAIN = auto()
    FAINT = auto()
    STRONG = auto()
    BUSY = auto()
    GOOD = auto()
    BAD = auto()


Span = tuple[str, Tone]
Line = tuple[Span, ...]
Frame = tuple[Line, ...]


# Joiners that join nothing; at the begin of a line rich 15.0.0 measures what follows in two ways,
# and cutting it divides by zero.
_LOOSE_JOINERS = re.compile(r"(?:^|(?<=\s))[\u200d\ufe0f]+|\u200d[\u200d\ufe0f]+|\u200d(?=\s|$)")


def clean(text: str) -> str:
    """The text without what could act on a terminal or could not be written to one."""
    text = harmless(text).encode("utf-8", "replace").decode().expandtabs(4)
    return _LOOSE_JOINERS.sub("", text) if "\u200d" in text else text


def one_line(text: str) -> str:
    return " ".join(clean(text).split())


def cut(text: str, cells: int) -> str:
    """The text in at most so many cells, its end marked where it is cut."""
    if cell_len(text) <= cells:
        return text
    return set_cell_size(text, cells - 1).rstrip() + "…" if cells > 0 else ""


def fit(text: str, cells: int) -> str:
    """The text in exactly so many cells."""
    return set_cell_size(cut(text, cells), cells)


def line(text: str, tone: Tone, cells: int) -> Line:
    return ((cut(text, cells), tone),)


def text_of(line: Line) -> str:
    return "".join(text for text, _ in line)
