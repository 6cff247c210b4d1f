"""`--events`: what happens in a run, as JSON lines."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from agl.cli.page import Page
from agl.ports.errors import InputError
from agl.ports.events import event_to_json

if TYPE_CHECKING:
    import argparse

    from agl.ports.events import Event

STDOUT = "-"


def add_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--events",
        metavar="FILE",
        help="write what happens into FILE as JSON lines; - is standard output",
    )


class EventLines:
    """Writes one line for each event. A reader that went away never stops a run."""

    def __init__(self, target: str, stream: TextIO) -> None:
        self._target = target
        self._stream: TextIO | None = stream

    def __call__(self, event: Event) -> None:
        if self._stream is None:
            return
        try:
            line = json.dumps(event_to_json(event), ensure_ascii=False)
            self._stream.write(line.encode("utf-8", "backslashreplace").decode() + "\n")
            self._stream.flush()
        except (OSError, ValueError, TypeError):
            # Python would flush what is left in the buffer at exit, and fail again.
            with Path(os.devnull).open("w") as nowhere:
                os.dup2(nowhere.fileno(), self._stream.fileno())
            self._stream = None

    def end(self, page: Page) -> Page:
        """The page with its text on standard error, if the lines had standard output."""
        if self._stream is not None:
            self._stream.close()
        if self._target != STDOUT:
            return page
        notes = "\n".join(part for part in (page.text, page.notes) if part)
        return dataclasses.replace(page, text="", notes=notes)


def lines_to(target: str | None, *, as_json: bool) -> EventLines | None:
    """Where `--events` asks the lines to be written; the file is made anew.

    Raises:
        InputError: the file cannot be made, or standard output is to hold two things.
    """
    if target is None:
        return None
    if target == STDOUT and as_json:
        raise InputError("--events - and --json both need standard output; name a file for one")
    try:
        if target == STDOUT:
            # A descriptor of its own: while an author's code runs, 1 leads to standard error.
            return EventLines(target, os.fdopen(os.dup(1), "w", encoding="utf-8"))
        return EventLines(target, Path(target).open("w", encoding="utf-8"))
    except OSError as error:
        raise InputError(f"--events {target!r} cannot be written: {error.strerror}") from error
