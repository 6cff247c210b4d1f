"""Whatever happens in a tree, and wherever AGL dies, every byte and every commit can be found."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from adapters.git.hands import IDENTITY, GitTrees, Killed, MortalProcesses
from agl.ports.integrator import Conflict, Merged, NothingToMerge
from agl.ports.workspace import Workspace
from agl.testing.contracts.trees import CHILD, KEEPING, SCOPE

NAMES = ["calc.py", "docs/notes.txt", "new.txt", "docs", "out.log", "new", "new/deep/er.txt"]
ODD = ["a b", 'quo"te', "new\nline", os.fsdecode(b"caf\xe9"), "-dash", "é", ":(top)x"]
T = TypeVar("T")
names = st.sampled_from([*NAMES, *ODD])
NO_CONFLICT = Conflict(())
kills = st.one_of(st.none(), st.integers(0, 14))


@dataclass(frozen=True)
class Landing:
    """The last one: from where, of what, and what came of it."""

    start: str
    other: str
    conflict: Conflict = NO_CONFLICT
    merged: str | None = None


class NothingLost(RuleBasedStateMachine):
    """One tree, an agent in it, and AGL's endings. `written` is what stood in the tree at an
    ending, unless all stood there as a conflict `left` it; `made` every commit that its HEAD was
    at."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="nothing-lost-")).resolve()
        self.processes = MortalProcesses()
        self.repo = GitTrees(self.place, self.processes)
        self.number = 0
        self.written: set[bytes] = set()
        self.left: dict[Path, bytes] = {}
        self.made: set[str] = set()
        self.heads = [self.repo.base]
        self.tree = self._open()
        self.child = asyncio.run(self.repo.another_provider().open(CHILD, self.repo.base))
        self.landing = Landing(self.repo.base, self.repo.base)

    def teardown(self) -> None:
        shutil.rmtree(self.place)

    # what an agent does

    @rule(name=names, ending=st.sampled_from([b"\n", b"\r\n", b"\0"]))
    def writes(self, name: str, ending: bytes) -> None:
        file = self.tree.path / name
        if self._is_free(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(self._content() + ending)

    @rule(name=names)
    def removes(self, name: str) -> None:
        file = self.tree.path / name
        if file.is_file() or file.is_symlink():
            file.unlink()
        elif file.is_dir():
            shutil.rmtree(file)

    @rule(name=names)
    def links(self, name: str) -> None:
        file = self.tree.path / name
        if self._is_free(file) and not os.path.lexists(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.symlink_to(f"to-{self._content().decode()}")

    @rule(mode=st.sampled_from([0o644, 0o755]))
    def changes_a_mode(self, mode: int) -> None:
        file = self.tree.path / "calc.py"
        if file.is_file() and not file.is_symlink():
            file.chmod(mode)

    @rule(patterns=st.sampled_from(["*.log\n", "new*\n", "docs\n", ""]))
    def ignores(self, patterns: str) -> None:
        (self.tree.path / ".gitignore").write_text(patterns)

    @rule(name=st.sampled_from(["inner", "docs/inner", "new/inner"]), with_commit=st.booleans())
    def nests(self, name: str, with_commit: bool) -> None:
        inner = self.tree.path / name
        if not self._is_free(inner) or os.path.lexists(inner):
            return
        inner.mkdir(parents=True)
        (inner / "inside.txt").write_bytes(self._content())
        self.repo.git("init", "--quiet", cwd=inner)
        if with_commit:
            for key, value in IDENTITY.items():
                self.repo.git("config", f"user.{key}", value, cwd=inner)
            self.repo.commit_in(inner, "inner")

    @rule(flag=st.sampled_from(["--assume-unchanged", "--skip-worktree"]))
    def hides(self, flag: str) -> None:
        self._git("update-index", flag, "calc.py")

    @rule()
    def stages(self) -> None:
        self._git("add", "--all")

    @rule(how=st.sampled_from([[], ["--amend"]]))
    def commits(self, how: list[str]) -> None:
        self._git("add", "--all")
        self._git("commit", "--quiet", "--allow-empty", *how, "-m", self._content().decode())

    @rule(how=st.sampled_from(["--hard", "--mixed"]), at=st.integers(0, 3))
    def resets(self, how: str, at: int) -> None:
        if how == "--hard":
            self._git("stash", "--include-untracked", "--quiet")
        self._git("reset", "--quiet", how, f"HEAD~{at}")

    @rule(
        how=st.sampled_from(
            [["--detach"], ["-b", "side"], ["side"], [SCOPE.branch], ["--orphan", "void"]]
        )
    )
    def moves_head(self, how: list[str]) -> None:
        self._git("checkout", "--quiet", "--no-overwrite-ignore", *how)

    @rule()
    def stashes(self) -> None:
        self._git("stash", "--include-untracked", "--quiet")

    @rule()
    def merges(self) -> None:
        self._git("merge", "--quiet", "side")

    @rule()
    def rebases(self) -> None:
        self._git("rebase", "--quiet", "--autostash", "side")

    # how AGL ends it

    @rule(at=kills)
    def ends_with_a_commit(self, at: int | None) -> None:
        self._see()
        head = self._run(self.tree.commit_all(self.heads[-1], "step", KEEPING), at)
        if head is None:
            self._bring_back(self.heads[-1])
        else:
            self.heads.append(head)
            self._assert_rests_at(head)

    @rule(at=kills, back=st.integers(0, 5))
    def is_brought_back(self, at: int | None, back: int) -> None:
        self._see()
        to = self.heads[-1 - back % len(self.heads)]
        if self._run(self._restored(to), at) is None:
            self._bring_back(to)
        self._assert_rests_at(to)

    @rule(at=kills)
    def is_cleared(self, at: int | None) -> None:
        self._see()
        if self._run(self.repo.another_provider().clear((SCOPE,)), at) is None:
            self._run(self.repo.another_provider().clear((SCOPE,)), None)
        self._assert_all_can_be_found(ended=True)
        self.heads = [self.repo.base]
        self.tree = self._open()

    @rule(at=kills, here=st.sets(names, max_size=2), there=st.sets(names, max_size=3))
    def a_child_lands(self, at: int | None, here: set[str], there: set[str]) -> None:
        start = self.heads[-1]
        if here:
            self._run(self._restored(start), None)
            start = self._commits(self.tree, here)
            self.heads.append(start)
        other = self._commits(self.child, there)
        self._see()
        self.landing = Landing(start, other)

        def merge() -> Coroutine[Any, Any, Merged | Conflict | NothingToMerge]:
            return self.repo.another_integrator().merge(self.tree, start, other, "land", KEEPING)

        self._land(merge, at)

    @rule(at=kills, typed=st.booleans())
    def a_landing_is_concluded(self, at: int | None, typed: bool) -> None:
        if self.landing.start != self.heads[-1]:
            return
        for one in self.landing.conflict.paths:
            file = self.tree.path / one.path
            if typed and file.is_file() and self._is_free(file):
                file.write_bytes(self._content())
        self._see()

        def conclude() -> Coroutine[Any, Any, Merged | Conflict | NothingToMerge]:
            start, other, conflict = (
                self.landing.start,
                self.landing.other,
                self.landing.conflict,
            )
            return self.repo.another_integrator().conclude(
                self.tree, start, other, "land", conflict, KEEPING
            )

        self._land(conclude, at)

    @rule(at=kills)
    def a_landing_is_held(self, at: int | None) -> None:
        merged = self.landing.merged
        if merged is None or merged != self.heads[-1]:
            return
        self._see()

        async def hold() -> bool:
            start, other = self.landing.start, self.landing.other
            await self.repo.another_integrator().hold(self.tree, start, other, merged)
            return True

        if self._run(hold(), at) is None:
            self.tree = self._open()
            self._run(hold(), None)
        self.heads.remove(merged)

    def _commits(self, tree: Workspace, names: Iterable[str]) -> str:
        """What a step that only writes ends with."""
        for name in sorted(names):
            file = tree.path / name
            if self._is_free(file, tree):
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(self._content())
        return asyncio.run(tree.commit_all(self.repo.base, "step", KEEPING))

    def _land(
        self,
        call: Callable[[], Coroutine[Any, Any, Merged | Conflict | NothingToMerge]],
        at: int | None,
    ) -> None:
        outcome = self._run(call(), at)
        if outcome is None:
            self.tree = self._open()
            outcome = self._run(call(), None)
        start, other = self.landing.start, self.landing.other
        match outcome:
            case Merged():
                self.landing = Landing(start, other, merged=outcome.head)
                self.heads.append(outcome.head)
                parents = self.repo.git("rev-list", "--parents", "-1", outcome.head).split()[1:]
                assert parents == [start, other]
                self._assert_rests_at(outcome.head)
            case Conflict():
                self.landing = Landing(start, other, outcome)
                state = asyncio.run(self.tree.state())
                assert (state.head, state.attached, state.clean) == (start, True, False)
                self.left = _files(self.tree.path)
                self._assert_all_can_be_found(ended=True)
            case _:
                assert outcome == NothingToMerge()
                self._assert_rests_at(start)

    # what must be so

    def _assert_rests_at(self, head: str) -> None:
        state = asyncio.run(self.tree.state())
        assert (state.head, state.attached, state.clean) == (head, True, True)
        self._assert_all_can_be_found(ended=True)

    def _assert_all_can_be_found(self, *, ended: bool) -> None:
        tips = self._tips(ended=ended)
        lost = self.written - self._contents_of(tips) - set(_contents(self.repo.trees_root))
        assert not lost
        assert not self.made - set(self.repo.git("rev-list", *tips).split())

    # the machinery

    def _open(self) -> Workspace:
        return asyncio.run(self.repo.another_provider().open(SCOPE, self.repo.base))

    def _content(self) -> bytes:
        self.number += 1
        return b"content %d" % self.number

    def _is_free(self, file: Path, tree: Workspace | None = None) -> bool:
        """Whether nothing but folders of the tree stands above the file, and no folder there."""
        top = (tree or self.tree).path
        above = [one for one in file.parents if one.is_relative_to(top)]
        return all(
            not os.path.lexists(one) or (one.is_dir() and not one.is_symlink()) for one in above
        ) and not (file.is_dir() or file.is_symlink())

    def _git(self, *args: str) -> None:
        """What an agent types may fail; what it destroys by it is its own doing."""
        with suppress(AssertionError):
            self.repo.git(*args, cwd=self.tree.path)
        with suppress(AssertionError):
            self.made.add(self.repo.git("rev-parse", "-q", "--verify", "HEAD", cwd=self.tree.path))

    def _see(self) -> None:
        """Takes down what stands in the tree now."""
        if _files(self.tree.path) != self.left:
            self.written |= set(_contents(self.tree.path))

    def _run(self, call: Coroutine[Any, Any, T], at: int | None) -> T | None:
        """What the call returns, or None when it was killed and a new process took over."""
        self.processes.left = at
        try:
            return asyncio.run(call)
        except Killed:
            self.processes.left = None
            self._assert_all_can_be_found(ended=False)
            return None
        finally:
            self.processes.left = None

    def _bring_back(self, to: str) -> None:
        """What a new process does first."""
        self.tree = self._open()
        self._run(self._restored(to), None)
        self._assert_rests_at(to)

    async def _restored(self, to: str) -> bool:
        await self.tree.restore(to, KEEPING)
        return True

    def _tips(self, *, ended: bool) -> list[str]:
        """All refs and the stash's entries; before AGL has ended what the agent began, also what
        the tree's HEAD was at."""
        common = self.repo.repository.common_dir
        logs = [common / "logs" / "refs" / "stash"]
        if not ended:
            logs += common.glob("worktrees/*/logs/HEAD")
            logs += self.repo.trees_root.glob("*/_kept/*/*@git/logs/HEAD")
        lines = [line for log in logs if log.exists() for line in log.read_text().splitlines()]
        return ["--all", *{line.split(" ")[1] for line in lines}]

    def _contents_of(self, tips: list[str]) -> set[bytes]:
        """All contents in the commits that the tips reach."""
        rows = self.repo.git("rev-list", "--objects", *tips).splitlines()
        listing = subprocess.run(
            ["git", "cat-file", "--batch"],
            cwd=self.repo.checkout,
            env=self.repo.environ,
            input="".join(f"{row.split(' ')[0]}\n" for row in rows).encode(),
            capture_output=True,
            check=True,
        ).stdout
        found: set[bytes] = set()
        at = 0
        while at < len(listing):
            start = listing.index(b"\n", at) + 1
            _, kind, size = listing[at : start - 1].split()
            at = start + int(size) + 1
            if kind == b"blob":
                found.add(listing[start : at - 1])
        return found


def _files(folder: Path) -> dict[Path, bytes]:
    """Each file's content and each link's target below the folder, by path."""
    return {
        path: os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def _contents(folder: Path) -> Iterator[bytes]:
    """Each file's content and each link's target below the folder; of nested repositories also
    their objects."""
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        if ".git" in parts and "objects" not in parts:
            continue
        if path.is_symlink():
            yield os.fsencode(path.readlink())
        elif path.is_file():
            yield path.read_bytes()


@pytest.mark.slow
def test_nothing_is_lost() -> None:
    run_state_machine_as_test(
        NothingLost,
        settings=settings(
            max_examples=20,
            stateful_step_count=30,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
