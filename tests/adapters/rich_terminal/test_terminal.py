"""The rich terminal on a pseudo terminal, its screen read as text."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from adapters.rich_terminal.desk import Desk
from adapters.rich_terminal.story import BEGIN, at, split
from agl.adapters.memory.clock import ManualClock
from agl.adapters.rich_terminal import RichTerminal
from agl.ports.errors import InternalError, NeedsAnswer
from agl.ports.events import KINDS, Event
from agl.ports.terminal import (
    Answer,
    Choice,
    Picked,
    Row,
    Rows,
    Screen,
    Terminal,
    TextInput,
    Typed,
)
from agl.testing.contracts.terminal import TerminalContract, TerminalOf

SURE = Screen[object](
    "Sure?", "It is\nlate.", responses=[Choice("yes", 1), Choice("no", 0), TextInput("why", str)]
)
NOTE = Screen[object]("Note?", responses=[TextInput("note", str)])
CHUNKS = Screen[object]("Chunks", Rows([["漢字", "open"], ["docs", "landed"]]))
AFTER_A_SWAP_S = 0.55

FRAMES = {
    120: """
Chunks
  漢字  open
  docs  landed
split                                       1.2k tok      $0.30  1 done, last plan in 12.3s
  parser  working   review     sol   0:45  10.5k tok      $0.50  Read: src/parser.py
    1 done, last implement in 27.0s
    deep  working   look       sol   0:35
  lexer   conflict                         10.5k tok      $0.25  1 done, last implement in 27.0s
  漢字    working   implement  opus  1:22                        Bash: make 漢字 👨👩👧 é ⚙
  docs    landed                     0:30  10.5k tok  $ unknown  1 done, last implement in 27.0s
total  1:35  32.7k tok  $ unknown""",
    80: """
Chunks
  漢字  open
  docs  landed
split                                 1.2k tok      $0.30  1 done, last plan in…
  parser  working   review     0:45  10.5k tok      $0.50  Read: src/parser.py
    1 done, last implement in 27.0s
    deep  working   look       0:35
  lexer   conflict                   10.5k tok      $0.25  1 done, last impleme…
  漢字    working   implement  1:22                        Bash: make 漢字 👨👩…
  docs    landed               0:30  10.5k tok  $ unknown  1 done, last impleme…
total  1:35  32.7k tok  $ unknown""",
    40: """
Chunks
  漢字  open
  docs  landed
split
  parser  working   review     0:45
    1 done, last implement in 27.0s
    deep  working   look       0:35
  lexer   conflict
  漢字    working   implement  1:22
  docs    landed               0:30
total  1:35  32.7k tok  $ unknown""",
    20: """
Chunks
  漢字  open
  docs  landed
split
  parser  working
    1 done, last im…
    deep  working
  lexer   conflict
  漢字    working
  docs    landed
total  1:35  32.7k…""",
}
SUMMARY = """\
split               1:35   1.2k tok      $0.30  1 done, last plan in 12.3s
  parser  stopped         10.5k tok      $0.50  1 done, last implement in 27.0s
    deep  stopped
  lexer   conflict        10.5k tok      $0.25  1 done, last implement in 27.0s
  漢字    stopped
  docs    landed    0:30  10.5k tok  $ unknown  1 done, last implement in 27.0s
total  1:35  32.7k tok  $ unknown"""
CONFLICT = "landing lexer: conflict in src/lexer.py"
QUESTION = """
────────────────
Sure?
  It is
  late.
  1) yes
  2) no
  3) why
