"""What a command answers, and how it is written out."""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import TextIO

from agl.ports.errors import UpstreamError

# All control characters but tab and line feed: none may reach a terminal from stored text.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

_LEAST_ROOM = 20
"""The columns in which it is worth while to break a line between words."""


class HelpWanted(Exception):
    """The person asked for help; the argument is the text."""


@dataclass(frozen=True, slots=True)
class Page:
    """`document` for `--json`, `text` for a person on standard output, `notes` for a person on
    standard error. `verbatim`: the text is content, written as it is where no terminal reads it."""

    document: Mapping[str, object]
    text: str
    notes: str = ""
    exit_code: int = 0
    verbatim: bool = False


def plain(value: object) -> object:
    """A value of the api as JSON."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    match value:
        case datetime():
            return value.isoformat()
        case Enum():
            return plain(value.value)
        case Path():
            return str(value)
        case Mapping():
            return {str(key): plain(inner) for key, inner in value.items()}
        case list() | tuple() | frozenset() | set():
            return [plain(inner) for inner in value]
    return value


def document_of(value: object) -> dict[str, object]:
    """A dataclass of the api as a JSON object."""
    document = plain(value)
    assert isinstance(document, dict)
    return document


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Names, and beside each what is known; empty ones are left out, and lines of one fact stand
    under each other. At a terminal they break between words."""
    known = [(name, fact.strip()) for name, fact in rows if fact.strip()]
    indent = max(len(name) for name, _ in known) + 2
    width = terminal_width()
    room = None if width is None else width - indent
    return "\n".join(
        f"{name:{indent}}" + ("\n" + " " * indent).join(_broken(fact, room)) for name, fact in known
    )


def _broken(text: str, room: int | None) -> list[str]:
    """The lines of a text, none longer than the room where a space allows it."""
    lines = text.split("\n")
    if room is None or room < _LEAST_ROOM:
        return lines
    import textwrap

    wrap = textwrap.TextWrapper(room, break_long_words=False, break_on_hyphens=False)
    return [part for line in lines for part in wrap.wrap(line) or [""]]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns as wide as their widest cell; one without a filled cell is left out."""
    body = [list(row) for row in rows]
    filled = [column for column in range(len(heads)) if any(row[column] for row in body)]
    lines = [[line[column] for column in filled] for line in [list(heads), *body]]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    padded = (
        "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) for line in lines
    )
    return "\n".join(line.rstrip() for line in padded)


def one_line(text: str, most: int = 60) -> str:
    """The text on one line, cut where it is longer than that."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def terminal_width() -> int | None:
    """The columns of the terminal that standard output is, None if it is none."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    import shutil

    return shutil.get_terminal_size().columns


def cut_to_terminal(text: str) -> str:
    """Each line cut to the width of the terminal it goes to; whole when it goes elsewhere."""
    width = terminal_width()
    if width is None:
        return text
    cut = (line if len(line) <= width else line[: width - 1] + "…" for line in text.split("\n"))
    return "\n".join(cut)


def write(page: Page, *, as_json: bool) -> int:
    """Prints the page and returns the exit code. A reader that went away is no failure."""
    if as_json:
        import json

        _print(sys.stdout, json.dumps(page.document, indent=2))
        return page.exit_code
    is_read = sys.stdout is not None and sys.stdout.isatty()
    _print(sys.stdout, page.text, verbatim=page.verbatim and not is_read)
    say(page.notes)
    return page.exit_code


def say(text: str) -> None:
    """A word to the person, on standard error."""
    _print(sys.stderr, text)


def _print(stream: TextIO | None, text: str, *, verbatim: bool = False) -> None:
    if stream is None or not text:
        return
    encoding = stream.encoding or "utf-8"
    harmless = text if verbatim else _CONTROLS.sub("\ufffd", text)
    harmless = harmless.encode(encoding, "backslashreplace").decode(encoding)
    try:
        stream.write(f"{harmless}\n")
        stream.flush()
    except OSError as error:
        # Python would flush what is left in the buffer at exit, fail again, and exit with 120.
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())
        if not isinstance(error, BrokenPipeError):
            raise UpstreamError(f"the answer cannot be written: {error.strerror}") from error
