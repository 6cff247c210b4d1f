"""What becomes of the program's messages, one at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agl.adapters.memory.clock import ManualClock
from agl.adapters.system import SystemProcesses
from agl.ports.agents import Acted, AgentEvent, Said, Spent
from agl.ports.models import Usage
from agl.ports.processes import Marker

if TYPE_CHECKING:
    from agl.adapters.codex.hearing import Hearing


class Ear:
    def __init__(self) -> None:
        pytest.importorskip("codex_cli_bin", reason="needs openai-codex-cli-bin of agl[codex]")
        from agl.adapters.codex.hearing import Hearing

        self.events: list[AgentEvent] = []
        self.hearing: Hearing = Hearing(self.events.append, ManualClock())

    def hears(self, method: str, **params: Any) -> object:
        from agl.adapters.codex.conversation import Message

        return self.hearing.hear(Message(method, params))

    def uses(self, *totals: int) -> None:
        total = dict(zip(("inputTokens", "outputTokens", "cachedInputTokens"), totals, strict=True))
        self.hears("thread/tokenUsage/updated", tokenUsage={"total": total})

    def starts(self, kind: str, number: str) -> None:
        item = {"type": kind, "id": number, "command": "true", "server": "agl", "tool": "ask"}
        self.hears("item/started", item=item)

    @property
    def spent(self) -> list[Usage]:
        return [event.usage for event in self.events if isinstance(event, Spent)]


@pytest.fixture
def ear() -> Ear:
    return Ear()


def test_totals_become_what_each_call_used(ear: Ear) -> None:
    ear.hearing.opened("1", "m")
    ear.uses(10, 2, 1)
    ear.uses(10, 2, 1)
    ear.uses(30, 5, 1)
    assert ear.spent == [Usage(10, 2, 1), Usage(20, 3, 0)]


def test_totals_go_on_in_a_thread_that_is_taken_up_again(ear: Ear) -> None:
    ear.hearing.opened("1", "m")
    ear.uses(10, 2, 1)
    ear.hearing.opened("1", "m")
    ear.uses(15, 3, 1)
    assert ear.spent == [Usage(10, 2, 1), Usage(5, 1, 0)]


def test_they_begin_anew_in_a_new_thread(ear: Ear) -> None:
    ear.hearing.opened("1", "m")
    ear.uses(10, 2, 1)
    ear.hears("item/completed", item={"type": "agentMessage", "id": "x", "text": "hello"})
    assert ear.hearing.has_answered
    ear.hearing.opened("2", "m")
    ear.uses(10, 2, 1)
    assert ear.spent == [Usage(10, 2, 1)] * 2
    assert not ear.hearing.has_answered


def test_a_total_that_shrinks_is_nothing_spent(ear: Ear) -> None:
    ear.hearing.opened("1", "m")
    ear.uses(10, 2, 1)
    ear.uses(5, 3, 0)
    assert ear.spent == [Usage(10, 2, 1), Usage(0, 1, 0)]


def test_a_new_turn_waits_for_no_tool_of_the_last(ear: Ear) -> None:
    ear.hearing.begin()
    ear.starts("mcpToolCall", "1")
    assert (ear.hearing.waits_for_a_tool, ear.hearing.runs_a_command) == (True, True)
    ear.hearing.begin()
    assert (ear.hearing.waits_for_a_tool, ear.hearing.runs_a_command) == (False, False)


def test_a_command_is_at_work_until_it_is_completed(ear: Ear) -> None:
    ear.hearing.begin()
    ear.starts("commandExecution", "1")
    assert (ear.hearing.waits_for_a_tool, ear.hearing.runs_a_command) == (False, True)
    ear.hears("item/completed", item={"type": "commandExecution", "id": "1"})
    assert not ear.hearing.runs_a_command
    assert any(isinstance(event, Acted) for event in ear.events)


def test_blank_words_are_none(ear: Ear) -> None:
    for text in (" \n", "hello"):
        ear.hears("item/completed", item={"type": "agentMessage", "id": "x", "text": text})
    assert [event for event in ear.events if isinstance(event, Said)] == [Said("hello")]


def test_another_model_that_answers_is_named(ear: Ear) -> None:
    ear.hearing.opened("1", "asked")
    ear.hears("model/rerouted", toModel="answers")
    assert ear.hearing.model == "answers"
    ear.hears("model/rerouted")
    assert ear.hearing.model == "answers"


def test_a_turn_is_over_once_it_is_told(ear: Ear) -> None:
    ear.hearing.begin()
    assert not ear.hearing.turn_is_over
    assert ear.hears("turn/completed", turn={"status": "completed"}) is True
    assert ear.hearing.turn_is_over


async def test_whoever_asks_after_the_end_hears_of_it_too() -> None:
    pytest.importorskip("codex_cli_bin", reason="needs openai-codex-cli-bin of agl[codex]")
    from agl.adapters.codex.conversation import Conversation, Ended, Opening

    conversation = Conversation(SystemProcesses(), Marker("x"), Opening())
    conversation._messages.put_nowait(Ended("gone"))
    for _ in range(2):
        with pytest.raises(Ended, match="gone"):
            await conversation.next(30)
