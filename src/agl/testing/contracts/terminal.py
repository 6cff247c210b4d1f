"""What every `Terminal` promises."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import pytest

from agl.ports.errors import InternalError, NeedsAnswer
from agl.ports.events import KINDS, Event
from agl.ports.terminal import Choice, Picked, Row, Rows, Screen, Terminal, TextInput, Typed

TerminalOf = Callable[[Sequence[str] | None], Terminal]

_MOMENT = datetime(2026, 1, 2, tzinfo=UTC)
_YES_OR_NO = Screen[object](
    "Go on?", "It is late.", responses=[Choice("yes", 1), Choice("no", 0), TextInput("other", str)]
)
_WHO = Screen[object]("Who are you?", responses=[TextInput("name", str)])
_NO_QUESTION = Screen[object]("Look")


class TerminalContract:
    """Subclass, and give `terminal_of`: a terminal at which a person gives these answers (labels,
    or texts to type) to one question after another; None: nobody is there."""

    @pytest.fixture
    def terminal_of(self) -> TerminalOf:
        raise NotImplementedError

    async def test_a_choice_is_picked_by_its_label(self, terminal_of: TerminalOf) -> None:
        async with terminal_of(["no"]) as terminal:
            assert await terminal.ask(lambda: _YES_OR_NO) == Picked("no")

    async def test_a_text_is_typed(self, terminal_of: TerminalOf) -> None:
        async with terminal_of(["Ada Lovelace"]) as terminal:
            assert await terminal.ask(lambda: _WHO) == Typed("name", "Ada Lovelace")

    @pytest.mark.parametrize("text", ["", " ", "one\n\n  two\n", "a\u2028b\x0cc\u0085"])
    async def test_what_was_typed_is_left_as_it_is(
        self, terminal_of: TerminalOf, text: str
    ) -> None:
        async with terminal_of([text]) as terminal:
            assert await terminal.ask(lambda: _WHO) == Typed("name", text)

    async def test_questions_are_answered_one_after_another(self, terminal_of: TerminalOf) -> None:
        async with terminal_of(["Ada", "yes"]) as terminal:
            assert await terminal.ask(lambda: _WHO) == Typed("name", "Ada")
            assert await terminal.ask(lambda: _YES_OR_NO) == Picked("yes")

    async def test_the_highest_priority_comes_next(self, terminal_of: TerminalOf) -> None:
        answers = ["first", "high", "high too", "low"]
        async with terminal_of(answers) as terminal:
            asked = [terminal.ask(lambda: _WHO, priority=priority) for priority in (9, -1, 5, 5)]
            first, low, high, high_too = await asyncio.gather(*asked)
        assert [first, high, high_too, low] == [Typed("name", answer) for answer in answers]

    async def test_a_withdrawn_question_takes_no_answer_along(
        self, terminal_of: TerminalOf
    ) -> None:
        async with terminal_of(["Ada"]) as terminal:
            withdrawn, waiting = (asyncio.create_task(terminal.ask(lambda: _WHO)) for _ in "ab")
            withdrawn.cancel()
            assert await waiting == Typed("name", "Ada")
            with pytest.raises(asyncio.CancelledError):
                await withdrawn

    async def test_a_screen_without_responses_cannot_be_asked(
        self, terminal_of: TerminalOf
    ) -> None:
        for answers in (None, ["Ada"]):
            async with terminal_of(answers) as terminal:
                with pytest.raises(InternalError, match="Look"):
                    await terminal.ask(lambda: _NO_QUESTION)
                if answers:
                    assert await terminal.ask(lambda: _WHO) == Typed("name", "Ada")

    async def test_with_nobody_there_a_question_fails_and_is_named(
        self, terminal_of: TerminalOf
    ) -> None:
        async with terminal_of(None) as terminal:
            for _ in range(2):
                with pytest.raises(NeedsAnswer, match="Who are you") as raised:
                    await terminal.ask(lambda: _WHO)
                assert raised.value.questions == ("Who are you?",)
                assert "--answers" in str(raised.value)

    async def test_a_closed_terminal_neither_shows_nor_asks(self, terminal_of: TerminalOf) -> None:
        terminal = terminal_of(["Ada"])
        with pytest.raises(InternalError):
            terminal.show(lambda: _WHO)
        with pytest.raises(InternalError):
            await terminal.ask(lambda: _WHO)
        async with terminal:
            pass
        with pytest.raises(InternalError):
            terminal.show(lambda: _WHO)

    async def test_leaving_swallows_no_exception(self, terminal_of: TerminalOf) -> None:
        with pytest.raises(ZeroDivisionError):
            async with terminal_of(None):
                raise ZeroDivisionError

    async def test_progress_is_taken_at_any_time(self, terminal_of: TerminalOf) -> None:
        terminal = terminal_of(None)
        events = [Event(kind, _MOMENT, "left", "fix", {"text": "\x1b[31m"}) for kind in KINDS]
        for event in events:
            terminal.tell(event)
        async with terminal:
            terminal.tell(Event("never_heard_of", _MOMENT))

    async def test_passive_screens_need_nobody(self, terminal_of: TerminalOf) -> None:
        async with terminal_of(None) as terminal:
            terminal.show(lambda: Screen("Progress", Row("a", "b"), Rows([["a"], ["b", "c"]])))
            terminal.show(lambda: Screen("More"))
