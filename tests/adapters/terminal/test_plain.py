import asyncio
import io
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

import pytest

from agl.adapters.plain_terminal import PlainTerminal
from agl.ports.errors import NeedsAnswer
from agl.ports.events import KINDS, Event
from agl.ports.terminal import Choice, Picked, Row, Rows, Screen, Terminal, TextInput, Typed
from agl.testing.contracts.terminal import TerminalContract, TerminalOf

MOMENT = datetime(2026, 1, 2, tzinfo=UTC)
SURE = Screen[object]("Sure?", responses=[Choice("yes", 1), Choice("no", 0), TextInput("why", str)])
AGE = Screen[object]("Age?", responses=[TextInput("years", int)])
NOTE = Screen[object]("Note?", responses=[TextInput("note", str)])


class Person(io.StringIO):
    """Sees what is written, and types the next answer when it is waited for."""

    def __init__(self, keyboard: int, answers: Sequence[str]) -> None:
        super().__init__()
        self._keyboard = keyboard
        self._answers = list(answers)

    def write(self, text: str) -> int:
        if text.endswith(":\n") and self._answers:
            os.write(self._keyboard, f"{self._answers.pop(0)}\n".encode())
        return super().write(text)


class Desk:
    """A pseudo-terminal: `keyboard` is the person's end, `stdin` the program's."""

    def __init__(self, keyboard: int, stdin: TextIO) -> None:
        self.keyboard = keyboard
        self.stdin = stdin
        self.out = io.StringIO()
        self.terminal = PlainTerminal(stdin, self.out)

    def types(self, text: str) -> None:
        os.write(self.keyboard, text.encode())

    @property
    def seen(self) -> str:
        return self.out.getvalue()


@pytest.fixture
def desk() -> Iterator[Desk]:
    keyboard, program = os.openpty()
    with os.fdopen(program) as stdin:
        yield Desk(keyboard, stdin)
    with suppress(OSError):
        os.close(keyboard)


@pytest.fixture
async def open_desk(desk: Desk) -> AsyncIterator[Desk]:
    async with desk.terminal:
        yield desk


async def until_seen(desk: Desk, text: str) -> None:
    async with asyncio.timeout(60):
        while text not in desk.seen:
            await asyncio.sleep(0.001)


def asked(desk: Desk, screen: Screen[object], priority: int = 0) -> asyncio.Task[object]:
    async def ask() -> object:
        return await desk.terminal.ask(lambda: screen, priority=priority)

    return asyncio.create_task(ask())


class TestPlainTerminal(TerminalContract):
    @pytest.fixture
    def terminal_of(self) -> Iterator[TerminalOf]:
        with ExitStack() as stack:

            def make(answers: Sequence[str] | None) -> Terminal:
                if answers is None:
                    stdin = stack.enter_context(Path(os.devnull).open())
                    return PlainTerminal(stdin, io.StringIO())
                keyboard, program = os.openpty()
                stack.callback(os.close, keyboard)
                stdin = stack.enter_context(os.fdopen(program))
                return PlainTerminal(stdin, Person(keyboard, answers))

            yield make


async def test_a_question_shows_its_choices_by_number(open_desk: Desk) -> None:
    answer = asked(open_desk, Screen("Sure?", "It is\nlate.", responses=SURE.responses))
    await until_seen(open_desk, "Enter:\n")
    assert open_desk.seen == (
        "? Sure?\n  It is\n  late.\n  1) yes\n  2) no\n  3) why\n"
        "  type a number from 1 to 3, then Enter:\n"
    )
    open_desk.types("2\n")
    assert await answer == Picked("no")


async def test_an_answer_that_is_none_is_asked_for_again(open_desk: Desk) -> None:
    answer = asked(open_desk, SURE)
    open_desk.types("4\n")
    await until_seen(open_desk, "'4' is none of them\n  type a number from 1 to 3")
    open_desk.types("\n")
    await until_seen(open_desk, "'' is none of them")
    open_desk.types("3\n")
    await until_seen(open_desk, "why:")
    open_desk.types("so\n")
    assert await answer == Typed("why", "so")


async def test_a_text_that_does_not_fit_is_asked_for_again(open_desk: Desk) -> None:
    answer = asked(open_desk, AGE)
    await until_seen(open_desk, "years:")
    open_desk.types("old\n")
    await until_seen(open_desk, "that does not fit: invalid literal for int() with base 10: 'old'")
    open_desk.types("7\n")
    assert await answer == Typed("years", "7")


async def test_a_paste_of_three_lines_is_one_answer(open_desk: Desk) -> None:
    answer = asked(open_desk, NOTE)
    await until_seen(open_desk, "note:")
    open_desk.types("one\n\n  three\n")
    assert await answer == Typed("note", "one\n\n  three")


