"""Waiting for a provider, on a clock that a test sets."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from agl.adapters.memory.clock import HurryingClock, ManualClock
from agl.adapters.system import SystemClock
from agl.api import runs
from agl.api.endings import Report
from agl.config import container
from agl.ports.agents import Acted, AgentEvent, AgentTask, Equipped, Said, Spent
from agl.ports.errors import LimitReached, Overloaded, RateLimited, Transient, UsageLimited
from agl.ports.ids import Label
from agl.ports.models import Usage
from agl.sdk import ModelId, Role, Run, workflow
from agl.sdk._engine.patience import Patience, Waits
from agl.testing import Play

MODEL = ModelId("fake", "model")
HOUR = 3600.0


def waits(clock: ManualClock, max_wait_s: float = HOUR) -> tuple[Waits, list[float]]:
    told: list[float] = []
    made = Waits(
        Patience(clock, max_wait_s, "run"), "fake", lambda why, pause_s, until: told.append(pause_s)
    )
    return made, told


async def test_pauses_grow_and_have_a_longest() -> None:
    made, told = waits(HurryingClock())
    for _ in range(9):
        await made.wait(Overloaded("no capacity"))
    assert told == [1, 2, 4, 8, 16, 32, 60, 60, 60]


async def test_i4_eighteen_overloads_over_fourteen_minutes_are_waited_for() -> None:
    clock = HurryingClock()
    made, told = waits(clock)
    for _ in range(18):
        await made.wait(Overloaded("no capacity"))
    assert len(told) == 18
    assert 12 * 60 < clock.monotonic_s() < 15 * 60


async def test_what_got_on_in_between_counts_anew() -> None:
    made, told = waits(HurryingClock())
    await made.wait(Overloaded("x"))
    await made.wait(Overloaded("x"))
    made.progressed()
    await made.wait(Overloaded("x"))
    assert told == [1, 2, 1]


async def test_the_time_that_the_provider_names_is_kept() -> None:
    made, told = waits(HurryingClock())
    await made.wait(RateLimited("slow down", retry_after_s=37))
    assert told == [37]


async def test_waiting_ends_with_the_error_itself() -> None:
    made, told = waits(HurryingClock(), 10)
    error = Overloaded("no capacity")
    for _ in range(3):
        await made.wait(error)
    with pytest.raises(Overloaded, match=r"no capacity; .* for 7 s, .* allows 10 s in a row"):
        await made.wait(error)
    assert told == [1, 2, 4]
    with pytest.raises(Overloaded):
        await made.wait(error)
    assert told == [1, 2, 4]


async def test_i5_a_limit_is_waited_for_until_it_ends_and_not_beyond() -> None:
    clock = HurryingClock()
    made, told = waits(clock)
    await made.wait(UsageLimited("used up", retry_after_s=1800))
    assert told == [1800]
    with pytest.raises(LimitReached, match=r"used up; it ends at 2030-01-01 02:30:00 UTC"):
        await made.wait(UsageLimited("used up", retry_after_s=2 * HOUR))
    assert told == [1800]


async def test_steps_that_meet_one_wall_wait_for_it_together() -> None:
    clock = ManualClock()
    patience = Patience(clock, HOUR, "run")
    told: list[tuple[str, float]] = []

    async def meet(name: str, error: Transient) -> None:
        made = Waits(patience, "fake", lambda why, pause_s, until: told.append((name, pause_s)))
        await made.wait(error)

    async with asyncio.TaskGroup() as group:
        group.create_task(meet("a", RateLimited("x", retry_after_s=100)))
        await asyncio.sleep(0)
        clock.advance(40)
        group.create_task(meet("b", Overloaded("x")))
        await asyncio.sleep(0)
        clock.advance(60)
    assert told == [("a", 100), ("b", 60)]


def writer(name: str) -> Role[None]:
    return Role(name=name, instructions="Write.").on(MODEL)


@workflow(version="1")
async def two(run: Run[None]) -> None:
    async with asyncio.TaskGroup() as group:
        for name in ("a", "b"):
            child = run.worktree(name)
            group.create_task(child.step(writer(name), commit=name))


def ran(folder: Path, agent: object, max_wait_s: float) -> tuple[Report, container.InMemory]:
    world = container.in_memory(folder, agent=agent)  # type: ignore[arg-type]
    loaded = runs.Loaded(two.module, two)
    report = asyncio.run(
        runs.run(world.services, loaded, Label("run"), None, max_wait_s=max_wait_s)
    )
    return report, world


def test_g2_a_step_that_is_begun_again_holds_one_result(tmp_path: Path) -> None:
    fails = Play(fails=Overloaded("no capacity"))
    agent = {"a": [fails, fails, Play(files={"a.txt": "a"})], "b": Play(files={"b.txt": "b"})}
    report, world = ran(tmp_path, agent, HOUR)
    assert report.outcome == "finished", report.message
    assert world.agent.ran.count("a@a#1") == 3
    assert world.agent.ran.count("b@b#1") == 1
    assert [event.kind for event in world.terminal.told].count("waiting") == 2


def test_without_waiting_the_failure_ends_the_step(tmp_path: Path) -> None:
    agent = {"a": Play(fails=Overloaded("no capacity"))}
    report, world = ran(tmp_path, agent, 0)
    assert (report.exit_code, report.message) == (6, "step 'a': no capacity")
    assert world.agent.ran.count("a@a#1") == 1


def test_an_agent_that_goes_on_in_its_conversation_is_not_begun_again(tmp_path: Path) -> None:
    begun: list[str] = []

    async def play(task: AgentTask, emit: object) -> str:
        begun.append(task.step)
        for _ in range(3):
            await task.wait(Overloaded("no capacity"))
            assert callable(emit)
            emit(Acted("read a.txt"))
        return "done"

    report, _ = ran(tmp_path, play, 2)
    assert report.outcome == "finished", report.message
    assert sorted(begun) == ["a", "b"]


def test_a_limit_beyond_what_may_be_waited_ends_the_run_resumable(tmp_path: Path) -> None:
    agent = {"a": Play(fails=UsageLimited("used up", retry_after_s=2 * HOUR))}
    report, _ = ran(tmp_path, agent, HOUR)
    assert (report.exit_code, report.outcome) == (9, "limit")
    said = "used up; it ends at 2030-01-01 02:00:00 UTC, `agl resume run` goes on then"
    assert said in report.message


@pytest.mark.parametrize("named", [0, -5, float("nan")])
async def test_a_time_that_is_none_makes_no_pause_shorter(named: float) -> None:
    made, told = waits(HurryingClock(), 10)
    for _ in range(3):
        await made.wait(RateLimited("x", retry_after_s=named))
    with pytest.raises(RateLimited):
        await made.wait(RateLimited("x", retry_after_s=named))
    assert told == [1, 2, 4]


async def test_a_time_beyond_all_calendars_is_given_up() -> None:
    made, _ = waits(HurryingClock(), 10)
    with pytest.raises(LimitReached):
        await made.wait(UsageLimited("x", retry_after_s=1e300))


async def test_a_wall_that_nobody_waits_for_holds_up_nobody() -> None:
    patience = Patience(HurryingClock(), 10, "run")
    told: list[float] = []

    def tell(why: str, pause_s: float, until: str) -> None:
        told.append(pause_s)

    with pytest.raises(RateLimited):
        await Waits(patience, "fake", tell).wait(RateLimited("x", retry_after_s=5 * HOUR))
    await Waits(patience, "fake", tell).wait(Overloaded("x"))
    assert told == [1]


def test_an_agent_that_always_fails_after_its_first_word_is_given_up(tmp_path: Path) -> None:
    begun: list[str] = []

    async def play(task: AgentTask, emit: Callable[[AgentEvent], None]) -> str:
        begun.append(task.step)
        emit(Said("I begin"))
        raise Overloaded("no capacity")

    report, _ = ran(tmp_path, play, 10)
    assert report.exit_code == 6
    assert len(begun) < 20


def test_words_and_tokens_of_an_answer_that_breaks_off_are_no_progress(tmp_path: Path) -> None:
    asked: list[str] = []

    async def play(task: AgentTask, emit: Callable[[AgentEvent], None]) -> str:
        while True:
            asked.append(task.step)
            emit(Equipped("claude 9"))
            emit(Said("I begin"))
            emit(Spent(Usage(1, 1)))
            await task.wait(Overloaded("no capacity"))

    report, _ = ran(tmp_path, play, 10)
    assert report.exit_code == 6
    assert len(asked) < 20


def test_the_time_limit_of_a_step_does_not_run_while_it_waits(tmp_path: Path) -> None:
    @workflow(version="1")
    async def limited(run: Run[None]) -> None:
        await run.step(writer("a"), commit="a", timeout_s=1.5)

    async def play(task: AgentTask, emit: Callable[[AgentEvent], None]) -> str:
        await task.wait(Overloaded("no capacity", retry_after_s=2))
        return "done"

    world = container.in_memory(tmp_path, agent=play)
    services = dataclasses.replace(world.services, clock=SystemClock())
    loaded = runs.Loaded(limited.module, limited)
    report = asyncio.run(runs.run(services, loaded, Label("run"), None, max_wait_s=60))
    assert report.outcome == "finished", report.message
