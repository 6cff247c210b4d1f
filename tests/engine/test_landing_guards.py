"""What keeps a landing right when something fails, or is asked for in another way than before."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from agl.adapters.memory.integrator import MemoryIntegrator
from agl.adapters.memory.trees_workspaces import MemoryWorkspace, MemoryWorkspaces
from agl.api import runs
from agl.api.endings import Report
from agl.config import container
from agl.config.container import InMemory
from agl.ports.agents import AgentEvent, AgentTask
from agl.ports.ids import Label, Scope
from agl.ports.integrator import Conflict, Merged, NothingToMerge
from agl.ports.ledger import Kind
from agl.ports.scripts import Plays
from agl.ports.workspace import Keeping, KeptItem, Workspace
from agl.sdk import Choice, Run, Screen, StateError, Stop, UpstreamError, Workflow
from agl.sdk._engine import landings
from agl.testing.harness import Harness
from engine.authored import BOTH, CLASH, THREE, edited, made, of, writer, writes

GO_ON = Screen("Go on?", responses=[Choice("yes", True)])


def begin(world: InMemory, flow: Workflow[None], **changed: object) -> Report:
    services = dataclasses.replace(world.services, **changed)  # type: ignore[arg-type]
    loaded = runs.Loaded(flow.module, flow)
    return asyncio.run(runs.run(services, loaded, Label("run"), None))


def resume(world: InMemory, flow: Workflow[None]) -> Report:
    loaded = runs.Loaded(flow.module, flow)
    return asyncio.run(runs.resume(world.services, lambda _: loaded, Label("run")))


def states(h: Harness) -> list[list[str]]:
    """The stages of each landing of the run."""
    return [
        [stage.state.value for stage in landings.read(entry)]
        for entry in h.recorded()
        if entry.kind is Kind.LANDING
    ]


async def two_that_clash(run: Run[None]) -> None:
    """The first of two children that changed one file has landed."""
    for name in ("a", "b"):
        await run.worktree(name).step(writer(f"write-{name}"), commit=f"Write {name}")
    assert (await run.worktree("a").integrate()).landed


class HoldsNothing(MemoryIntegrator):
    async def hold(self, tree: Workspace, start: str, other: str, merged: str) -> None:
        raise UpstreamError("no space left")


def test_a_landing_that_fails_once_it_is_refused_holds_nothing(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        for name in ("a", "c"):
            await run.worktree(name).step(writer(f"write-{name}"), commit=f"Write {name}")
        with pytest.raises(UpstreamError, match="no space"):
            await run.worktree("a").integrate()
        assert (await run.worktree("c").integrate()).landed

    world = container.in_memory(
        tmp_path, agent=THREE, verdicts=lambda tree, command: not (tree / "a.txt").exists()
    )
    report = begin(world, of(body), integrator=HoldsNothing(world.repository))
    assert (report.outcome, report.unlanded) == ("finished", ("a",)), report.message


def test_a_landing_that_failed_is_the_same_when_it_is_asked_for_again(tmp_path: Path) -> None:
    lives: list[int] = []
    landed: list[bool] = []

    def gate(tree: Path, command: str) -> bool:
        if lives == [1] and not landed:
            landed.append(False)
            raise UpstreamError("no shell")
        return True

    async def body(run: Run[None]) -> None:
        lives.append(1)
        child = run.worktree("a")
        await child.step(writer("write-a"), commit="Write a")
        try:
            landing = await child.integrate()
        except UpstreamError:
            landing = await child.integrate()
        landed.append(landing.landed)
        raise Stop("enough")

    h = made(tmp_path, agent=THREE, verdicts=gate)
    h.run(of(body))
    h.resume()
    assert landed == [False, True, True]
    assert states(h) == [["landed"]]


def test_a_hold_of_an_earlier_process_that_gave_way_is_merged_anew(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        await two_that_clash(run)
        b, c = run.worktree("b"), run.worktree("c")
        landing = await asyncio.create_task(b.integrate())
        await run.ask(GO_ON)
        await c.step(writer("write-c"), commit="Write c")
        assert (await c.integrate()).landed
        await landing.retry()
        (h.tree() / "same.txt").write_text("both")
        await landing.retry()
        assert landing.landed

    h = made(tmp_path, agent={**CLASH, "write-c": writes(c="c")}, files=BOTH)
    assert h.run(of(body)).exit_code == 6
    h.answers = ["yes"]
    report = h.resume()
    assert report.result == "landed", report.message
    assert h.files() == {"same.txt": "both", "c.txt": "c"}


def test_a_hold_of_an_earlier_process_does_not_stop_its_own_child(tmp_path: Path) -> None:
    """The child went on, so that its landing is another one; nothing waits for the old one."""
    lives: list[int] = []

    async def body(run: Run[None]) -> None:
        lives.append(1)
        await two_that_clash(run)
        b, landed = run.worktree("b"), asyncio.Event()
        if len(lives) > 1:
            await b.step(writer("mend"), commit="Mend", merging=run)

        async def wait() -> bool:
            return await landed.wait()

        async def busy() -> None:
            done: bool = await run.record("busy", wait)
            assert done

        async def land() -> None:
            async with asyncio.timeout(60):
                landing = await b.integrate()
            if landing.conflicted:
                await run.ask(GO_ON)
            landed.set()

        async with asyncio.TaskGroup() as group:
            group.create_task(land())
            if len(lives) > 1:
                group.create_task(busy())

    h = made(tmp_path, agent={**CLASH, "mend": writes(same="both")}, files=BOTH)
    assert h.run(of(body)).exit_code == 6
    report = h.resume()
    assert report.result == "landed", report.message
    assert states(h) == [["landed"], ["conflicted", "released"], ["landed"]]


def test_a_verdict_is_of_the_tree_also_after_a_step_that_was_recorded_and_refused(
    tmp_path: Path,
) -> None:
    """The step moved another child's branch: it is recorded, and its caller gets the error."""
    verdicts: list[bool] = []

    async def stray(task: AgentTask, emit: Callable[[AgentEvent], None]) -> None:
        if not verdicts:
            raise UpstreamError("not now")
        (task.tree / "stray.txt").write_text("stray")
        world.repository.move_branch("agl/_work/run/b", world.repository.branches["main"])

    async def body(run: Run[None]) -> None:
        await run.worktree("b").step(writer("write-b"), commit="Write b")
        with pytest.raises((UpstreamError, StateError)):
            await run.step(writer("stray"), commit="Stray")
        verdicts.append((await run.verify()).passed)
        raise Stop("enough")

    agent: Plays = {"write-b": writes(b="b"), "stray": stray}
    world = container.in_memory(
        tmp_path, agent=agent, verdicts=lambda tree, command: not (tree / "stray.txt").exists()
    )
    begin(world, of(body))
    resume(world, of(body))
    assert verdicts == [True, False]


