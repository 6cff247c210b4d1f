from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from agl.adapters.memory.terminal import MemoryTerminal
from agl.ports.errors import InternalError, NeedsAnswer
from agl.ports.events import Event
from agl.ports.terminal import Choice, Picked, Screen, Terminal, TextInput, Typed
from agl.testing.contracts.terminal import TerminalContract, TerminalOf

SURE = Screen[object]("Sure?", responses=[Choice("yes", 1), Choice("no", 0)])
OPEN = Screen[object]("Open?", responses=[Choice("yes", 1), TextInput("why", str)])


class TestMemoryTerminal(TerminalContract):
    @pytest.fixture
    def terminal_of(self) -> TerminalOf:
        def make(answers: Sequence[str] | None) -> Terminal:
            return MemoryTerminal(() if answers is None else answers)

        return make


async def test_answers_go_by_title() -> None:
    async with MemoryTerminal({"Sure?": "no", "Open?": "because"}) as terminal:
        assert await terminal.ask(lambda: OPEN) == Typed("why", "because")
        assert await terminal.ask(lambda: SURE) == Picked("no")
        assert await terminal.ask(lambda: SURE) == Picked("no")
        with pytest.raises(NeedsAnswer):
            await terminal.ask(lambda: Screen("Else?", responses=SURE.responses))


async def test_a_function_answers_what_it_sees() -> None:
    async with MemoryTerminal(lambda screen: screen.responses[0].label) as terminal:
        assert await terminal.ask(lambda: SURE) == Picked("yes")


async def test_an_answer_that_no_response_takes_is_the_tests_mistake() -> None:
    async with MemoryTerminal(["perhaps"]) as terminal:
        with pytest.raises(InternalError, match="'perhaps' is no answer to 'Sure\\?'"):
            await terminal.ask(lambda: SURE)


async def test_a_text_that_does_not_fit_is_the_tests_mistake() -> None:
    age = Screen[object]("Age?", responses=[TextInput("years", int)])
    async with MemoryTerminal(["old"]) as terminal:
        with pytest.raises(InternalError, match="'old' does not fit 'years' of 'Age\\?'"):
            await terminal.ask(lambda: age)


async def test_what_was_asked_shown_and_told_is_there_to_read() -> None:
    event = Event("warned", datetime(2026, 1, 2, tzinfo=UTC))
    terminal = MemoryTerminal(["yes"])
    async with terminal:
        terminal.tell(event)
        terminal.show(lambda: Screen("Board"))
        await terminal.ask(lambda: SURE)
    assert (terminal.told, terminal.shown, terminal.asked) == (
        [event],
        [Screen("Board")],
        ["Sure?"],
    )
