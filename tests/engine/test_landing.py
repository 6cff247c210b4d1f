"""Children and landings, on fakes."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from pathlib import Path

import pytest

from agl.adapters.memory.store import MemoryStore
from agl.api import runs
from agl.api.endings import Report
from agl.config import container
from agl.ports.ids import Label
from agl.ports.ledger import Kind
from agl.ports.store import Address, Document
from agl.sdk import (
    Choice,
    Landing,
    Restriction,
    Role,
    Run,
    Screen,
    StateError,
    Stop,
    UpstreamError,
    Workflow,
)
from agl.testing import Interrupted, Play
from agl.testing.harness import Harness
from engine.authored import (
    BOTH,
    CLASH,
    MODEL,
    THREE,
    clash,
    edited,
    made,
    of,
    three,
    writer,
    writes,
)


def until_done(h: Harness, flow: Workflow[None], *, every: int = 1) -> tuple[Report, list[str]]:
    """Runs it, dying after each `every` entries, and resumes it to its end; all steps that ran.
    What was recorded when it died runs in no later process."""
    ran: list[str] = []
    done: set[str] = set()
    for life in range(200):
        try:
            if life == 0:
                return h.run(flow, interrupt_after=every), list(h.ran)
            report = h.resume(interrupt_after=every)
            assert not done & set(h.ran)
            return report, ran + h.ran
        except Interrupted:
            assert not done & set(h.ran)
            ran += h.ran
        done = {
            f"{entry.name}@{'/'.join(path)}#1" if path else f"{entry.name}#1"
            for path in ((), ("a",), ("b",), ("c",), ("a", "b"))
            for entry in h.recorded(*path)
            if entry.kind is Kind.STEP
        }
    raise AssertionError("it never ends")


def test_three_children_land_on_the_run(tmp_path: Path) -> None:
    h = made(tmp_path, agent=THREE)
    report = h.run(of(three))
    assert (report.outcome, report.result) == ("finished", "landed"), report.message
    assert h.files() == {"a.txt": "a", "b.txt": "b", "c.txt": "c"}
    assert [entry.kind for entry in h.recorded()].count(Kind.LANDING) == 3
    assert report.unlanded == ()


@pytest.mark.parametrize("every", [1, 2, 3])
def test_children_killed_after_each_write_land_once(tmp_path: Path, every: int) -> None:
    h = made(tmp_path, agent=THREE)
    report, _ = until_done(h, of(three), every=every)
    assert report.result == "landed", report.message
    assert h.files() == {"a.txt": "a", "b.txt": "b", "c.txt": "c"}
    landed = [e for e in h.recorded() if e.kind is Kind.LANDING and e.head_after != e.head_before]
    assert len(landed) == 3


def test_a_resume_of_a_finished_run_lands_nothing_again(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        await three(run)
        raise Stop("later")

    h = made(tmp_path, agent=THREE)
    first = h.run(of(body))
    again = h.resume()
    assert (again.head, again.ran, h.ran) == (first.head, 0, [])


def test_a_child_without_a_change_has_nothing_to_land(tmp_path: Path) -> None:
    seen: list[Landing] = []

    async def body(run: Run[None]) -> None:
        child = run.worktree("a")
        await child.step(writer(), commit="Write")
        seen.append(await child.integrate())

    report = made(tmp_path, agent={"write": Play()}).run(of(body))
    assert seen[0].nothing
    assert not seen[0].landed
    assert report.result == "produced_nothing"


def test_a_child_that_came_in_with_another_one_is_not_told_as_not_landed(tmp_path: Path) -> None:
    seen: list[Landing] = []

    async def body(run: Run[None]) -> None:
        first = run.worktree("a")
        await first.step(writer("write-a"), commit="Write a")
        second = run.worktree("b", base="agl/_work/run/a")
        await second.step(writer("write-b"), commit="Write b")
        seen.append(await second.integrate())
        seen.append(await first.integrate())

    report = made(tmp_path, agent=THREE).run(of(body))
    assert [(one.landed, one.nothing) for one in seen] == [(True, False), (False, True)]
    assert (report.result, report.unlanded) == ("landed", ())


def test_a_later_child_sees_what_an_earlier_one_landed(tmp_path: Path) -> None:
    heads: list[str] = []

    async def body(run: Run[None]) -> None:
        first = run.worktree("a")
        await first.step(writer("write-a"), commit="Write a")
        landing = await first.integrate()
        second = run.worktree("b")
        await second.step(writer("write-b"), commit="Write b")
        heads.extend([landing.head, second.base])
        await second.integrate()

    h = made(tmp_path, agent=THREE)
    h.run(of(body))
    assert heads[0] == heads[1]
    assert h.files() == {"a.txt": "a", "b.txt": "b"}


def test_a_grandchild_lands_in_its_own_parent(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        child = run.worktree("a")
        inner = child.worktree("b")
        await inner.step(writer("write-b"), commit="Write b")
        assert (await inner.integrate()).landed
        await child.step(writer("write-a"), commit="Write a")
        assert (await child.integrate()).landed

    h = made(tmp_path, agent=THREE)
    report, _ = until_done(h, of(body))
    assert report.result == "landed", report.message
    assert h.files() == {"a.txt": "a", "b.txt": "b"}


def test_a_conflict_that_is_given_up_is_told_as_not_landed(tmp_path: Path) -> None:
    async def then(run: Run[None], landing: Landing) -> None:
        await landing.abort()
        assert not landing.conflicted
        assert not landing.landed
        assert (h.tree() / "same.txt").read_text() == "a"
        with pytest.raises(StateError, match="settled"):
            await landing.retry()

    h = made(tmp_path, agent=CLASH, files=BOTH)
    report, _ = until_done(h, of(lambda run: clash(run, then)))
    assert (report.outcome, report.result) == ("finished", "not_landed"), report.message
    assert report.unlanded == ("b",)
    assert h.files() == {"same.txt": "a"}


def test_a_held_parent_refuses_a_step_and_a_build(tmp_path: Path) -> None:
    refused: list[str] = []

    async def then(run: Run[None], landing: Landing) -> None:
        for call in (run.step(writer("more"), commit="More"), run.verify()):
            with pytest.raises(StateError, match="waits in the tree") as error:
                await call
            refused.append(str(error.value))
        await landing.abort()
        await run.step(writer("more"), commit="More")

    h = made(tmp_path, agent={**CLASH, "more": writes(more="m")}, files=BOTH)
    report = h.run(of(lambda run: clash(run, then)))
    assert report.outcome == "finished", report.message
    assert len(refused) == 2
    assert h.files() == {"same.txt": "a", "more.txt": "m"}


def test_a_person_resolves_a_conflict_in_the_tree(tmp_path: Path) -> None:
    async def then(run: Run[None], landing: Landing) -> None:
        while landing.conflicted:
            question = Screen("Conflict", "Resolve it.", responses=[Choice("retry", True)])
            await run.ask(question)
            await landing.retry()
        assert landing.landed

    h = made(tmp_path, agent=CLASH, files=BOTH)

    def answers(screen: Screen[object]) -> str:
        (h.tree() / "same.txt").write_text("both")
        return "retry"

    h.answers = answers
    report, _ = until_done(h, of(lambda run: clash(run, then)))
    assert report.result == "landed", report.message
    assert h.files() == {"same.txt": "both"}


def test_a_retry_of_what_nobody_resolved_still_conflicts(tmp_path: Path) -> None:
    async def then(run: Run[None], landing: Landing) -> None:
        await landing.retry()
        assert landing.conflicted
        await landing.abort()

    report = made(tmp_path, agent=CLASH, files=BOTH).run(of(lambda run: clash(run, then)))
    assert report.outcome == "finished", report.message


def test_an_agent_repairs_with_the_parents_head_merged_in(tmp_path: Path) -> None:
    async def then(run: Run[None], landing: Landing) -> None:
        child = run.worktree("b")
        await child.step(writer("repair"), commit="Repair", merging=run)
        await landing.retry()
        assert landing.landed

    h = made(tmp_path, agent={**CLASH, "repair": writes(same="both")}, files=BOTH)
    report, ran = until_done(h, of(lambda run: clash(run, then)))
    assert report.result == "landed", report.message
    assert h.files() == {"same.txt": "both"}
    assert "repair@b#1" in ran


def test_a_repair_that_leaves_the_markers_is_not_done(tmp_path: Path) -> None:
    async def then(run: Run[None], landing: Landing) -> None:
        child = run.worktree("b")
        await child.step(writer("repair"), commit="Repair", merging=run)

    h = made(tmp_path, agent={**CLASH, "repair": Play()}, files=BOTH)
    report = h.run(of(lambda run: clash(run, then)))
    assert report.exit_code == 6
    assert "same.txt" in report.message


def test_a_red_build_holds_the_landing_and_a_green_one_lands_it(tmp_path: Path) -> None:
    states: list[tuple[bool, bool]] = []

    async def body(run: Run[None]) -> None:
        child = run.worktree("a")
        await child.step(writer("write-a"), commit="Write a")
        landing = await child.integrate()
        states.append((landing.conflicted, landing.refused_by_the_gate))
        assert landing.verdict is not None
        assert not landing.verdict.passed
        await landing.retry()
        states.append((landing.conflicted, landing.landed))

    h = made(tmp_path, agent=THREE, verdicts=[False, True])
    report = h.run(of(body))
    assert report.result == "landed", report.message
    assert states == [(True, True), (False, True)]


def test_a_red_build_that_is_given_up_leaves_the_parent_where_it_was(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        child = run.worktree("a")
        await child.step(writer("write-a"), commit="Write a")
        landing = await child.integrate()
        await landing.abort()

    h = made(tmp_path, agent=THREE, verdicts=[False])
    report = h.run(of(body))
    assert (report.head, report.result) == (report.base, "not_landed")
    assert h.files() == {}


def test_a_hold_that_its_task_forgot_gives_way(tmp_path: Path) -> None:
    landings: list[Landing] = []

    async def one(run: Run[None], name: str) -> None:
        child = run.worktree(name)
        await child.step(writer(f"write-{name}"), commit=f"Write {name}")
        landings.append(await child.integrate())

    async def body(run: Run[None]) -> None:
        async with asyncio.TaskGroup() as group:
            for name in ("a", "b", "c"):
                group.create_task(one(run, name))
        held = [landing for landing in landings if landing.conflicted]
        assert [landing.landed for landing in landings].count(True) == 2
        await held[0].abort()

    clash = {**CLASH, "write-c": writes(c="c")}
    report = made(tmp_path, agent=clash, files=BOTH).run(of(body))
    assert report.outcome == "finished", report.message


def test_a_task_that_holds_a_landing_cannot_land_another(tmp_path: Path) -> None:
    async def then(run: Run[None], landing: Landing) -> None:
        child = run.worktree("c")
        await child.step(writer("write-c"), commit="Write c")
        with pytest.raises(StateError, match="retry"):
            await child.integrate()
        await landing.abort()
        assert (await child.integrate()).landed

    h = made(tmp_path, agent={**CLASH, "write-c": writes(c="c")}, files=BOTH)
    report = h.run(of(lambda run: clash(run, then)))
    assert report.outcome == "finished", report.message


def test_again_in_a_child_takes_its_landing_back(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        await run.step(writer("first"), commit="First")
        await three(run)
        await run.step(writer("last"), commit="Last")

    agent = {**THREE, "first": writes(first="1"), "last": writes(last="1")}
    h = made(tmp_path, agent=agent)
    h.run(of(body))
    h.agent = {**agent, "write-b": writes(b="better")}
    report = h.resume(again="b/write-b")
    assert report.result == "landed", report.message
    assert "first#1" not in h.ran
    assert {"write-b@b#1", "last#1"} <= set(h.ran)
    assert h.files() == {"first.txt": "1", "a.txt": "a", "b.txt": "better", "c.txt": "c"} | {
        "last.txt": "1"
    }


def test_again_in_the_parent_leaves_what_a_child_did_before(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        child = run.worktree("a")
        await child.step(writer("early"), commit="Early")
        await run.step(writer("plan"), commit="Plan")
        await child.step(writer("late"), commit="Late")
        assert (await child.integrate()).landed

    h = made(tmp_path, agent={name: writes(**{name: "1"}) for name in ("early", "plan", "late")})
    h.run(of(body))
    report = h.resume(again="plan")
    assert report.result == "landed", report.message
    assert h.ran == ["plan#1", "late@a#1"]


@pytest.mark.parametrize("name", ["", "a/b", "_base", "A"])
def test_a_namespace_is_checked(tmp_path: Path, name: str) -> None:
    async def body(run: Run[None]) -> None:
        run.worktree("a")
        run.worktree(name)

    report = made(tmp_path).run(of(body))
    assert report.exit_code == 2
    assert "namespace" in report.message


def test_only_the_parent_can_be_merged_in(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        child = run.worktree("a")
        await child.step(writer(), commit="x", merging=child)

    report = made(tmp_path).run(of(body))
    assert report.exit_code == 2
    assert "merging=" in report.message


def test_a_role_that_reads_cannot_conclude_a_merge(tmp_path: Path) -> None:
    reads = Role(name="read", instructions="Read.", restrictions=[Restriction.NO_FILE_WRITES]).on(
        MODEL
    )

    async def body(run: Run[None]) -> None:
        await run.worktree("a").step(reads, merging=run)

    report = made(tmp_path).run(of(body))
    assert report.exit_code == 2
    assert "merging=" in report.message


def test_an_answer_given_beforehand_is_not_given_twice(tmp_path: Path) -> None:
    """A loop around a conflict that nobody resolved would never end."""

    async def body(run: Run[None]) -> None:
        while await run.ask(Screen("Again?", responses=[Choice("yes", True)])):
            pass

    world = container.in_memory(tmp_path)
    flow = of(body)
    given = {"Again?": "yes"}
    loaded = runs.Loaded(flow.module, flow)
    report = asyncio.run(runs.run(world.services, loaded, Label("run"), None, answers=given))
    assert report.exit_code == 6
    assert report.questions == ("Again?",)


def test_a_hold_whose_task_failed_stays_for_the_resume(tmp_path: Path) -> None:
    async def one(run: Run[None], name: str) -> None:
        child = run.worktree(name)
        await child.step(writer(f"write-{name}"), commit=f"Write {name}")
        landing = await child.integrate()
        while landing.conflicted:
            await run.ask(Screen("Resolved?", responses=[Choice("retry", True)]))
            await landing.retry()

    async def body(run: Run[None]) -> None:
        async with asyncio.TaskGroup() as group:
            for name in ("a", "b", "c"):
                group.create_task(one(run, name))

    h = made(tmp_path, agent={**CLASH, "write-c": writes(c="c")}, files=BOTH)
    report = h.run(of(body))
    assert report.exit_code == 6
    assert "<<<<<<<" in (h.tree() / "same.txt").read_text()
    (h.tree() / "same.txt").write_text("both")
    h.answers = ["retry"]
    report = h.resume()
    assert report.result == "landed", report.message
    assert h.files() == {"same.txt": "both", "c.txt": "c"}


def test_what_was_typed_stays_when_another_child_is_ready_first(tmp_path: Path) -> None:
    """The landing that waits since an earlier process is asked for before another one lands."""
    lives: list[int] = []

    async def one(run: Run[None], name: str) -> None:
        child = run.worktree(name)
        await child.step(writer(f"write-{name}"), commit=f"Write {name}")
        if name == "c" and len(lives) == 1:
            await asyncio.sleep(60)
        landing = await child.integrate()
        while landing.conflicted:
            await run.ask(Screen("Resolved?", responses=[Choice("retry", True)]))
            await landing.retry()

    async def body(run: Run[None]) -> None:
        lives.append(1)
        async with asyncio.TaskGroup() as group:
            for name in ("c", "a", "b"):
                group.create_task(one(run, name))

    h = made(tmp_path, agent={**CLASH, "write-c": writes(c="c")}, files=BOTH)
    assert h.run(of(body)).exit_code == 6
    (h.tree() / "same.txt").write_text("both")
    h.answers = ["retry"]
    report = h.resume()
    assert report.result == "landed", report.message
    assert h.files() == {"same.txt": "both", "c.txt": "c"}


def test_e13_a_retry_that_fails_frees_the_parent_and_is_made_again(tmp_path: Path) -> None:
    broken = True

    def gate(tree: Path, command: str) -> bool:
        if broken and (tree / "same.txt").read_text() == "both":
            raise UpstreamError("no shell")
        return True

    failed: list[str] = []

    async def then(run: Run[None], landing: Landing) -> None:
        while landing.conflicted:
            await run.ask(Screen("Resolved?", responses=[Choice("retry", True)]))
            try:
                await landing.retry()
            except UpstreamError as error:
                failed.append(str(error))
                assert not landing.conflicted
        child = run.worktree("c")
        await child.step(writer("write-c"), commit="Write c")
        assert (await child.integrate()).landed
        raise Stop("enough")

    h = made(tmp_path, agent={**CLASH, "write-c": writes(c="c")}, files=BOTH, verdicts=gate)

    def answers(screen: Screen[object]) -> str:
        (h.tree() / "same.txt").write_text("both")
        return "retry"

    h.answers = answers
    report = h.run(of(lambda run: clash(run, then)))
    assert (report.message, report.unlanded, failed) == ("enough", ("b",), ["no shell"])
    assert h.files() == {"same.txt": "a", "c.txt": "c"}
    broken = False
    report = h.resume()
    assert report.unlanded == ()
    assert h.files() == {"same.txt": "both", "c.txt": "c"}


SIDE_BY_SIDE = "await asyncio.gather(*(one(run, name) for name in 'abc'))"
IN_TURN = """for name in 'abc':
        await one(run, name)"""
IN_GROUPS = """await asyncio.gather(one(run, 'a'), one(run, 'b'))
    await asyncio.gather(one(run, 'c'))"""


def test_children_that_worked_side_by_side_do_so_again_after_an_edit(tmp_path: Path) -> None:
    """The first one lands before the others begin, since nothing of it runs again."""
    h = made(tmp_path, agent=THREE)
    h.run(edited(tmp_path, SIDE_BY_SIDE))
    report = h.resume(edited(tmp_path, f"{SIDE_BY_SIDE}  # edited"))
    assert report.result == "landed", report.message
    assert h.ran == []
    assert h.files() == {"a.txt": "a", "b.txt": "b", "c.txt": "c"}


@pytest.mark.parametrize(
    ("body", "again"),
    [(IN_TURN, ["write-b@b#1", "write-c@c#1"]), (IN_GROUPS, ["write-c@c#1"])],
    ids=["in turn", "in groups"],
)
def test_children_that_now_come_one_after_another_see_what_landed(
    tmp_path: Path, body: str, again: list[str]
) -> None:
    h = made(tmp_path, agent=THREE)
    h.run(edited(tmp_path, SIDE_BY_SIDE))
    report = h.resume(edited(tmp_path, body))
    assert report.result == "landed", report.message
    assert h.ran == again


class UnsureStore(MemoryStore):
    """Writes a landing that has landed, and fails all the same, once."""

    failed = False

    def write(self, address: Address, document: Document) -> None:
        super().write(address, document)
        is_landing = document.get("kind") == Kind.LANDING.value
        if is_landing and document["head_after"] != document["head_before"] and not self.failed:
            self.failed = True
            raise UpstreamError("no space left")


def test_a_landing_that_could_not_be_recorded_is_not_landed_over(tmp_path: Path) -> None:
    said: list[str] = []

    async def body(run: Run[None]) -> None:
        for name in ("a", "b"):
            child = run.worktree(name)
            await child.step(writer(f"write-{name}"), commit=f"Write {name}")
            try:
                await child.integrate()
            except UpstreamError as error:
                said.append(str(error))

    world = container.in_memory(tmp_path, agent=THREE, verdicts=lambda tree, command: True)
    store, flow = UnsureStore(), of(body)
    loaded = runs.Loaded(flow.module, flow)
    services = dataclasses.replace(world.services, store=store)
    report = asyncio.run(runs.run(services, loaded, Label("run"), None))
    assert report.exit_code == 6
    assert said[0] == "no space left"
    assert "could not be recorded" in said[1]
    report = asyncio.run(runs.resume(services, lambda _: loaded, Label("run")))
    assert report.result == "landed", report.message
    assert report.unlanded == ()
    files = asyncio.run(world.services.history.files(report.head))
    assert sorted(files) == ["a.txt", "b.txt"]


def test_a_retry_after_the_hold_gave_way_that_fails_is_settled(tmp_path: Path) -> None:
    seen: list[object] = []

    def gate(tree: Path, command: str) -> bool:
        if "broken" in seen:
            raise UpstreamError("no shell")
        return True

    async def body(run: Run[None]) -> None:
        a, b, c = (run.worktree(name) for name in "abc")
        await a.step(writer("write-a"), commit="A")
        await b.step(writer("write-b"), commit="B")
        await c.step(writer("write-c"), commit="C")
        assert (await a.integrate()).landed
        landing = await asyncio.create_task(b.integrate())
        assert landing.conflicted
        assert (await c.integrate()).landed
        seen.append("broken")
        await b.step(writer("mend"), commit="M", merging=run)
        with pytest.raises(UpstreamError):
            await landing.retry()
        seen.extend([landing.conflicted, landing.landed])

    agent = {**CLASH, "write-c": writes(c="c"), "mend": writes(same="both")}
    report = made(tmp_path, agent=agent, files=BOTH, verdicts=gate).run(of(body))
    assert report.outcome == "finished", report.message
    assert seen == ["broken", False, False]


RESOLVED = """a, b = run.worktree("a"), run.worktree("b")
    await a.step(writer("write-a"), commit="Write a")
    await b.step(writer("write-b"), commit="Write b")
    await a.integrate()
    landing = await b.integrate()
    while landing.conflicted:
        await run.ask(Screen("Conflict", responses=[Choice("retry", True)]), key="q")
        await landing.retry()
    # """


