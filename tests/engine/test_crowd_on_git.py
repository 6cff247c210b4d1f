"""Many at once on real git: steps of one scope and of children, a run that steps while children
land, tasks that land and then step; one fails, the process dies at random, and another completion
order follows. Exactly what was not recorded runs."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from agl.adapters.memory.terminal import MemoryTerminal
from agl.api import runs
from agl.api.endings import Report
from agl.ports.agents import AgentEvent, AgentOutcome, AgentRunner, AgentTask
from agl.ports.errors import NotFoundError, Overloaded, StateError
from agl.ports.ids import Label
from agl.ports.models import Capability, ModelId
from agl.ports.processes import Marker
from agl.ports.verifier import Verdict, Verifier
from agl.sdk import Role, Run, workflow
from engine.mortal import Killed, Life, services

MODEL = ModelId("fake", "model")
LABEL = Label("x")


class Crowd(AgentRunner):
    """Every step writes its own file, and is counted outside of all trees."""

    def __init__(self, ran: Counter[str], chance: Random, fails: str) -> None:
        self._ran = ran
        self._chance = chance
        self._fails = fails

    def capabilities(self, model: ModelId) -> frozenset[Capability]:
        return frozenset(Capability)

    def files(self, model: ModelId) -> tuple[Path, ...]:
        return ()

    async def check_ready(self, model: ModelId) -> str:
        return "a fake"

    async def run(self, task: AgentTask, emit: Callable[[AgentEvent], None]) -> AgentOutcome:
        for _ in range(self._chance.randrange(6)):
            await asyncio.sleep(0)
        if task.step == self._fails:
            raise Overloaded("no capacity")
        self._ran[task.step] += 1
        (task.tree / f"{task.step}.txt").write_text(task.step)
        return AgentOutcome("done", str(task.model))


class Green(Verifier):
    async def verify(self, tree: Path, command: str, timeout_s: float, marker: Marker) -> Verdict:
        await asyncio.sleep(0)
        return Verdict(True, 0, "")


def writer(name: str) -> Role[None]:
    return Role(name=name, instructions="Write.").on(MODEL)


async def in_children(run: Run[None], name: str) -> None:
    """A child that lands."""
    child = run.worktree(name)
    await child.step(writer(f"c-{name}"), commit=name)
    assert (await child.integrate()).landed


async def in_one_scope(run: Run[None], name: str) -> None:
    await run.step(writer(f"o-{name}"), commit=name)


async def lands_and_steps(run: Run[None], name: str) -> None:
    """Every third steps in the run alone, the others land a child first."""
    if int(name[1:]) % 3:
        await in_children(run, name)
    await in_one_scope(run, name)


KINDS = {
    "children": in_children,
    "one scope": in_one_scope,
    "land and step": lands_and_steps,
}


class Machine:
    def __init__(self, folder: Path, kind: str, count: int, seed: int) -> None:
        self.folder = folder
        self.chance = Random(seed)
        self.names = [f"n{number}" for number in range(count)]
        self.ran: Counter[str] = Counter()
        self.order = list(self.names)
        work = KINDS[kind]
        repo = folder / "shop"
        repo.mkdir(parents=True)
        for words in (
            ("init", "-q", "-b", "main"),
            ("commit", "-q", "--allow-empty", "-m", "first"),
        ):
            subprocess.run(["git", *words], cwd=repo, check=True)

        @workflow(version="1")
        async def flow(run: Run[None]) -> None:
            async with asyncio.TaskGroup() as group:
                for name in self.order:
                    group.create_task(work(run, name))

        self.loaded = runs.Loaded("crowd", flow)

    def live(self, moments: int | None, fails: str, *, begins: bool) -> Report | None:
        self.chance.shuffle(self.order)
        life = Life(moments)
        made = services(
            self.folder / "home",
            self.folder / "shop",
            life,
            Crowd(self.ran, self.chance, fails),
            MemoryTerminal(),
            Green(),
        )
        work = (
            runs.run(made, self.loaded, LABEL, None)
            if begins
            else runs.resume(made, lambda _: self.loaded, LABEL)
        )
        try:
            return asyncio.run(work)
        except Killed:
            return None
        except BaseExceptionGroup as group:
            if group.subgroup(Killed) is None:
                raise
            return None

    def recorded(self) -> set[str]:
        run = self.folder / "home" / "projects" / "shop" / "runs" / "x"
        return {file.parent.name for file in run.glob("**/steps/*/*.json")}

    def to_the_end(self, kills: int) -> Report:
        begun = False
        steps = {f"{kind}-{name}" for name in self.names for kind in "oc"}
        for turn in range(kills + 4):
            recorded, before = self.recorded(), Counter(self.ran)
            moments = self.chance.randrange(20, 60 * len(self.names)) if turn < kills else None
            fails = self.chance.choice(sorted(steps)) if turn <= kills else ""
            try:
                report = self.live(moments, fails, begins=not begun)
            except NotFoundError:
                begun = False
                continue
            except StateError as error:
                if "exists" not in str(error):
                    raise
                report = None
            begun = True
            new = self.ran - before
            assert not recorded & set(new), "recorded, and ran again"
            assert all(times == 1 for times in new.values()), "ran twice in one process"
            if report is not None and report.outcome == "finished":
                return report
        raise AssertionError("it does not come to its end")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("count", "seed"),
    [(6, 0)]
    + [pytest.param(8, seed, marks=pytest.mark.long) for seed in range(1, 17)]
    + [pytest.param(100, 0, marks=pytest.mark.long)],
)
def test_what_was_recorded_never_runs_again_on_real_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, count: int, seed: int
) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A Person")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "person@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    machine = Machine(tmp_path, kind, count, seed)
    report = machine.to_the_end(kills=3)
    assert report.unlanded == ()
    shown = subprocess.run(
        ["git", "ls-tree", "--name-only", "agl/x"],
        cwd=tmp_path / "shop",
        capture_output=True,
        text=True,
        check=True,
    )
    assert {f"{name}.txt" for name in machine.recorded()} == set(shown.stdout.split())
    expected = {
        "children": count,
        "one scope": count,
        "land and step": count + len([n for n in range(count) if n % 3]),
    }
    assert len(machine.recorded()) == expected[kind]
