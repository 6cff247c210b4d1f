"""The terminal of a person at a TTY: what runs is drawn below what was said, and asks on top."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, TextIO

from agl.adapters.rich_terminal.board import Board
from agl.adapters.rich_terminal.drawing import frame
from agl.adapters.rich_terminal.keyboard import is_in_front, quiet
from agl.adapters.rich_terminal.lines import Frame, Line, Tone, clean, one_line
from agl.adapters.rich_terminal.prints import Prints
from agl.adapters.rich_terminal.questions import Question, Questions
from agl.adapters.rich_terminal.region import Region
from agl.adapters.rich_terminal.screens import lines_of
from agl.ports.clock import Clock
from agl.ports.errors import AglError, InternalError, NeedsAnswer
from agl.ports.events import Event, line_about
from agl.ports.terminal import Answer, Screen, Terminal

if TYPE_CHECKING:
    from agl.adapters.rich_terminal.editor import Editor

_REDRAW_S = 0.1
# prompt_toolkit 3.0.53 takes 25 ms to draw 200 rows, eight times what the region takes.
_REDRAW_ABOVE_A_QUESTION_S = 1.0
_LOOK_AGAIN_S = 1.0
_MAX_CHARS = 240
# The question is drawn; how the run ended is what the command answers.
_NEVER_SAID = frozenset({"agent_acted", "agent_equipped", "agent_said", "asked", "run_ended"})
_SAID = {
    "warned": Tone.BUSY,
    "waiting": Tone.BUSY,
    "landing_released": Tone.BUSY,
    "kept": Tone.PLAIN,
    "survivors_ended": Tone.PLAIN,
    "source_changed": Tone.PLAIN,
    "entry_set_aside": Tone.BAD,
    "step_failed": Tone.BAD,
    "landing_conflicted": Tone.BAD,
    "landing_refused": Tone.BAD,
    "answered": Tone.FAINT,
}


class RichTerminal(Terminal):
    """Draws on `out` and reads `stdin`, both TTYs. What is to stay is printed above what is drawn
    over; outside the context there are only printed lines."""

    def __init__(self, stdin: TextIO, out: TextIO, clock: Clock, *, colour: bool = True) -> None:
        self._stdin = stdin
        self._out = out
        self._clock = clock
        self._colour = colour
        self._region = Region(out, colour=colour)
        self._board = Board(clock.now())
        self._questions = Questions()
        self._said: list[Line] = []
        self._view: Callable[[], Screen[object]] | None = None
        self._laid_out: tuple[Screen[object], int, Frame] | None = None
        self._open = self._drawing = self._nobody_there = False
        self._editor: Editor | None = None
        self._stack = ExitStack()

    async def __aenter__(self) -> Terminal:
        self._changed, self._asked, self._closed = (asyncio.Event() for _ in range(3))
        self._stack.enter_context(self._printed_above())
        self._stack.enter_context(quiet(self._stdin.fileno()))
        self._stack.enter_context(_heard(signal.SIGWINCH, self._changed.set))
        self._stack.enter_context(_heard(signal.SIGCONT, self._come_back))
        self._open = self._drawing = True
        self._task = asyncio.create_task(self._drive())
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._open = False
        self._closed.set()
        self._changed.set()
        try:
            while not self._task.done():
                if self._editor is not None:
                    self._editor.stop()
                await asyncio.wait({self._task}, timeout=_REDRAW_S)
        finally:
            self._task.cancel()
            self._stack.close()
            if self._drawing:
                self._board.end(self._clock.now())
                self._draw(summary=True)
                self._region.leave()
            self._drawing = False
            self._view = None

    def tell(self, event: Event) -> None:
        self._board.hear(event)
        if not self._drawing:
            if event.kind not in _NEVER_SAID:
                self._region.write(f"{_cut(line_about(event))}\n")
            return
        failed_build = event.kind == "verify_finished" and event.details.get("passed") is not True
        if event.kind in _SAID or failed_build:
            self._say(_cut(line_about(event)), _SAID.get(event.kind, Tone.BAD))
        self._changed.set()

    def show(self, view: Callable[[], Screen[object]]) -> None:
        self._require_open()
        view()  # a view that fails at once is its author's to see
        self._view = view
        self._changed.set()

    async def ask(self, view: Callable[[], Screen[object]], *, priority: int = 0) -> Answer:
        self._require_open()
        screen = view()
        if not screen.responses:
            raise InternalError(f"{screen.title!r} was asked and takes no answer")
        if not self._drawing:
            raise InternalError(f"{screen.title!r} cannot be asked: the display failed")
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        question = Question(view, screen, priority, answer)
        if self._nobody_there:
            raise _unanswered(question)
        self._questions.add(question)
        self._look_at_questions()
        try:
            return await answer
        finally:
            self._questions.remove(question)
            self._look_at_questions()

    def _look_at_questions(self) -> None:
        self._asked.set()
        self._changed.set()

    async def _drive(self) -> None:
        """Draws what changed, or asks, until the terminal is closed."""
        try:
            while not self._closed.is_set():
                self._changed.clear()
                if self._questions.up is not None and not self._nobody_there:
                    await self._converse()
                else:
                    self._draw()
                    await _until(self._changed, _LOOK_AGAIN_S)
                    await _until(self._closed, _REDRAW_S)
        except Exception as error:  # noqa: BLE001 no fault of the display may end a run
            self._drawing = False
            self._region.leave()
            failure = f"the display failed: {clean(repr(error))}"
            self._region.write(f"warning: {failure}\n")
            self._give_up(lambda _: InternalError(failure))

    async def _converse(self) -> None:
        from agl.adapters.rich_terminal.editor import Editor, Ended

        if self._editor is None:
            self._editor = Editor(
                self._stdin,
                self._out,
                self._questions,
                self._frame,
                self._region.size,
                colour=self._colour,
            )
        self._region.draw((), self._take_said())
        following = asyncio.create_task(self._follow(self._editor))
        try:
            how = await self._editor.run()
        finally:
            following.cancel()
            (failed,) = await asyncio.gather(following, return_exceptions=True)
        if isinstance(failed, Exception) and not isinstance(failed, OSError):
            raise failed
        if how is Ended.NOBODY_THERE:
            self._nobody_there = True
            # A window that closes also sends a signal, which says it better.
            await _until(self._closed, _REDRAW_S)
            self._give_up(_unanswered)
        elif how is Ended.INTERRUPTED:
            # Only now, when the modes of the keyboard are as they were.
            os.kill(os.getpid(), signal.SIGINT)
            await _until(self._closed, _LOOK_AGAIN_S)

    async def _follow(self, editor: Editor) -> None:
        while True:
            await _until(self._changed, _LOOK_AGAIN_S)
            self._changed.clear()
            self._asked.clear()
            if self._said:
                editor.print_above(self._take_said())
            editor.refresh()
            await _until(self._asked, _REDRAW_ABOVE_A_QUESTION_S)

    def _give_up(self, error: Callable[[Question], AglError]) -> None:
        for question in self._questions:
            self._questions.remove(question)
            if not question.answer.done():
                question.answer.set_exception(error(question))

    def _draw(self, *, summary: bool = False) -> None:
        if not is_in_front(self._out.fileno()):
            self._region.leave()
            self._region.draw((), self._take_said())
            return
        columns, rows = self._region.size()
        # The cursor stands below the frame.
        drawn = self._frame(columns, None if summary else rows - 1)
        self._region.draw(drawn, self._take_said())

    def _frame(self, columns: int, rows: int | None) -> Frame:
        return frame(self._board, self._seen(columns), self._clock.now(), columns, rows)

    def _seen(self, columns: int) -> Frame:
        """What the workflow shows, laid out anew when it or the width has changed."""
        if self._view is None:
            return ()
        try:
            screen = self._view()
        except Exception as error:  # noqa: BLE001 a workflow's own code
            self._view = None
            self._say(f"warning: what the workflow shows failed: {error}", Tone.BUSY)
            return ()
        if self._laid_out is None or self._laid_out[:2] != (screen, columns):
            self._laid_out = (screen, columns, lines_of(screen, columns))
        return self._laid_out[2]

    def _say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        self._said.append(((clean(text), tone),))
        self._changed.set()

    def _take_said(self) -> list[Line]:
        said, self._said = self._said, []
        return said

    def _come_back(self) -> None:
        """The process was stopped meanwhile, and the screen was another's."""
        self._region.leave()
        self._changed.set()

    @contextmanager
    def _printed_above(self) -> Iterator[None]:
        prints = Prints(self._out, self._say)
        with redirect_stdout(prints), redirect_stderr(prints):
            yield
        prints.end()

    def _require_open(self) -> None:
        if not self._open:
            raise InternalError("the terminal is not open")


def _cut(text: str) -> str:
    text = one_line(text)
    return text if len(text) <= _MAX_CHARS else text[: _MAX_CHARS - 1] + "…"


def _unanswered(question: Question) -> NeedsAnswer:
    title = question.screen.title
    return NeedsAnswer(
        f"{title!r} needs an answer and nobody is at the terminal;"
        " pass --answers FILE, or resume where somebody can type",
        questions=(title,),
    )


async def _until(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass


@contextmanager
def _heard(number: signal.Signals, handler: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(number, handler)
    except (ValueError, RuntimeError):  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(number)