@pytest.mark.parametrize("entries", range(1, 10))
def test_what_a_person_resolved_stays_resolved_through_two_edits(
    tmp_path: Path, entries: int
) -> None:
    h = made(tmp_path, agent=CLASH, files=BOTH)

    def answers(screen: Screen[object]) -> str:
        (h.tree() / "same.txt").write_text("both")
        return "retry"

    h.answers = answers
    assert h.run(edited(tmp_path, f"{RESOLVED}1")).result == "landed"
    h.answers = ()
    with contextlib.suppress(Interrupted):
        h.resume(edited(tmp_path, f"{RESOLVED}2"), interrupt_after=entries)
    report = h.resume(edited(tmp_path, f"{RESOLVED}3"))
    assert report.result == "landed", report.message
    assert h.files() == {"same.txt": "both"}


def test_a_question_about_a_landing_that_is_asked_again_finds_it_waiting(tmp_path: Path) -> None:
    async def then(run: Run[None], landing: Landing) -> None:
        choices = [Choice("retry", True), Choice("give up", False)]
        while landing.conflicted:
            if await run.ask(Screen("Settle", responses=choices), key="settle"):
                await landing.retry()
            else:
                await landing.abort()

    h = made(tmp_path, agent=CLASH, files=BOTH)
    h.answers = ["give up"]
    flow = of(lambda run: clash(run, then))
    assert h.run(flow).unlanded == ("b",)

    def answers(screen: Screen[object]) -> str:
        assert "<<<<<<<" in (h.tree() / "same.txt").read_text()
        (h.tree() / "same.txt").write_text("both")
        return "retry"

    h.answers = answers
    report = h.resume(again="settle")
    assert report.result == "landed", report.message
    assert h.files() == {"same.txt": "both"}
    assert h.ran == []