async def test_the_highest_priority_comes_next_and_what_is_up_stays(open_desk: Desk) -> None:
    titles = {"first": 0, "low": 0, "high": 5, "high too": 5}
    answers = {
        title: asked(open_desk, Screen(title, responses=SURE.responses), priority)
        for title, priority in titles.items()
    }
    for title in ("first", "high", "high too", "low"):
        await until_seen(open_desk, f"? {title}\n")
        open_desk.types("1\n")
        assert await answers[title] == Picked("yes")
    shown = [line for line in open_desk.seen.split("\n") if line.startswith("?")]
    assert shown == ["? first", "? high", "? high too", "? low"]


async def test_a_withdrawn_question_takes_no_line_along(open_desk: Desk) -> None:
    withdrawn = asked(open_desk, SURE)
    waiting = asked(open_desk, NOTE)
    await until_seen(open_desk, "Sure?")
    withdrawn.cancel()
    open_desk.types("a note\n")
    assert await waiting == Typed("note", "a note")
    with pytest.raises(asyncio.CancelledError):
        await withdrawn


async def test_a_question_withdrawn_in_line_leaves_the_others(open_desk: Desk) -> None:
    first, second, third = asked(open_desk, SURE), asked(open_desk, AGE), asked(open_desk, NOTE)
    await until_seen(open_desk, "Sure?")
    second.cancel()
    open_desk.types("1\n")
    assert await first == Picked("yes")
    await until_seen(open_desk, "note:")
    open_desk.types("x\n")
    assert await third == Typed("note", "x")
    assert "Age?" not in open_desk.seen


@pytest.mark.parametrize("ends", [lambda desk: desk.types("\x04"), lambda d: os.close(d.keyboard)])
async def test_when_input_ends_all_questions_fail_and_are_named(
    open_desk: Desk, ends: Callable[[Desk], None]
) -> None:
    answers = [asked(open_desk, SURE), asked(open_desk, NOTE)]
    await until_seen(open_desk, "Sure?")
    ends(open_desk)
    for answer, title in zip(answers, ("Sure?", "Note?"), strict=True):
        with pytest.raises(NeedsAnswer) as raised:
            await answer
        assert raised.value.questions == (title,)


async def test_an_input_that_cannot_be_read_has_ended() -> None:
    class Broken(io.StringIO):
        def isatty(self) -> bool:
            return True

        def fileno(self) -> int:
            return unreadable

    reader, unreadable = os.pipe()
    os.close(reader)
    async with PlainTerminal(Broken(), io.StringIO()) as terminal:
        with pytest.raises(NeedsAnswer):
            await terminal.ask(lambda: SURE)
    os.close(unreadable)


async def test_input_is_watched_only_while_a_question_is_up(open_desk: Desk) -> None:
    loop, fd = asyncio.get_running_loop(), open_desk.stdin.fileno()
    answer, withdrawn = asked(open_desk, SURE), asked(open_desk, NOTE)
    open_desk.types("1\n")
    await answer
    await until_seen(open_desk, "Note?")
    withdrawn.cancel()
    await asyncio.wait({withdrawn})
    assert not loop.remove_reader(fd)


async def test_a_closed_or_missing_input_fails_at_once() -> None:
    closed = io.StringIO()
    closed.close()
    for stdin in (None, closed, io.StringIO("1\n")):
        async with PlainTerminal(stdin, io.StringIO()) as terminal:
            with pytest.raises(NeedsAnswer, match=r"'Sure\?' needs an answer.*--answers FILE"):
                await terminal.ask(lambda: SURE)


@pytest.mark.parametrize("screen", [SURE, NOTE])
async def test_nobody_is_told_to_type_where_nobody_can(screen: Screen[object]) -> None:
    out = io.StringIO()
    async with PlainTerminal(None, out) as terminal:
        with pytest.raises(NeedsAnswer):
            await terminal.ask(lambda: screen)
    assert out.getvalue().startswith(f"? {screen.title}\n")
    assert ":\n" not in out.getvalue()


async def test_a_question_is_printed_once(open_desk: Desk) -> None:
    open_desk.terminal.tell(Event("asked", MOMENT, about="Sure?"))
    answer = asked(open_desk, SURE)
    await until_seen(open_desk, "Enter:\n")
    open_desk.types("1\n")
    await answer
    assert open_desk.seen.count("Sure?") == 1


