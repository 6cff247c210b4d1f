"""Merges in memory and on git: of what two random hands did, both make the same."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from adapters.git.hands import GitTrees
from adapters.memory.memory_trees import MemoryTrees, memory_trees
from agl.ports.integrator import Conflict, Merged
from agl.testing.contracts.integrator import Change, parted
from agl.testing.contracts.trees import KEEPING, files_below

PATHS = st.sampled_from(
    ["calc.py", "calc.py/deep", "docs", "docs/notes.txt", "docs/more", "new", "new/deep", "漢 字"]
)


@dataclass(frozen=True)
class Deed:
    """One change of a file. Equal contents come of equal numbers."""

    path: str
    what: str
    number: int

    def do(self, tree: Path) -> None:
        file = tree / self.path
        above = [tree / parent for parent in Path(self.path).parents][:-1]
        if file.is_dir() and not file.is_symlink():
            return
        if any(os.path.lexists(one) and (one.is_symlink() or one.is_file()) for one in above):
            return
        if self.what == "chmod":
            if file.is_file() and not file.is_symlink():
                file.chmod(0o755)
            return
        if self.what == "replace" or os.path.lexists(file):
            file.unlink(missing_ok=True)
        if self.what == "remove":
            for parent in above:
                if parent.is_dir() and not any(parent.iterdir()):
                    parent.rmdir()
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        # No two paths share a content: git would see a rename, which the one in memory does not.
        text = f"{self.number} at {self.path}\n"
        if self.what == "link":
            file.symlink_to(text.strip())
        else:
            file.write_text(("\0" if self.what == "binary" else "") + text)


WHAT = st.sampled_from(["write", "write", "remove", "remove", "link", "binary", "chmod"])
DEEDS = st.lists(st.builds(Deed, PATHS, WHAT, st.integers(0, 2)), max_size=4)


async def _merged(repo: MemoryTrees | GitTrees, *deeds: Sequence[Deed]) -> object:
    def all_of(some: Sequence[Deed]) -> Change:
        def change(tree: Path) -> None:
            for deed in some:
                deed.do(tree)

        return change

    before, here, there = deeds
    for deed in before:
        deed.do(repo.checkout)
    repo.base = repo.commit_in(repo.checkout, "before")
    two = await parted(repo, all_of(here), all_of(there))
    outcome = await two.merge()
    state = await two.tree.state()
    look = (_told(files_below(two.tree.path), two.other), state.attached, state.clean)
    if isinstance(outcome, Merged):
        return "merged", look, await repo.history.files(outcome.head)
    if not isinstance(outcome, Conflict):
        return outcome, look
    kinds = {_named(one.path, two.other): (one.kind, one.left is None) for one in outcome.paths}
    for one in outcome.paths:
        (two.tree.path / one.path).unlink(missing_ok=True)
    concluded = await two.conclude(outcome)
    assert isinstance(concluded, Merged)
    left = _told(await repo.history.files(concluded.head), two.other)
    await two.tree.restore(two.start, KEEPING)
    return kinds, look, left, _told(files_below(two.tree.path), two.other)


def _named(path: str, other: str) -> str:
    return path.replace(other, "OTHER")


def _told(files: dict[str, bytes], other: str) -> dict[str, bytes]:
    """The files with the one name that differs from repository to repository as a word."""
    found = {
        _named(path, other): data.replace(other.encode(), b"OTHER") for path, data in files.items()
    }
    return {
        path: re.sub(rb"^>{7} .*$", b">>>>>>>", data, flags=re.M) for path, data in found.items()
    }


@pytest.mark.slow
@settings(max_examples=150, deadline=None, phases=[Phase.generate, Phase.shrink])
@given(before=DEEDS, here=DEEDS, there=DEEDS)
def test_merges_agree_under_any_two_hands(
    before: list[Deed], here: list[Deed], there: list[Deed]
) -> None:
    with tempfile.TemporaryDirectory(prefix="agl-merges-") as folder:
        place = Path(folder)
        (place / "git").mkdir()
        memory = asyncio.run(_merged(memory_trees(place / "memory"), before, here, there))
        assert memory == asyncio.run(_merged(GitTrees(place / "git"), before, here, there))
