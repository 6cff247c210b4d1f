"""A person's desk: a pseudo terminal with a screen that can be read as text."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import struct
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

import pyte


class Screen(pyte.HistoryScreen):
    def draw(self, data: str) -> None:
        # pyte 0.8.2 drops what follows a joiner in one call.
        for character in data:
            super().draw(character)

    def erase_in_line(self, how: int = 0, private: bool = False) -> None:
        # As in xterm: behind a line that fills the screen the cursor is still on its last cell.
        if self.cursor.x == self.columns:
            self.cursor.x -= 1
        super().erase_in_line(how, private)


class Desk:
    """`keyboard` is the person's end; `stdin` and `out` are the program's."""

    def __init__(self, columns: int, lines: int) -> None:
        self.keyboard, program = os.openpty()
        self.stdin: TextIO = os.fdopen(program, "r")
        self.out: TextIO = os.fdopen(os.dup(program), "w", encoding="utf-8")
        self.screen = Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self.seen = b""
        self.resize(columns, lines)

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.keyboard, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.screen.resize(lines, columns)
        os.kill(os.getpid(), signal.SIGWINCH)

    def types(self, text: str) -> None:
        os.write(self.keyboard, text.encode())

    def pastes(self, text: str) -> None:
        self.types(f"\x1b[200~{text}\x1b[201~")

    @property
    def rows(self) -> str:
        """What is on the screen, without empty lines at its end."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip("\n")

    @property
    def scrolled_rows(self) -> str:
        """What is on the screen, below what has left it at the top."""
        left = [
            "".join(line[column].data for column in range(self.screen.columns)).rstrip()
            for line in self.screen.history.top
        ]
        return "\n".join((*left, self.rows))

    @property
    def modes(self) -> list[object]:
        return termios.tcgetattr(self.stdin.fileno())

    async def until(self, true: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(60):
                while not true():
                    await asyncio.sleep(0.002)
        except TimeoutError:
            raise AssertionError(f"the screen stayed:\n{self.rows}") from None

    async def until_shown(self, rows: str) -> None:
        """Until this and nothing else is on the screen."""
        try:
            await self.until(lambda: self.rows == rows)
        except AssertionError:
            assert self.rows == rows  # shows the difference

    async def until_seen(self, text: str) -> None:
        await self.until(lambda: text in self.rows)

    async def until_gone(self, text: str) -> None:
        await self.until(lambda: text not in self.rows)

    async def until_asked(self) -> None:
        """Until an empty line to type in stands there, and nothing more is drawn."""
        await self.until(lambda: self.rows.endswith(":"))
        await self.until_still()

    async def until_still(self) -> None:
        """Until nothing more is drawn."""
        before = -1
        while before < len(self.seen):
            before = len(self.seen)
            await asyncio.sleep(0.3)

    @contextmanager
    def watched(self) -> Iterator[Desk]:
        """Reads what is written, as long as the event loop runs."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self.keyboard, self._read)
        try:
            yield self
        finally:
            loop.remove_reader(self.keyboard)
            self.close()

    def hang_up(self) -> None:
        """The window closes."""
        asyncio.get_running_loop().remove_reader(self.keyboard)
        os.dup2(os.open(os.devnull, os.O_RDONLY), self.keyboard)

    def close(self) -> None:
        for close in (self.out.close, self.stdin.close, lambda: os.close(self.keyboard)):
            with suppress(OSError):  # the window closed before
                close()

    def _read(self) -> None:
        data = os.read(self.keyboard, 65536)
        self.seen += data
        self._stream.feed(data)