1 to 3:"""


class Sitting:
    """A person at a desk, while a run goes on."""

    def __init__(self, desk: Desk, *, colour: bool = True) -> None:
        self.desk = desk
        self.clock = ManualClock(BEGIN)
        self.terminal = RichTerminal(desk.stdin, desk.out, self.clock, colour=colour)

    def tell(self, *events: Event) -> None:
        for event in events:
            self.terminal.tell(event)

    def asked(self, screen: Screen[object], priority: int = 0) -> asyncio.Task[Answer]:
        return asyncio.create_task(self.terminal.ask(lambda: screen, priority=priority))


@asynccontextmanager
async def sitting(
    columns: int = 80, lines: int = 24, *, colour: bool = True
) -> AsyncIterator[Sitting]:
    with Desk(columns, lines).watched() as desk:
        one = Sitting(desk, colour=colour)
        async with one.terminal:
            yield one


class TestRichTerminal(TerminalContract):
    @pytest.fixture
    async def terminal_of(self) -> AsyncIterator[TerminalOf]:
        tasks: list[asyncio.Task[None]] = []

        def make(answers: Sequence[str] | None) -> Terminal:
            desk = Desk(80, 24)
            terminal = RichTerminal(desk.stdin, desk.out, ManualClock(BEGIN))
            tasks.append(asyncio.create_task(_answer(desk, answers)))
            return terminal

        yield make
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _answer(desk: Desk, answers: Sequence[str] | None) -> None:
    """Gives each answer when there is a line to type it in; None: goes away at the first."""
    with desk.watched():
        for answer in ("",) if answers is None else answers:
            await desk.until_asked()
            if answers is None:
                desk.types("\x04")
            else:
                desk.pastes(answer)
                desk.types("\r")
        await asyncio.Event().wait()


@pytest.mark.parametrize("columns", FRAMES)
async def test_the_tree_of_scopes_is_drawn(columns: int) -> None:
    async with sitting(columns) as one:
        one.terminal.show(lambda: CHUNKS)
        one.tell(*split())
        one.clock.advance(95)
        await one.desk.until_shown(folded(CONFLICT, columns) + FRAMES[columns])


@pytest.mark.parametrize("columns", FRAMES)
async def test_a_question_comes_over_the_tree(columns: int) -> None:
    async with sitting(columns, 30) as one:
        one.terminal.show(lambda: CHUNKS)
        one.tell(*split())
        one.clock.advance(95)
        answer = one.asked(SURE)
        await one.desk.until_seen("1 to 3:")
        frame = FRAMES[columns]
        # prompt_toolkit takes a joined emoji for its parts, and cuts a line that is then too long.
        drawn = one.desk.rows.replace("👨👩👧", "👨👩…")
        assert drawn == (folded(CONFLICT, columns) + frame + QUESTION).replace("👨👩👧", "👨👩…")
        one.tell(at(96, "warned", text="mind it"))
        await one.desk.until_seen("warning: mind it\nChunks")
        one.desk.types("2\r")
        assert await answer == Picked("no")
        await one.desk.until_shown(f"{folded(CONFLICT, columns)}\nwarning: mind it{frame}")


def folded(text: str, columns: int) -> str:
    return "\n".join(
        text[begin : begin + columns].rstrip() for begin in range(0, len(text), columns)
    )


@pytest.mark.parametrize(("columns", "lines"), [(1, 24), (2, 2), (1, 1), (80, 1), (3, 5)])
async def test_the_smallest_screens_are_drawn_and_asked_on(columns: int, lines: int) -> None:
    async with sitting(columns, lines) as one:
        one.terminal.show(lambda: CHUNKS)
        one.tell(*split())
        await one.desk.until(lambda: one.desk.seen != b"" or lines == 1)
        answer = one.asked(SURE)
        await one.desk.until(lambda: b"\x1b[?2004h" in one.desk.seen)
        one.desk.types("2\r")
        assert await answer == Picked("no")
    assert b"display failed" not in one.desk.seen


async def test_a_resize_draws_the_frame_anew() -> None:
    async with sitting(120) as one:
        one.tell(*split())
        await one.desk.until_seen("Read: src/parser.py")
        one.desk.resize(40, 24)
        await one.desk.until_gone("Read:")
        one.desk.resize(80, 24)
        await one.desk.until_seen("Read:")
        assert one.desk.rows.count("split") == 1
        answer = one.asked(NOTE)
        await one.desk.until_seen("note:")
        one.desk.types("half")
        await one.desk.until_seen("note: half")
        one.desk.resize(20, 24)
        await one.desk.until_gone("Read:")
        await one.desk.until_seen("note: half")
        assert one.desk.rows.count("split") == 1
        one.desk.types(" and all\r")
        assert await answer == Typed("note", "half and all")


async def test_a_resize_is_heard_while_the_terminal_is_open_and_no_longer() -> None:
    loop = asyncio.get_running_loop()
    async with sitting():
        await asyncio.sleep(0)
        assert signal.getsignal(signal.SIGWINCH) not in (signal.SIG_DFL, signal.SIG_IGN)
    assert not loop.remove_signal_handler(signal.SIGWINCH)


async def test_a_run_that_was_stopped_and_comes_back_draws_below_what_was_printed() -> None:
    async with sitting() as one:
        one.tell(*split())
        await one.desk.until_seen("Read:")
        os.write(one.desk.stdin.fileno(), b"$ fg\n")
        os.kill(os.getpid(), signal.SIGCONT)
        one.tell(at(95, "agent_acted", "parser", "review", activity="Read: other.py"))
        await one.desk.until_seen("other.py")
        assert re.findall(r"fg|src/parser|other", one.desk.rows) == ["src/parser", "fg", "other"]


async def test_the_last_frame_stays_whole_as_a_summary() -> None:
    with Desk(80, 6).watched() as desk:
        one = Sitting(desk)
        async with one.terminal:
            one.tell(*split(), at(90, "step_stopped", "parser", "review"))
            one.clock.advance(95)
            await desk.until_seen("3 more: 1 waiting, 1 stopped, 1 landed")
        await desk.until(lambda: desk.scrolled_rows.endswith(SUMMARY))
        assert desk.scrolled_rows == f"{CONFLICT}\n{SUMMARY}"


async def test_a_preempted_question_keeps_its_place_and_its_draft() -> None:
    async with sitting() as one:
        low, later = one.asked(NOTE), one.asked(SURE)
        await one.desk.until_seen("1 more waiting")
        one.desk.types("half an ans\x1b[D\x1b[D")
        await one.desk.until_seen("note: half an ans")
        high = one.asked(SURE, priority=5)
        await one.desk.until_seen("2 more waiting")
        await one.desk.until_gone("half")
        await asyncio.sleep(AFTER_A_SWAP_S)
        one.desk.types("1\r")
        assert await high == Picked("yes")
        await one.desk.until_seen("note: half an ans")
        one.desk.types("-\r")
        assert await low == Typed("note", "half an a-ns")
        one.desk.types("2\r")
        assert await later == Picked("no")


async def test_an_enter_meant_for_another_question_answers_none() -> None:
    async with sitting() as one:
        low = one.asked(NOTE)
        await one.desk.until_seen("note:")
        high = one.asked(Screen("Name?", responses=[TextInput("name", str)]), priority=1)
        await one.desk.until_seen("name:")
        one.desk.types("\r")
        await one.desk.until_seen("press Enter again")
        assert not high.done()
        await asyncio.sleep(AFTER_A_SWAP_S)
        one.desk.types("Ada\r")
        assert await high == Typed("name", "Ada")
        one.desk.types("x\r")
        assert await low == Typed("note", "x")


@pytest.mark.parametrize("line_end", ["\n", "\r", "\r\n"])
async def test_a_paste_of_three_lines_is_one_answer(line_end: str) -> None:
    async with sitting() as one:
        first, second = one.asked(NOTE), one.asked(NOTE)
        await one.desk.until_seen("note:")
        one.desk.pastes(line_end.join(("one", "", "  three")))
        await one.desk.until_seen("note: one\n\n  three")
        one.desk.types("\r")
        assert await first == Typed("note", "one\n\n  three")
        assert not second.done()
        second.cancel()


async def test_a_paste_without_brackets_is_one_answer_too() -> None:
    async with sitting() as one:
        first, second = one.asked(NOTE), one.asked(NOTE)
        await one.desk.until_seen("note:")
        one.desk.types("one\r\r  three\r")
        assert await first == Typed("note", "one\n\n  three")
        assert not second.done()
        second.cancel()


async def test_what_was_answered_before_can_be_had_again() -> None:
    async with sitting() as one:
        first = one.asked(NOTE)
        await one.desk.until_seen("note:")
        one.desk.types("a long answer\r")
        await first
        second = one.asked(NOTE)
        await one.desk.until(lambda: one.desk.seen.count(b"\x1b[?2004h") == 2)
        one.desk.types("\x1b[A")
        await one.desk.until_seen("note: a long answer")
        one.desk.types("!\r")
        assert await second == Typed("note", "a long answer!")


async def test_what_was_typed_before_a_question_answers_nothing() -> None:
    async with sitting() as one:
        one.tell(*split())
        await one.desk.until_seen("total")
        one.desk.types("q9\n")
        await asyncio.sleep(0.05)
        assert "q9" not in one.desk.rows
        answer = one.asked(NOTE)
        await one.desk.until_seen("note:")
        one.desk.types("x\r")
        assert await answer == Typed("note", "x")


async def test_a_withdrawn_question_goes_and_the_next_comes() -> None:
    async with sitting() as one:
        first, second = one.asked(SURE), one.asked(NOTE)
        await one.desk.until_seen("Sure?")
        first.cancel()
        await one.desk.until_seen("Note?")
        assert "Sure?" not in one.desk.rows
        second.cancel()
        await one.desk.until_gone("Note?")


async def test_a_question_longer_than_the_screen_can_be_read_whole() -> None:
    async with sitting(80, 10) as one:
        long = Screen("Conflict", *(f"path {n}" for n in range(30)), responses=SURE.responses)
        answer = one.asked(long)
        await one.desk.until_seen("1 to 3:")
        assert all(f"  path {n}\r".encode() in one.desk.seen for n in range(30))
        one.desk.types("1\r")
        assert await answer == Picked("yes")


async def test_a_long_label_stands_above_what_is_typed() -> None:
    async with sitting(40) as one:
        label = "what the reviewer should look at first of all"
        answer = one.asked(Screen("Focus?", responses=[TextInput(label, str)]))
        await one.desk.until_seen("Focus?\nwhat the reviewer should look at first\nof all")
        one.desk.types("x\r")
        assert await answer == Typed(label, "x")


async def test_a_question_shows_what_its_view_says_now() -> None:
    async with sitting() as one:
        left = ["a.py", "b.py"]
        answer = asyncio.create_task(
            one.terminal.ask(lambda: Screen("Open", *left, responses=SURE.responses))
        )
        await one.desk.until_seen("a.py")
        left.remove("a.py")
        one.tell(at(0, "recorded"))
        await one.desk.until_gone("a.py")
        left.insert(0, 5)  # type: ignore[arg-type]
        answer.cancel()


async def test_the_workflows_view_follows_what_it_shows() -> None:
    async with sitting() as one:
        done: list[object] = ["first"]
        one.terminal.show(lambda: Screen("Done", *(f"{1 / len(done)} {each}" for each in done)))
        await one.desk.until_seen("1.0 first")
        done.append("second")
        await one.desk.until_seen("0.5 second")
        one.terminal.show(lambda: Screen("Other", str(1 / len(done))))
        await one.desk.until_gone("Done")
        done.clear()
        await one.desk.until_seen("warning: what the workflow shows failed: division by zero")
        assert "Other" not in one.desk.rows


async def test_lines_that_stay_come_in_order_and_prints_among_them() -> None:
    with Desk(80, 24).watched() as desk:
        one = Sitting(desk)
        async with one.terminal:
            print("printed", end="")  # noqa: T201
            print(" by an author", file=sys.stderr)  # noqa: T201
            one.tell(
                at(0, "step_started", about="fix", model="a:b"),
                at(0, "kept", about="refs/x", why="left by 'fix'"),
                at(0, "step_failed", about="fix", error="Overloaded: busy"),
                at(0, "verify_finished", about="make", passed=False, status=1),
                at(0, "verify_finished", about="make", passed=True),
                at(0, "answered", about="Sure?", answer={"picked": "yes"}),
            )
            print("unfinished", end="")  # noqa: T201
            await desk.until_seen("total")
            assert desk.rows.splitlines()[:5] == [
                "printed by an author",
                "kept refs/x: left by 'fix'",
                "fix: failed: Overloaded: busy",
                "verify: failed with status 1",
                "answered: Sure?: yes",
            ]
        await desk.until_seen("unfinished")


async def test_what_is_said_as_a_question_ends_is_not_lost() -> None:
    async with sitting() as one:
        for number in range(5):
            answer = one.asked(SURE)
            await one.desk.until_asked()
            one.desk.types("1\r")
            await answer
            one.tell(at(0, "answered", about=f"{number}?", answer={"picked": "yes"}))
            await one.desk.until_seen(f"answered: {number}?: yes")


async def test_nothing_is_written_while_nothing_changes() -> None:
    async with sitting() as one:
        one.tell(*split())
        await one.desk.until_seen("total")
        await one.desk.until_still()
        before = len(one.desk.seen)
        for _ in range(5):
            one.tell(at(95, "recorded"))
            await asyncio.sleep(0.1)
        assert len(one.desk.seen) == before


async def test_no_escape_of_an_agent_reaches_the_screen() -> None:
    nasty = "\x1b[31mred\x1b]0;title\x07\x9b1m\x08\r\x00\u202e\x1b[2J"
    async with sitting(colour=False) as one:
        names = ("text", "activity", "error", "why", "name", "model", "workflow", "answer")
        for kind in (*KINDS, "landed"):
            one.tell(Event(kind, BEGIN, nasty, nasty, dict.fromkeys(names, nasty)))
        one.terminal.show(lambda: Screen(nasty, nasty, Row(nasty), Rows([[nasty]])))
        print(nasty)  # noqa: T201
        question = one.asked(Screen(nasty, nasty, responses=[Choice(nasty, 1), Choice("x", 2)]))
        await one.desk.until_seen("1 to 2:")
        question.cancel()
    assert b"[31m" not in one.desk.seen
    assert b"]0;" not in one.desk.seen
    assert b"[2J" not in one.desk.seen
    assert not {b"\x07", b"\x08", b"\x00", "\x9b".encode(), "\u202e".encode()} & {
        one.desk.seen[n : n + size] for size in (1, 2, 3) for n in range(len(one.desk.seen))
    }


async def test_without_colour_none_is_written() -> None:
    coloured = re.compile(rb"\x1b\[[0-9;]*[1-9][0-9;]*m")
    for colour in (True, False):
        async with sitting(colour=colour) as one:
            one.tell(*split())
            await one.desk.until_seen("total")
            drawn = bool(coloured.search(one.desk.seen))
            answer = one.asked(SURE)
            await one.desk.until_seen("1 to 3:")
            one.desk.pastes("a\x0cb")
            await one.desk.until_seen("1 to 3: a^Lb")
            asked = bool(coloured.search(one.desk.seen))
            answer.cancel()
        assert (drawn, asked) == (colour, colour)


async def test_the_keyboard_is_as_it_was_when_a_terminal_closes() -> None:
    with Desk(80, 24).watched() as desk:
        before = desk.modes
        one = Sitting(desk)
        async with one.terminal:
            assert desk.modes != before
            answer = one.asked(SURE)
            await desk.until_seen("1 to 3:")
        assert desk.modes == before
        assert sys.stdout.isatty() == sys.__stdout__.isatty()  # type: ignore[union-attr]
        answer.cancel()
        for on, off in ((b"\x1b[?2004h", b"\x1b[?2004l"), (b"\x1b[?7l", b"\x1b[?7h")):
            await desk.until(lambda: desk.seen.rfind(off) > desk.seen.rfind(on))  # noqa: B023


async def test_ctrl_c_at_a_question_is_a_signal_sent_with_the_modes_restored() -> None:
    modes: list[list[object]] = []
    async with sitting() as one:
        before = one.desk.modes
        answer = one.asked(SURE)
        await one.desk.until_seen("1 to 3:")
        asking = one.desk.modes
        loop = asyncio.get_running_loop()
        interrupted = asyncio.Event()

        def stop() -> None:
            modes.append(one.desk.modes)
            answer.cancel()
            interrupted.set()

        loop.add_signal_handler(signal.SIGINT, stop)
        one.desk.types("\x03")
        await interrupted.wait()
        loop.remove_signal_handler(signal.SIGINT)
        with pytest.raises(asyncio.CancelledError):
            await answer
    assert modes == [before]
    assert asking != before


@pytest.mark.parametrize("ends", ["ctrl-d", "closed"])
async def test_when_the_person_goes_all_questions_fail_and_are_named(ends: str) -> None:
    desk = Desk(80, 24)
    one = Sitting(desk)
    with desk.watched():
        async with one.terminal:
            answers = [one.asked(SURE), one.asked(NOTE)]
            await desk.until_seen("1 to 3:")
            if ends == "ctrl-d":
                desk.types("\x04")
            else:
                desk.hang_up()
            for answer, title in zip(answers, ("Sure?", "Note?"), strict=True):
                with pytest.raises(NeedsAnswer) as raised:
                    await answer
                assert raised.value.questions == (title,)


async def test_outside_its_context_a_terminal_prints_lines() -> None:
    with Desk(80, 24).watched() as desk:
        one = Sitting(desk)
        one.tell(at(0, "run_started", workflow="fix"), at(0, "agent_said", text="x"))
        await desk.until_seen("workflow fix started")
        async with one.terminal:
            pass
        one.tell(at(1, "warned", text="late"), at(2, "run_ended", outcome="finished"))
        await desk.until_seen("warning: late")
        assert desk.rows == "workflow fix started\nfix  0:00\ntotal  0:00\nwarning: late"


async def test_a_display_that_fails_ends_no_run() -> None:
    async with sitting() as one:
        one.desk.out.close()
        one.tell(*split())
        await asyncio.sleep(0.15)
        with pytest.raises((InternalError, NeedsAnswer)):
            await one.asked(SURE)
