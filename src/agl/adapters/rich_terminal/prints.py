"""What an author's code prints while a frame is drawn: it goes above the frame, in whole lines."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import BinaryIO, TextIO


class Prints(io.TextIOBase):
    def __init__(self, out: TextIO, say: Callable[[str], None]) -> None:
        self._out = out
        self._say = say
        self._begun = ""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._out.encoding

    @property
    def buffer(self) -> BinaryIO:
        return self._out.buffer

    def fileno(self) -> int:
        return self._out.fileno()

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._say(line)
        return len(text)

    def end(self) -> None:
        if self._begun:
            self._say(self._begun)
            self._begun = ""