def test_a_child_whose_start_is_gone_begins_anew(tmp_path: Path) -> None:
    bases: list[str] = []

    async def body(run: Run[None]) -> None:
        child = run.worktree("a", base="side")
        await child.record("seen", lambda: 1)
        bases.append(child.base)
        raise Stop("enough")

    world = container.in_memory(tmp_path)
    repository = world.repository
    first = repository.branches["main"]
    start = repository.branches["side"] = repository.add_commit((first,), {}, "side")
    begin(world, of(body))
    repository.branches["side"] = first
    del repository.commits[start]
    resume(world, of(body))
    assert bases == [start, first]


def test_a_repair_that_ends_the_merge_instead_is_not_done(tmp_path: Path) -> None:
    async def gives_up(task: AgentTask, emit: Callable[[AgentEvent], None]) -> None:
        world.repository.reset_in(task.tree, world.repository.head(task.tree))
        (task.tree / "same.txt").write_text("mine alone")

    async def body(run: Run[None]) -> None:
        await two_that_clash(run)
        await run.worktree("b").step(writer("repair"), commit="Repair", merging=run)

    agent: Plays = {**CLASH, "repair": gives_up}
    world = container.in_memory(
        tmp_path, agent=agent, files={"same.txt": b"base"}, verdicts=lambda tree, command: True
    )
    report = begin(world, of(body))
    assert report.exit_code == 6
    assert "ended the merge" in report.message


class SlowTree(MemoryWorkspace):
    async def restore(self, to: str, keeping: Keeping) -> tuple[KeptItem, ...]:
        await asyncio.sleep(0.01)
        return await super().restore(to, keeping)


class SlowIntegrator(MemoryIntegrator):
    """Takes its time, as git does."""

    async def conclude(
        self,
        tree: Workspace,
        start: str,
        other: str,
        message: str,
        conflict: Conflict,
        keeping: Keeping,
    ) -> Merged | Conflict | NothingToMerge:
        await asyncio.sleep(0.01)
        return await super().conclude(tree, start, other, message, conflict, keeping)


class SlowWorkspaces(MemoryWorkspaces):
    def __init__(self, world: InMemory) -> None:
        super().__init__(world.repository, world.services.project)
        self._world = world

    async def open(self, scope: Scope, start: str) -> Workspace:
        tree = await super().open(scope, start)
        return SlowTree(self._world.repository, scope, tree.path)


@pytest.mark.parametrize(("first", "second"), list(itertools.product(("retry", "abort"), repeat=2)))
def test_of_two_calls_at_once_on_a_landing_one_is_refused(
    tmp_path: Path, first: str, second: str
) -> None:
    async def body(run: Run[None]) -> None:
        await two_that_clash(run)
        landing = await run.worktree("b").integrate()
        (world.services.workspaces.folder(run._place.scope) / "same.txt").write_text("both")
        calls = (getattr(landing, name)() for name in (first, second))
        one, other = await asyncio.gather(*calls, return_exceptions=True)
        assert one is None
        assert isinstance(other, StateError)
        assert f"{first}() of it is at work" in str(other)
        assert landing.landed is (first == "retry")
        assert not landing.conflicted

    world = container.in_memory(
        tmp_path, agent=CLASH, files={"same.txt": b"base"}, verdicts=lambda tree, command: True
    )
    slow = {"integrator": SlowIntegrator(world.repository), "workspaces": SlowWorkspaces(world)}
    report = begin(world, of(body), **slow)
    assert report.outcome == "finished", report.message
    files = asyncio.run(world.services.history.files(report.head))
    assert files == {"same.txt": b"both" if first == "retry" else b"a"}
    assert report.unlanded == (() if first == "retry" else ("b",))


RETRIES = """a, b = run.worktree("a"), run.worktree("b")
    await a.step(writer("write-a"), commit="Write a")
    await b.step(writer("write-b"), commit="Write b")
    await a.integrate()
    landing = await b.integrate()
    await landing.retry()
    if landing.conflicted:
        await run.ask(Screen("Conflict", responses=[Choice("retry", True)]))
    # """


def test_after_an_edit_a_retry_looks_at_what_was_typed(tmp_path: Path) -> None:
    """That the same retry did not land before the edit is no stage of the landing after it."""
    h = made(tmp_path, agent=CLASH, files=BOTH)
    assert h.run(edited(tmp_path, f"{RETRIES}1")).exit_code == 6
    (h.tree() / "same.txt").write_text("both")
    report = h.resume(edited(tmp_path, f"{RETRIES}2"))
    assert report.result == "landed", report.message
    assert h.files() == {"same.txt": "both"}
    assert states(h)[-1] == ["conflicted", "landed"]
