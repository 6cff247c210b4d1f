"""Plain lines on any output, and questions to a person at a TTY."""

from __future__ import annotations

import asyncio
import heapq
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import zip_longest
from typing import TextIO, assert_never

from agl.ports.errors import InputError, InternalError, NeedsAnswer
from agl.ports.events import Event, line_about
from agl.ports.terminal import (
    Answer,
    Choice,
    Component,
    Picked,
    Response,
    Row,
    Rows,
    Screen,
    Terminal,
    Text,
    TextInput,
    Typed,
    harmless,
)

_PASTE_S = 0.05
_MAX_CHARS = 240


class _Line:
    """People waiting for one thing: the highest priority next, then who came first."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._came = 0
        self._taken = False

    @asynccontextmanager
    async def turn(self, priority: int) -> AsyncIterator[None]:
        called = asyncio.get_running_loop().create_future()
        self._came += 1
        heapq.heappush(self._waiting, (-priority, self._came, called))
        self._call_next()
        try:
            await called
            yield
        finally:
            if called.done() and not called.cancelled():
                self._taken = False
            self._call_next()

    def _call_next(self) -> None:
        while self._waiting and not self._taken:
            _, _, called = heapq.heappop(self._waiting)
            if not called.done():
                called.set_result(None)
                self._taken = True


class PlainTerminal(Terminal):
    """Prints what happens to `out` in whole lines, never an escape byte. Asks when `stdin` is a
    TTY: one question at a time, which stays up until it is answered or withdrawn."""

    def __init__(self, stdin: TextIO | None, out: TextIO | None) -> None:
        self._fd = _tty(stdin)
        self._out = out
        self._open = False
        self._view: Callable[[], Screen[object]] | None = None
        self._shown: Screen[object] | None = None
        self._line = _Line()

    async def __aenter__(self) -> Terminal:
        self._open = True
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._open = False
        self._look_again()
        self._view = None

    def tell(self, event: Event) -> None:
        # The question itself is printed; how the run ended is what the command answers.
        if event.kind not in ("asked", "run_ended"):
            line = line_about(event)
            self._print(line if len(line) <= _MAX_CHARS else line[: _MAX_CHARS - 1] + "…")
        if not event.kind.startswith("agent_"):
            self._look_again()

    def show(self, view: Callable[[], Screen[object]]) -> None:
        self._require_open()
        self._view = view
        self._print_if_new(view())

    async def ask(self, view: Callable[[], Screen[object]], *, priority: int = 0) -> Answer:
        self._require_open()
        async with self._line.turn(priority):
            screen = view()
            if not screen.responses:
                raise InternalError(f"{screen.title!r} was asked and takes no answer")
            try:
                return await self._answer_to(screen)
            except EOFError:
                raise NeedsAnswer(
                    f"{screen.title!r} needs an answer and nobody is at the terminal;"
                    " pass --answers FILE, or resume where somebody can type",
                    questions=(screen.title,),
                ) from None

    async def _answer_to(self, screen: Screen[object]) -> Answer:
        responses = screen.responses
        self._print(f"? {_screen_text(screen)}")
        if len(responses) == 1 and isinstance(responses[0], TextInput):
            return await self._typed(responses[0])
        for number, response in enumerate(responses, 1):
            self._print(f"  {number}) {response.label}")
        while True:
            self._prompt(f"  type a number from 1 to {len(responses)}, then Enter:")
            text = (await self._read()).strip()
            match _meant(responses, text):
                case Choice(label):
                    return Picked(label)
                case TextInput() as response:
                    return await self._typed(response)
            self._print(f"  {text!r} is none of them")

    async def _typed(self, response: TextInput[object]) -> Answer:
        while True:
            self._prompt(f"  {response.label}:")
            text = await self._read(paste=True)
            try:
                response.maps(text)
            except (ValueError, InputError) as error:
                self._print(f"  that does not fit: {error}")
            else:
                return Typed(response.label, text)

    def _prompt(self, text: str) -> None:
        """Asks to type, if somebody can."""
        if self._fd is None:
            raise EOFError
        self._print(text)

    async def _read(self, *, paste: bool = False) -> str:
        """The next line; as a paste, with all lines that come right behind it."""
        data = await self._next_line(None)
        if not data:
            raise EOFError
        while paste and (more := await self._next_line(_PASTE_S)):
            data += more
        return data.decode(errors="replace").replace("\r\n", "\n").removesuffix("\n")

    async def _next_line(self, within_s: float | None) -> bytes:
        """What a TTY has to read, which is a line; nothing at the end of input or of the time.
        Reads only when it is waited for, so that a withdrawn question takes no line along."""
        if self._fd is None:
            return b""
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(self._fd, ready.set)
        try:
            async with asyncio.timeout(within_s):
                await ready.wait()
        except TimeoutError:
            return b""
        finally:
            loop.remove_reader(self._fd)
        try:
            data = os.read(self._fd, 65536)
        except OSError:
            data = b""
        if not data:
            self._fd = None
        return data

    def _look_again(self) -> None:
        """Shows the passive view anew if what it shows has changed."""
        if self._view is None:
            return
        try:
            screen = self._view()
        except Exception as error:  # noqa: BLE001 a workflow's own code, called from `tell`
            self._view = None
            self._print(f"warning: what the workflow shows failed: {error}")
        else:
            self._print_if_new(screen)

    def _print_if_new(self, screen: Screen[object]) -> None:
        if screen != self._shown:
            self._shown = screen
            self._print(_screen_text(screen))

    def _print(self, text: str) -> None:
        if self._out is None:  # it was closed when Python started
            return
        encoding = getattr(self._out, "encoding", None) or "utf-8"
        printed = harmless(text).encode(encoding, "backslashreplace").decode(encoding)
        # A reader that went away, or a closed stream, stops no run.
        with suppress(OSError, ValueError):
            self._out.write(f"{printed}\n")
            self._out.flush()

    def _require_open(self) -> None:
        if not self._open:
            raise InternalError("the terminal is not open")


def _tty(stdin: TextIO | None) -> int | None:
    if stdin is None or stdin.closed or not stdin.isatty():
        return None
    return stdin.fileno()


def _meant(responses: Sequence[Response[object]], text: str) -> Response[object] | None:
    named = {response.label: response for response in reversed(responses)}
    numbered = {str(number): response for number, response in enumerate(responses, 1)}
    return (named | numbered).get(text)


def _screen_text(screen: Screen[object]) -> str:
    parts = [screen.title, *(_component_text(part) for part in screen.body)]
    return "\n  ".join("\n".join(parts).split("\n"))


def _component_text(part: Component) -> str:
    match part:
        case Text():
            return part.text
        case Row():
            return "  ".join(cell.text for cell in part.cells)
        case Rows():
            return _table([[cell.text for cell in row.cells] for row in part.rows])
        case _:
            assert_never(part)


def _table(rows: list[list[str]]) -> str:
    columns = zip_longest(*rows, fillvalue="")
    widths = [max(map(len, column)) for column in columns]
    padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=False)] for row in rows]
    return "\n".join("  ".join(row).rstrip() for row in padded)
