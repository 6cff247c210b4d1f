"""What is told of runs, from ledgers written by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agl.api import reading
from agl.config.container import InMemory, in_memory
from agl.ports.errors import CorruptDocument, NotFoundError
from agl.ports.ids import Label, Scope
from agl.ports.ledger import (
    Entry,
    Epoch,
    Kind,
    Outcome,
    OutcomeKind,
    RunRecord,
    Spending,
)
from agl.ports.models import Usage
from agl.sdk._engine.ledger import Ledger

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LABEL = Label("one")


@pytest.fixture
def world(tmp_path: Path) -> InMemory:
    return in_memory(tmp_path, files={"a.txt": b"a"})


@pytest.fixture
async def ledger(world: InMemory) -> Ledger:
    return await begun(world, LABEL)


async def begun(world: InMemory, label: Label, created: datetime = NOW) -> Ledger:
    base = await world.services.history.resolve("HEAD")
    scope = Scope(world.services.project, label)
    ledger = Ledger(world.store, scope)
    ledger.write_record(
        RunRecord("fix", "1", "s", label, "HEAD", base, scope.branch, "/t", {"x": 1}, created)
    )
    ledger.write_epoch(Epoch(1, "s", {}, NOW))
    return ledger


def outcome(kind: OutcomeKind) -> Outcome:
    return Outcome(kind, 0, "said", "h", NOW, "landed", ("Which?",), None)


def summaries(world: InMemory) -> tuple[reading.Summary, ...]:
    services = world.services
    return reading.summaries(world.store, services.locks, services.project)


def entry(world: InMemory, number: int, before: str, after: str, **more: object) -> Entry:
    made = Entry(
        kind=Kind.STEP,
        name="writer",
        epoch=1,
        number=number,
        fingerprint=f"{number:064x}",
        ordinal=0,
        value=None,
        head_before=before,
        head_after=after,
        started=NOW,
        finished=NOW + timedelta(seconds=90),
        attempts=(f"attempt-{number}",),
        model="scripted:x",
        usage=Usage(1, 1),
    )
    return replace(made, **more)  # type: ignore[arg-type]


async def test_a_run_without_outcome_and_lock_was_interrupted(
    world: InMemory, ledger: Ledger
) -> None:
    (summary,) = summaries(world)
    assert (summary.label, summary.state, summary.workflow) == ("one", "interrupted", "fix")


async def test_a_run_whose_lock_is_held_is_running_whatever_its_outcome(
    world: InMemory, ledger: Ledger
) -> None:
    ledger.write_outcome(outcome(OutcomeKind.FAILED))
    with world.services.locks.hold((world.services.project, "one"), wait_s=0):
        assert summaries(world)[0].state == "running"
    assert summaries(world)[0].state == "failed"


@pytest.mark.parametrize("kind", list(OutcomeKind))
async def test_an_outcome_is_told_as_it_is(
    world: InMemory, ledger: Ledger, kind: OutcomeKind
) -> None:
    ledger.write_outcome(outcome(kind))
    (summary,) = summaries(world)
    assert (summary.state, summary.result, summary.message) == (kind.value, "landed", "said")
    assert summary.questions == ("Which?",)


async def test_runs_come_oldest_first(world: InMemory) -> None:
    for hours, label in ((2, "a"), (0, "c"), (1, "b")):
        await begun(world, Label(label), NOW + timedelta(hours=hours))
    assert [summary.label for summary in summaries(world)] == ["c", "b", "a"]


async def test_runs_that_cannot_be_read_say_why(world: InMemory, ledger: Ledger) -> None:
    for label in ("x", "y"):
        world.store.write((*ledger.folder[:-1], label, "run"), {"format": 99})
    found = {summary.label: summary for summary in summaries(world)}
    assert found["one"].state == "interrupted"
    assert found["x"].state == found["y"].state == "unreadable"
    assert "newer AGL" in found["x"].message


def test_a_folder_that_no_label_names_is_no_run(world: InMemory, ledger: Ledger) -> None:
    world.store.write((*ledger.folder[:-1], "one (copy)", "run"), {"format": 1})
    assert [summary.label for summary in summaries(world)] == ["one"]


async def test_a_removal_that_was_killed_is_no_run(world: InMemory, ledger: Ledger) -> None:
    world.store.remove((*ledger.folder, "run"))
    assert summaries(world) == ()


async def test_entries_are_live_or_off_the_chain(world: InMemory, ledger: Ledger) -> None:
    base = await world.services.history.resolve("HEAD")
    scope = Scope(world.services.project, LABEL)
    lines = [
        entry(world, 1, base, base),
        entry(world, 2, "elsewhere", "elsewhere"),
        entry(world, 3, "elsewhere", "x", kind=Kind.ASK, name="Which?"),
    ]
    for line in lines:
        ledger.write_entry(scope, line)
    details = await reading.run(world.services, LABEL)
    assert [(line.kind, line.live) for line in details.lines] == [
        ("step", True),
        ("step", False),
        ("ask", True),
    ]
    assert details.lines[0].duration_s == 90
    assert (details.head, details.base, details.epoch) == (base, base, 1)


async def test_what_killed_attempts_cost_counts(world: InMemory, ledger: Ledger) -> None:
    base = await world.services.history.resolve("HEAD")
    ledger.write_entry(Scope(world.services.project, LABEL), entry(world, 1, base, base))
    for attempt, tokens in (("attempt-1", 10), ("killed", 5)):
        used = Usage(tokens, 0, 0, 0.1)
        ledger.write_spending(
            Spending(attempt, "", "writer", 1, 1, "m", used, NOW, NOW, "claude 9", "a fence")
        )
    details = await reading.run(world.services, LABEL)
    assert details.spent.input_tokens == 15
    assert details.spent_in_vain == Usage(5, 0, 0, 0.1)
    told = [(one.id, one.recorded, one.usage.input_tokens) for one in details.attempts]
    assert told == [("attempt-1", True, 10), ("killed", False, 5)]
    assert {(one.program, one.sandbox) for one in details.attempts} == {("claude 9", "a fence")}


async def test_what_is_at_work_is_not_in_vain(world: InMemory, ledger: Ledger) -> None:
    """Of a step that failed and began again only the attempt that failed gave nothing."""
    for event, attempt in (
        ("run_started", ""),
        ("step_started", "failed"),
        ("step_failed", ""),
        ("step_started", "present"),
    ):
        told = {"kind": event, "namespace": "a", "about": "writer", "details": {"attempt": attempt}}
        world.log.append(ledger.folder, told)
    for attempt, tokens in (("dead", 1), ("failed", 10), ("present", 100)):
        used = Usage(tokens, 0, 0, 0.25)
        ledger.write_spending(Spending(attempt, "a", "writer", 1, 1, "m", used, NOW, NOW))
    with world.services.locks.hold((world.services.project, "one"), wait_s=0):
        details = await reading.run(world.services, LABEL)
    assert details.spent == Usage(111, 0, 0, 0.75)
    assert details.spent_in_vain == Usage(11, 0, 0, 0.5)
    assert [one.id for one in details.attempts if one.at_work] == ["present"]
    details = await reading.run(world.services, LABEL)
    assert details.spent_in_vain == details.spent


async def test_the_money_that_is_known_is_told_beside_what_is_not(
    world: InMemory, ledger: Ledger
) -> None:
    for attempt, cost_usd in (("a", 0.5), ("b", None), ("c", 0.25)):
        used = Usage(5, 0, 0, cost_usd)
        ledger.write_spending(Spending(attempt, "", "writer", 1, 1, "m", used, NOW, NOW))
    details = await reading.run(world.services, LABEL)
    assert (details.spent.cost_usd, details.spent_known_usd) == (None, 0.75)


async def test_how_a_run_ended_is_known_by_its_exit_code(world: InMemory, ledger: Ledger) -> None:
    assert (await reading.run(world.services, LABEL)).exit_code is None
    ledger.write_outcome(replace(outcome(OutcomeKind.FAILED), exit_code=3))
    assert (await reading.run(world.services, LABEL)).exit_code == 3


async def test_the_steps_at_work_are_those_the_log_saw_begin(
    world: InMemory, ledger: Ledger
) -> None:
    for kind, about in (
        ("step_started", "of the dead process"),
        ("run_started", "fix"),
        ("step_started", "a"),
        ("step_started", "b"),
        ("step_finished", "a"),
    ):
        world.log.append(ledger.folder, {"kind": kind, "about": about})
    assert (await reading.run(world.services, LABEL)).at_work == ()
    with world.services.locks.hold((world.services.project, "one"), wait_s=0):
        assert (await reading.run(world.services, LABEL)).at_work == ("b",)


async def test_a_run_that_is_not_there_is_not_found(world: InMemory, ledger: Ledger) -> None:
    with pytest.raises(NotFoundError, match="there is 'one'"):
        await reading.run(world.services, Label("ONE"))
    with pytest.raises(NotFoundError, match="`agl list`"):
        await reading.run(world.services, Label("two"))


async def test_a_broken_entry_is_named(world: InMemory, ledger: Ledger) -> None:
    world.store.write((*ledger.folder, "facts", "000001-x"), {"format": 1})
    with pytest.raises(CorruptDocument, match="000001-x"):
        await reading.run(world.services, LABEL)
