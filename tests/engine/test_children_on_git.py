"""Children that commit, land, conflict, are refused, resolved, repaired and given up on real git,
by a process that dies at any git process and any write of the ledger, again and again."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agl.adapters.memory.terminal import MemoryTerminal
from agl.api import runs
from agl.api.endings import Report
from agl.ports.agents import AgentEvent, AgentOutcome, AgentRunner, AgentTask
from agl.ports.errors import NotFoundError, StateError
from agl.ports.ids import Label
from agl.ports.models import Capability, ModelId
from agl.ports.processes import Marker
from agl.ports.terminal import Screen
from agl.ports.verifier import Verdict, Verifier
from agl.sdk import Child, Choice, Role, Run, workflow
from engine.mortal import Killed, Life, services

MODEL = ModelId("fake", "model")
LABEL = Label("x")


@dataclass(frozen=True)
class Part:
    """A child. `shared`: it writes the file that others write, too; `red`: the build fails on what
    it wrote; `settle`: what becomes of a landing that waits; `inner`: it has a child of its own."""

    shared: bool
    red: bool
    settle: str
    inner: bool
    steps: int


PARTS = st.lists(
    st.builds(
        Part,
        shared=st.booleans(),
        red=st.sampled_from([False, False, True]),
        settle=st.sampled_from(["person", "repair", "abort"]),
        inner=st.sampled_from([False, False, True]),
        steps=st.integers(1, 2),
    ),
    min_size=1,
    max_size=4,
)


@dataclass
class World:
    """Real git and a real ledger below `folder`, and all that was ever written into a tree."""

    folder: Path
    seed: int
    written: list[str] = field(default_factory=list)
    ran: Counter[str] = field(default_factory=Counter)
    numbers: Callable[[], int] = field(default_factory=lambda: count().__next__)

    def __post_init__(self) -> None:
        self.repo.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        (self.repo / "same.txt").write_text("base\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "first")

    @property
    def repo(self) -> Path:
        return self.folder / "shop"

    def git(self, *args: str, stdin: str | None = None) -> str:
        done = subprocess.run(
            ["git", *args], cwd=self.repo, capture_output=True, text=True, check=True, input=stdin
        )
        return done.stdout.strip()

    def put(self, file: Path, word: str) -> None:
        """Writes a line that nobody wrote before."""
        line = f"{word} {self.numbers()}\n"
        file.write_text(line)
        self.written.append(line)

    def files(self) -> list[str]:
        return self.git("ls-tree", "--name-only", "agl/x").splitlines()

    def lost(self) -> list[str]:
        """The lines written into a tree that no ref reaches, and no file on disk holds."""
        listed = self.git("rev-list", "--objects", "--all", "--no-object-names").split()
        reachable = set(listed)
        on_disk = {
            file.read_text() for file in (self.folder / "trees").rglob("*.txt") if file.is_file()
        }
        return [
            line
            for line in self.written
            if self.git("hash-object", "--stdin", stdin=line) not in reachable
            and line not in on_disk
        ]


class Agent(AgentRunner):
    """Writes what the step's name says, after some turns of the loop."""

    def __init__(self, world: World, life: Life) -> None:
        self._world = world
        self._life = life
        self._chance = Random(world.seed + life.passed)

    def capabilities(self, model: ModelId) -> frozenset[Capability]:
        return frozenset(Capability)

    def files(self, model: ModelId) -> tuple[Path, ...]:
        return ()

    async def check_ready(self, model: ModelId) -> str:
        return "a fake"

    async def run(self, task: AgentTask, emit: Callable[[AgentEvent], None]) -> AgentOutcome:
        name = f"{'/'.join(task.scope.path)}:{task.step}#{task.nth}"
        self._world.ran[name] += 1
        for _ in range(self._chance.randrange(4)):
            await asyncio.sleep(0)
        kind, _, rest = task.step.partition("-")
        own = "-".join(task.scope.path) or "run"
        put = self._world.put
        if kind == "repair":
            put(task.tree / "same.txt", "both")
            for red in task.tree.glob("red-*.txt"):
                red.unlink()
        elif kind == "write":
            put(task.tree / f"{own}-{task.nth}{rest[:0]}.txt", own)
            if "shared" in rest:
                put(task.tree / "same.txt", own)
            if "red" in rest:
                put(task.tree / f"red-{own}.txt", own)
        self._life.burn()
        return AgentOutcome("done", str(task.model))


class Gate(Verifier):
    """Fails where a red file lies."""

    def __init__(self, life: Life) -> None:
        self._life = life

    async def verify(self, tree: Path, command: str, timeout_s: float, marker: Marker) -> Verdict:
        self._life.burn()
        red = list(tree.glob("red-*.txt"))
        await asyncio.sleep(0)
        self._life.burn()
        return Verdict(not red, len(red), "")


def writer(name: str) -> Role[None]:
    return Role(name=name, instructions="Write.").on(MODEL)


