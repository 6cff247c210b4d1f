"""The last lines of the screen, written over in place; what is printed goes above them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

from rich.color import ColorSystem
from rich.style import Style

from agl.adapters.rich_terminal.lines import Frame, Line, Tone, text_of

_STYLES = {
    Tone.PLAIN: Style(),
    Tone.FAINT: Style(dim=True),
    Tone.STRONG: Style(bold=True),
    Tone.BUSY: Style(color="cyan"),
    Tone.GOOD: Style(color="green"),
    Tone.BAD: Style(color="red"),
}
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"
_UP, _ERASE_LINE, _ERASE_DOWN = "\x1b[{}A", "\x1b[K", "\x1b[J"


class Region:
    """Between two writes the cursor stands below the frame and no mode is changed, so that a kill
    leaves a screen that can be worked on."""

    def __init__(self, out: TextIO, *, colour: bool) -> None:
        self._out = out
        self._colour = colour
        self._drawn: tuple[str, ...] = ()

    def size(self) -> os.terminal_size:
        """Columns and lines; 80 by 24 where they cannot be known."""
        with suppress(OSError, ValueError):
            size = os.get_terminal_size(self._out.fileno())
            if size.columns > 0 and size.lines > 0:
                return size
        return os.terminal_size((80, 24))

    def draw(self, frame: Frame, above: Sequence[Line] = ()) -> None:
        """Prints `above`, and below it the frame in place of the last one."""
        lines = tuple(map(self._encoded, frame))
        if not above and lines == self._drawn:
            return
        parts = [_UP.format(len(self._drawn))] if self._drawn else []
        if above:
            parts.append(f"\r{_ERASE_DOWN}")
            parts += [f"{self._encoded(line)}\r\n" for line in above]
            self._drawn = ()
        parts.append(_NO_WRAP)
        for number, line in enumerate(lines):
            if number < len(self._drawn) and self._drawn[number] == line:
                parts.append("\n")
            else:
                # After a line that fills the screen, erasing would take its last cell.
                parts.append(f"\r{_ERASE_LINE}{line}\r\n")
        parts.append(f"\r{_ERASE_DOWN}{_WRAP}" if len(lines) < len(self._drawn) else f"\r{_WRAP}")
        self._drawn = lines
        self.write("".join(parts))

    def leave(self) -> None:
        """Lets the frame stand where it is."""
        self._drawn = ()

    def write(self, text: str) -> None:
        encoding = getattr(self._out, "encoding", None) or "utf-8"
        # A screen that went away stops no run.
        with suppress(OSError, ValueError):
            self._out.write(text.encode(encoding, "replace").decode(encoding))
            self._out.flush()

    def _encoded(self, line: Line) -> str:
        if not self._colour:
            return text_of(line)
        return "".join(
            _STYLES[tone].render(text, color_system=ColorSystem.STANDARD) for text, tone in line
        )
