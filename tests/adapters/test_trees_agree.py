"""Trees in memory and on git: what one random hand does to both ends in the same."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from adapters.git.hands import GitTrees
from adapters.memory.memory_trees import MemoryTrees, memory_trees
from agl.ports.workspace import Workspace
from agl.testing.contracts.trees import KEEPING, SCOPE, files_below

T = TypeVar("T")

PATHS = st.sampled_from(
    ["calc.py", "docs/notes.txt", "docs/more/deep", "new", "x.ignored", "漢 字"]
)
CONTENTS = st.sampled_from([b"", b"one\n", b"two\r\n", b"\0\xff"])
NTH = st.integers(0, 20)


def own_files(tree: Path) -> dict[str, bytes]:
    """The tree's files without those of nested repositories' own."""
    return {path: data for path, data in files_below(tree).items() if ".git" not in path}


class Side:
    """One of the two repositories with the run's tree in it, and the commits it came by."""

    def __init__(self, repo: MemoryTrees | GitTrees) -> None:
        self.repo = repo
        self.commits = [repo.base]
        self.branches = [SCOPE.branch]
        self.tree: Workspace

    async def open(self) -> None:
        self.tree = await self.repo.another_provider().open(SCOPE, self.repo.base)

    def nth(self, n: int) -> str:
        return self.commits[n % len(self.commits)]

    def met(self, commit: str) -> str:
        """The commit's place in the order in which this side met them: the same on both sides."""
        if commit not in self.commits:
            self.commits.append(commit)
        return f"commit {self.commits.index(commit)}"

    async def look(self) -> object:
        state = await self.tree.state()
        return (
            self.met(state.head),
            state.attached,
            state.clean,
            await self.repo.history.files(state.head),
            own_files(self.tree.path),
            await self.repo.history.tip(SCOPE.branch) in self.commits,
        )

    async def assert_nothing_is_lost(self) -> None:
        tips = [await self.repo.history.tip(branch) for branch in self.branches]
        tips += [item.commit for item in await self.repo.kept.items()]
        found = {self.repo.base}
        for tip in tips:
            if tip is not None:
                found.update(
                    line.split()[0] for line in await self.repo.history.between(self.repo.base, tip)
                )
        lost = [self.met(commit) for commit in self.commits if commit not in found]
        assert not lost, type(self.repo).__name__


class TreesAgree(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.place = Path(tempfile.mkdtemp(prefix="agl-trees-"))
        (self.place / "git").mkdir()
        self.sides = (Side(memory_trees(self.place / "memory")), Side(GitTrees(self.place / "git")))
        self.nested = False
        self.texts = 0
        self.both(Side.open)

    def teardown(self) -> None:
        try:
            self.restore(0)
            self.both(Side.assert_nothing_is_lost)
        finally:
            self.runner.close()
            shutil.rmtree(self.place)

    def both(self, call: Callable[[Side], Coroutine[Any, Any, T]]) -> T:
        """Does it on both sides, which must answer the same."""
        memory, git = (self.runner.run(call(side)) for side in self.sides)
        assert memory == git
        return memory

    def text(self) -> str:
        self.texts += 1
        return f"text {self.texts}"

    # what an agent does to files

    @rule(path=PATHS, content=CONTENTS)
    def write(self, path: str, content: bytes) -> None:
        for file in self.files(path):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.unlink(missing_ok=True)
            file.write_bytes(content)

    @rule(path=PATHS)
    def remove(self, path: str) -> None:
        for file in self.files(path):
            file.unlink(missing_ok=True)

    @rule(path=PATHS, mode=st.sampled_from([0o644, 0o755]))
    def change_mode(self, path: str, mode: int) -> None:
        for file in self.files(path):
            if file.is_file() and not file.is_symlink():
                file.chmod(mode)

    @rule(path=PATHS, to=st.sampled_from(["calc.py", "docs", "/not/there"]))
    def link(self, path: str, to: str) -> None:
        for file in self.files(path):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.unlink(missing_ok=True)
            file.symlink_to(to)

    @precondition(lambda self: not self.nested)
    @rule(with_commit=st.booleans())
    def nest(self, with_commit: bool) -> None:
        name = self.text()
        for side in self.sides:
            side.repo.nest_in(side.tree.path, name, with_commit=with_commit)
        self.nested = True

    # what an agent does with git

    @precondition(lambda self: not self.nested)
    @rule()
    def agent_commits(self) -> None:
        message = self.text()
        for side in self.sides:
            side.met(side.repo.commit_in(side.tree.path, message))

    @precondition(lambda self: not self.nested)
    @rule()
    def agent_amends(self) -> None:
        message = self.text()
        for side in self.sides:
            (side.tree.path / "amended").write_text(message)
            side.met(side.repo.amend_in(side.tree.path, message))

    @rule(n=NTH)
    def agent_resets(self, n: int) -> None:
        for side in self.sides:
            side.repo.reset_in(side.tree.path, side.nth(n))

    @rule()
    def agent_detaches(self) -> None:
        for side in self.sides:
            side.repo.detach_in(side.tree.path)

    @rule()
    def agent_branches(self) -> None:
        branch = self.text().replace(" ", "-")
        for side in self.sides:
            side.repo.branch_in(side.tree.path, branch)
            side.branches.append(branch)

    # what AGL does

    @rule(n=NTH)
    def commit_all(self, n: int) -> None:
        message = self.text()

        async def call(side: Side) -> str:
            return side.met(await side.tree.commit_all(side.nth(n), message, KEEPING))

        self.both(call)
        self.nested = False

    @rule(n=NTH)
    def restore(self, n: int) -> None:
        async def call(side: Side) -> object:
            items = await side.tree.restore(side.nth(n), KEEPING)
            return [(item.commit is None, item.why) for item in items]

        self.both(call)
        self.nested = False

    @rule()
    def detach(self) -> None:
        self.both(lambda side: side.tree.detach())

    @rule()
    def new_process(self) -> None:
        self.both(Side.open)

    @rule(n=NTH)
    def lose_the_folder(self, n: int) -> None:
        for side in self.sides:
            shutil.rmtree(side.tree.path)
        self.both(Side.open)
        self.restore(n)

    @rule()
    def clear(self) -> None:
        async def call(side: Side) -> object:
            (cleared,) = await side.repo.provider.clear((SCOPE,))
            assert cleared.folder is not None
            files = own_files(cleared.folder)
            await side.open()
            return files

        self.both(call)
        self.nested = False

    # what must hold

    @invariant()
    def the_trees_agree(self) -> None:
        self.both(Side.look)

    def files(self, path: str) -> list[Path]:
        """The path in both trees; none where a link stands in for its folder."""
        found = [side.tree.path / path for side in self.sides]
        return [file for file in found if not file.parent.is_symlink() and not file.is_dir()]


@pytest.mark.slow
def test_trees_agree_under_any_hand() -> None:
    # Shrinking would take minutes of git; fifteen steps can be read as they are.
    run_state_machine_as_test(
        TreesAgree,
        settings=settings(
            max_examples=20, stateful_step_count=15, deadline=None, phases=[Phase.generate]
        ),
    )