async def test_no_escape_byte_comes_out() -> None:
    nasty = "\x1b[31mred\x1b[0m\x1b]0;title\x07\x9b1m\x08\r\x00\u202e" + "text"
    out = io.StringIO()
    async with PlainTerminal(None, out) as terminal:
        for kind in KINDS:
            names = ("text", "activity", "error", "why", "name", "model", "message", "answer")
            terminal.tell(Event(kind, MOMENT, nasty, nasty, dict.fromkeys(names, nasty)))
        terminal.show(lambda: Screen(nasty, nasty, Row(nasty, nasty), Rows([[nasty]])))
        with pytest.raises(NeedsAnswer):
            await terminal.ask(lambda: Screen(nasty, responses=[Choice(nasty, 1)]))
    assert "redtext" not in out.getvalue()
    assert "red1mtext" in out.getvalue()
    assert all(character == "\n" or character.isprintable() for character in out.getvalue())


async def test_a_passive_view_is_printed_when_it_changed() -> None:
    out, done = io.StringIO(), 0
    async with PlainTerminal(None, out) as terminal:
        terminal.show(lambda: Screen(f"{done} done", Rows([["a", "bb"], ["ccc", "d"]])))
        terminal.show(lambda: Screen(f"{done} done", Rows([["a", "bb"], ["ccc", "d"]])))
        terminal.tell(Event("recorded", MOMENT, about="x"))
        done = 1
        terminal.tell(Event("agent_acted", MOMENT, about="x", details={"activity": "y"}))
        terminal.tell(Event("recorded", MOMENT, about="x"))
        done = 2
    table = "  a    bb\n  ccc  d\n"
    assert out.getvalue() == (
        f"0 done\n{table}recorded: x\nx: y\nrecorded: x\n1 done\n{table}2 done\n{table}"
    )


async def test_a_view_that_fails_later_is_told_and_dropped() -> None:
    out, numbers = io.StringIO(), [1]
    async with PlainTerminal(None, out) as terminal:
        terminal.show(lambda: Screen(str(numbers[0])))
        numbers.clear()
        terminal.tell(Event("recorded", MOMENT, about="x"))
        terminal.tell(Event("recorded", MOMENT, about="x"))
    failed = "warning: what the workflow shows failed: list index out of range\n"
    assert out.getvalue() == f"1\nrecorded: x\n{failed}recorded: x\n"


async def test_an_output_that_cannot_hold_a_character_gets_another() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    PlainTerminal(None, out).tell(Event("warned", MOMENT, details={"text": "ü\ud800"}))
    assert raw.getvalue() == b"warning: \\xfc\\ud800\n"


async def test_an_output_that_went_away_stops_nothing() -> None:
    out = io.StringIO()
    out.close()
    PlainTerminal(None, out).tell(Event("warned", MOMENT, details={"text": "x"}))


@pytest.mark.parametrize(
    ("kind", "details", "line"),
    [
        ("run_started", {"workflow": "fix", "resumed": True}, "workflow fix resumed"),
        ("step_started", {"model": "scripted:/x", "nth": 2}, "fix: started (nth 2) on scripted:/x"),
        (
            "step_finished",
            {
                "duration_s": 1.25,
                "changed": False,
                "usage": {"input_tokens": 5, "output_tokens": 1, "cost_usd": None},
            },
            "fix: done in 1.2 s, nothing changed, 6 tokens, price unknown",
        ),
        ("agent_said", {"text": "one\ntwo"}, "fix: “one two”"),
        ("verify_finished", {"passed": False, "status": 1}, "verify: failed with status 1"),
        (
            "survivors_ended",
            {"processes": ["1 sleep", "2 sh"]},
            "ended what was left running: 1 sl",
        ),
        ("agent_said", {"text": "x" * 1000}, "fix: “" + "x" * 200),
        ("answered", {"answer": {"picked": "yes"}}, "answered: fix: yes"),
        ("answered", {"answer": {"input": "a", "typed": "one\ntwo"}}, "answered: fix: one two"),
        ("kept", {"why": "left by 'fix'"}, "kept fix: left by 'fix'"),
        ("verify_finished", {"passed": True, "status": 0, "note": ""}, "verify: passed\n"),
        ("brand_new", {}, "brand_new fix"),
    ],
)
async def test_an_event_is_one_line(kind: str, details: dict[str, object], line: str) -> None:
    out = io.StringIO()
    PlainTerminal(None, out).tell(Event(kind, MOMENT, "left", "fix", details))
    assert out.getvalue().startswith(f"[left] {line}")
    assert out.getvalue().count("\n") == 1
    assert len(out.getvalue()) < 250


def test_a_screen_can_be_made_for_a_type() -> None:
    assert Screen[bool]("x", responses=[Choice[bool]("y", True)]) == Screen(
        "x", responses=[Choice("y", True)]
    )
