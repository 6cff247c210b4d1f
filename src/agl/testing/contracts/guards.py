"""What every `Guards` promises."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from pathlib import Path

import pytest

from agl.ports.guards import Reading
from agl.testing.contracts.trees import CHILD, KEEPING, SCOPE, TreesUnderTest

BRANCHES = (SCOPE.branch, CHILD.branch)


def _moved(before: Reading, after: Reading) -> set[str]:
    return {
        part.name
        for part in fields(Reading)
        if getattr(before, part.name) != getattr(after, part.name)
    }


class GuardsContract:
    """Subclass it and give the fixture `repo`."""

    @pytest.fixture
    def repo(self, tmp_path: Path) -> TreesUnderTest:
        raise NotImplementedError

    async def test_two_readings_of_one_state_are_equal(self, repo: TreesUnderTest) -> None:
        await repo.provider.open(SCOPE, repo.base)
        assert await repo.guards.read(BRANCHES) == await repo.guards.read(BRANCHES)

    async def test_branches_are_read_with_their_commits(self, repo: TreesUnderTest) -> None:
        await repo.provider.open(SCOPE, repo.base)
        reading = await repo.guards.read(BRANCHES)
        assert reading.branches == {SCOPE.branch: repo.base, CHILD.branch: None}

    async def test_a_sound_repository_reads_as_sound(self, repo: TreesUnderTest) -> None:
        assert (await repo.guards.read(())).broken_config is None

    async def test_a_step_in_a_tree_moves_its_branch_alone(self, repo: TreesUnderTest) -> None:
        tree = await repo.provider.open(SCOPE, repo.base)
        child = await repo.provider.open(CHILD, repo.base)
        before = await repo.guards.read(BRANCHES)
        (tree.path / "calc.py").write_bytes(b"half")
        assert await repo.guards.read(BRANCHES) == before
        head = await tree.commit_all(repo.base, "step", KEEPING)
        (child.path / "calc.py").write_bytes(b"half")
        await child.restore(repo.base, KEEPING)
        after = await repo.guards.read(BRANCHES)
        assert _moved(before, after) == {"branches"}
        assert after.branches == {SCOPE.branch: head, CHILD.branch: repo.base}

    async def test_a_commit_in_the_checkout_moves_it(self, repo: TreesUnderTest) -> None:
        before = await repo.guards.read(BRANCHES)
        (repo.checkout / "calc.py").write_bytes(b"typing")
        assert await repo.guards.read(BRANCHES) == before
        repo.commit_in(repo.checkout, "typed")
        assert _moved(before, await repo.guards.read(BRANCHES)) == {"checkout"}

    async def test_another_branch_in_the_checkout_moves_it(self, repo: TreesUnderTest) -> None:
        before = await repo.guards.read(BRANCHES)
        repo.branch_in(repo.checkout, "feature")
        assert _moved(before, await repo.guards.read(BRANCHES)) == {"checkout"}

    async def test_detaching_the_checkout_moves_it(self, repo: TreesUnderTest) -> None:
        before = await repo.guards.read(BRANCHES)
        repo.detach_in(repo.checkout)
        assert _moved(before, await repo.guards.read(BRANCHES)) == {"checkout"}

    async def test_each_stash_is_seen(self, repo: TreesUnderTest) -> None:
        tree = await repo.provider.open(SCOPE, repo.base)
        readings = [await repo.guards.read(BRANCHES)]
        for content in (b"one", b"two"):
            (tree.path / "calc.py").write_bytes(content)
            repo.stash_in(tree.path)
            readings.append(await repo.guards.read(BRANCHES))
        assert [_moved(*pair) for pair in pairwise(readings)] == [
            {"stash"},
            {"stash"},
        ]

    async def test_a_broken_config_is_seen_and_named(self, repo: TreesUnderTest) -> None:
        before = await repo.guards.read(BRANCHES)
        repo.break_config()
        after = await repo.guards.read(BRANCHES)
        assert after.broken_config
        assert _moved(before, after) == {"config", "broken_config"}