async def settle(run: Run[None], child: Child[None], how: str) -> None:
    landing = await child.integrate()
    rounds = 0
    while landing.conflicted:
        rounds += 1
        if how == "abort" or rounds > 3:
            await landing.abort()
        elif how == "repair":
            await child.step(writer("repair"), commit="repair", merging=run, rounds=rounds)
            await landing.retry()
        else:
            name = "/".join(child._place.scope.path)
            await child.ask(Screen(f"Settle {name}", responses=[Choice("retry", value=True)]))
            await landing.retry()


async def one(run: Run[None], name: str, part: Part) -> None:
    child = run.worktree(name)
    for number in range(part.steps):
        words = ["write"]
        if part.shared and number == 0:
            words.append("shared")
        if part.red and number == 0:
            words.append("red")
        await child.step(writer("-".join(words)), commit=f"write {name}", number=number)
    if part.inner:
        inner = child.worktree("inner")
        await inner.step(writer("write"), commit="write inner")
        await settle(child, inner, "abort")
    await settle(run, child, part.settle)


class Program:
    """The workflow that a list of parts makes, and its processes."""

    def __init__(self, world: World, parts: list[Part]) -> None:
        self.world = world
        self.names = [f"c{number}" for number in range(len(parts))]

        @workflow(version="1")
        async def flow(run: Run[None]) -> None:
            async with asyncio.TaskGroup() as group:
                for name, part in zip(self.names, parts, strict=True):
                    group.create_task(one(run, name, part))
            await run.step(writer("write-last"), commit="write last")

        self.loaded = runs.Loaded("children", flow)

    def live(self, life: Life, *, begins: bool) -> Report | None:
        """One process; None when it died."""
        world = self.world
        person = MemoryTerminal(self._types)
        made = services(
            world.folder / "home", world.repo, life, Agent(world, life), person, Gate(life)
        )
        work = (
            runs.run(made, self.loaded, LABEL, None)
            if begins
            else runs.resume(made, lambda _: self.loaded, LABEL)
        )
        try:
            return asyncio.run(asyncio.wait_for(work, 60))
        except Killed:
            return None
        except BaseExceptionGroup as group:
            if group.subgroup(Killed) is None:
                raise
            return None

    def _types(self, screen: Screen[object]) -> str:
        """A person resolves what waits in the tree."""
        world = self.world
        tree = world.folder / "trees" / "shop" / "x" / "_base"
        file = tree / "same.txt"
        before = file.read_text() if file.exists() else ""
        if before.startswith("typed") and before in world.written:
            # The answer was lost with the process; what is typed over is the person's own.
            world.written.remove(before)
        world.put(file, "typed")
        for red in tree.glob("red-*.txt"):
            red.unlink()
        return "retry"

    def to_the_end(self, kills: list[int]) -> Report:
        begun = False
        for moments in (*kills, None, None, None):
            before = Counter(self.world.ran)
            recorded = self._recorded()
            try:
                report = self.live(Life(moments), begins=not begun)
            except NotFoundError:
                begun = False
                continue
            except StateError as error:
                if "exists" not in str(error):
                    raise
                begun = True
                continue
            begun = True
            again = recorded & {name for name, n in self.world.ran.items() if n > before[name]}
            assert not again, f"recorded before, and ran again: {again}"
            if report is not None:
                return report
        raise AssertionError("it does not come to its end")

    def _recorded(self) -> set[str]:
        run = self.world.folder / "home" / "projects" / "shop" / "runs" / "x"
        found = set()
        counts: Counter[str] = Counter()
        for file in sorted(run.glob("**/steps/*/*.json"), key=lambda one: one.name):
            inner = file.relative_to(run).parts
            path = "/".join(inner[1 : inner.index("steps") : 2])
            step = file.parent.name
            counts[f"{path}:{step}"] += 1
            found.add(f"{path}:{step}#{counts[f'{path}:{step}']}")
        return found


def check(world: World, parts: list[Part], report: Report) -> None:
    assert report.outcome == "finished", report.message
    files = world.files()
    merges = Counter(world.git("log", "--merges", "--format=%s", "agl/x").splitlines())
    for number, part in enumerate(parts):
        name = f"c{number}"
        landed = name not in report.unlanded
        assert (f"{name}-1.txt" in files) is landed, (name, files)
        assert merges[f"Land {name} on agl/x"] == landed
        assert landed or part.settle == "abort", part
        if landed and part.inner:
            assert f"{name}-inner-1.txt" in files or f"{name}/inner" in report.unlanded
    assert not [file for file in files if file.startswith("red-")]
    assert "run-1.txt" in files
    assert world.git("rev-parse", "agl/x") == report.head
    assert world.lost() == []
    assert world.git("status", "--porcelain") == ""


@pytest.mark.slow
@pytest.mark.parametrize("examples", [6, pytest.param(150, marks=pytest.mark.long)])
def test_children_killed_at_any_moment_land_once_and_lose_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, examples: int
) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A Person")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "person@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    folders = count()

    @settings(
        max_examples=examples,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(PARTS, st.lists(st.integers(0, 120), max_size=5), st.integers(0, 1000))
    def killed(parts: list[Part], kills: list[int], seed: int) -> None:
        world = World(tmp_path / str(next(folders)), seed)
        check(world, parts, Program(world, parts).to_the_end(kills))

    killed()
