"""Where a person answers: while it runs, prompt_toolkit owns the screen."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import TextIO
from weakref import WeakSet

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import (
    BufferControl,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from rich.cells import cell_len

from agl.adapters.rich_terminal.keyboard import forget_typed
from agl.adapters.rich_terminal.lines import Frame, Line, Tone, clean, line, one_line
from agl.adapters.rich_terminal.questions import Question, Questions
from agl.adapters.rich_terminal.screens import lines_of
from agl.ports.terminal import Screen

_STYLES = {
    Tone.PLAIN: "",
    Tone.FAINT: "dim",
    Tone.STRONG: "bold",
    Tone.BUSY: "ansicyan",
    Tone.GOOD: "ansigreen",
    Tone.BAD: "ansired",
}
_MOST_LINES_TYPED = 8
_LEAST_AROUND = 4  # lines: a rule, a problem, how many wait, what is typed
_RULE = 16  # cells: a terminal that wraps old lines anew has none to wrap here
_REDRAW_S = 0.1
_SWAP_S = 0.5


class Ended(Enum):
    """Why nothing is asked any more."""

    ANSWERED = auto()
    INTERRUPTED = auto()
    NOBODY_THERE = auto()


class Editor:
    """Shows the question that is up below a frame, and takes its answer. A question that gives way
    to another keeps what was typed."""

    def __init__(
        self,
        stdin: TextIO,
        out: TextIO,
        questions: Questions,
        frame: Callable[[int, int], Frame],
        size: Callable[[], os.terminal_size],
        *,
        colour: bool,
    ) -> None:
        self._questions = questions
        self._make_frame = frame
        self._size = size
        self._stdin = stdin
        self._up: Question | None = None
        self._swapped_at = -_SWAP_S
        self._printed_whole: WeakSet[Question] = WeakSet()
        self._frame: Frame = ()
        self._asked: Frame = ()
        self._buffer = Buffer(multiline=True, history=InMemoryHistory())
        self._app: Application[Ended] = Application(
            layout=Layout(self._windows()),
            key_bindings=self._keys(),
            erase_when_done=True,
            input=Vt100Input(stdin),
            output=Vt100_Output(
                out,
                lambda: Size(rows=size().lines, columns=size().columns),
                term=os.environ.get("TERM"),
                enable_cpr=False,
            ),
            color_depth=ColorDepth.DEPTH_4_BIT if colour else ColorDepth.DEPTH_1_BIT,
            min_redraw_interval=_REDRAW_S,
            before_render=lambda _: self._lay_out(),
        )
        self._colour = colour
        self._app.ttimeoutlen = 0.1

    async def run(self) -> Ended:
        """Asks until there is no question left."""
        clear_typeahead(self._app.input)
        forget_typed(self._stdin.fileno())
        self._up = None
        try:
            return await self._app.run_async(
                pre_run=self.refresh, set_exception_handler=False, handle_sigint=False
            )
        except (EOFError, OSError):  # the window closed
            return Ended.NOBODY_THERE
        finally:
            self._keep_draft()

    @property
    def is_asking(self) -> bool:
        return self._app.is_running and not self._app.is_done

    def refresh(self) -> None:
        """Takes up what changed: another question may be up now, or none."""
        if not self.is_asking:
            return
        up = self._questions.up
        if up is None:
            self._end(Ended.ANSWERED)
        elif up is not self._up:
            if self._up is not None and self._up in self._questions:
                self._swapped_at = asyncio.get_running_loop().time()
            self._take_up(up)
        if up is not None:
            up.look()
        self._app.invalidate()

    def print_above(self, lines: Sequence[Line]) -> None:
        """Prints lines that stay, above the frame."""
        self._app.renderer.erase()
        self._write(lines)
        self._app.invalidate()

    def stop(self) -> None:
        self._end(Ended.ANSWERED)

    def _end(self, how: Ended) -> None:
        if self.is_asking:
            self._app.exit(result=how)

    def _take_up(self, question: Question) -> None:
        self._keep_draft()
        self._up = question
        self._buffer.reset(Document(question.draft, question.cursor))
        size = self._size()
        whole = question_frame(question, size.columns)
        if len(whole) > size.lines - _LEAST_AROUND and question not in self._printed_whole:
            self._printed_whole.add(question)
            self.print_above(whole)

    def _keep_draft(self) -> None:
        if self._up is not None:
            self._up.draft = self._buffer.text
            self._up.cursor = self._buffer.cursor_position

    def _enter(self, event: KeyPressEvent) -> None:
        question = self._up
        if question is None:
            return
        if asyncio.get_running_loop().time() - self._swapped_at < _SWAP_S:
            question.problem = "this question came in between; press Enter again to answer it"
            return
        # Of a paste without brackets the rest is already there, and an Enter is one of its line
        # ends.
        if question.typing is not None and event.app.key_processor.input_queue:
            self._buffer.insert_text("\n")
            return
        text = self._buffer.text
        answer = question.take(text)
        if answer is not None:
            if text.strip():
                self._buffer.history.append_string(text)
            self._questions.remove(question)
            self._up = None
            if not question.answer.done():
                question.answer.set_result(answer)
            self.refresh()
        else:
            self._buffer.reset(Document(question.draft, question.cursor))

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        keys.add("enter")(self._enter)
        keys.add("escape", "enter")(lambda _: self._buffer.insert_text("\n"))
        keys.add("c-c", filter=Condition(_heeds_interrupts))(lambda _: self._end(Ended.INTERRUPTED))
        nothing_typed = Condition(lambda: not self._buffer.text)
        keys.add("c-d", filter=nothing_typed)(lambda _: self._end(Ended.NOBODY_THERE))
        return keys

    def _windows(self) -> HSplit:
        frame = Window(
            FormattedTextControl(lambda: self._styled(self._frame)),
            height=lambda: Dimension.exact(len(self._frame)),
        )
        asked = Window(
            FormattedTextControl(lambda: self._styled(self._asked)),
            height=lambda: Dimension.exact(len(self._asked)),
        )
        typed = Window(
            BufferControl(self._buffer, input_processors=[BeforeInput(self._prompt)]),
            wrap_lines=True,
            height=Dimension(min=1),
        )
        return HSplit([frame, asked, typed])

    def _prompt(self) -> str:
        prompt = "" if self._up is None else f"{one_line(self._up.prompt)}: "
        return prompt if cell_len(prompt) < self._size().columns // 2 else ""

    def _styled(self, frame: Frame) -> StyleAndTextTuples:
        styled: StyleAndTextTuples = []
        for number, spans in enumerate(frame):
            if number:
                styled.append(("", "\n"))
            styled += [(_STYLES[tone] if self._colour else "", text) for text, tone in spans]
        return styled

    def _lay_out(self) -> None:
        """Gives the question what it needs, and the frame the lines that are left."""
        question = self._up
        if question is None:
            return
        columns, rows = self._size()
        typed = min(self._lines_typed(columns), _MOST_LINES_TYPED)
        room = max(rows - typed, 0)
        asked = self._question_lines(question, columns)
        self._asked = asked[len(asked) - room :] if len(asked) > room else asked
        self._frame = self._make_frame(columns, max(room - len(self._asked), 0))

    def _lines_typed(self, columns: int) -> int:
        text = f"{self._prompt()}{self._buffer.text}"
        return sum(cell_len(part) // max(columns, 1) + 1 for part in text.split("\n"))

    def _question_lines(self, question: Question, columns: int) -> Frame:
        problem = question.problem
        notes = [line(one_line(problem), Tone.BAD, columns)] if problem else []
        waiting = sum(self._questions.waiting.values())
        more = [line(f"{waiting} more waiting", Tone.FAINT, columns)] if waiting else []
        rule = line("─" * _RULE, Tone.FAINT, columns)
        long_label = [] if self._prompt() else lines_of(Screen(question.prompt), columns)
        return (rule, *question_frame(question, columns), *notes, *more, *long_label)

    def _write(self, lines: Sequence[Line]) -> None:
        for spans in lines:
            text = "".join(part for part, _ in spans)
            self._app.output.write(clean(text))
            self._app.output.write_raw("\r\n")
        self._app.output.flush()


def _heeds_interrupts() -> bool:
    return signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


def question_frame(question: Question, columns: int) -> Frame:
    """The screen of a question with its choices by number."""
    frame = lines_of(question.screen, columns)
    if question.typing is not None:
        return frame
    labels = (
        f"  {number}) {one_line(response.label)}"
        for number, response in enumerate(question.screen.responses, 1)
    )
    return (*frame, *(line(label, Tone.PLAIN, columns) for label in labels))
