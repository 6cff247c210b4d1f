"""How many git processes each call starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.git.hands import CountedProcesses, GitTrees
from agl.testing.contracts.trees import CHILD, KEEPING, SCOPE


@pytest.fixture
def processes() -> CountedProcesses:
    return CountedProcesses()


@pytest.fixture
def repo(tmp_path: Path, processes: CountedProcesses) -> GitTrees:
    return GitTrees(tmp_path, processes)


def _taken(processes: CountedProcesses) -> int:
    count = len(processes.started)
    processes.started.clear()
    return count


async def test_a_step_costs_few_processes(repo: GitTrees, processes: CountedProcesses) -> None:
    tree = await repo.provider.open(SCOPE, repo.base)
    assert _taken(processes) == 2, "making a tree"
    await repo.provider.open(SCOPE, repo.base)
    assert _taken(processes) == 0, "finding it again"
    await tree.state()
    assert _taken(processes) == 1, "a look"
    assert await tree.commit_all(repo.base, "nothing", KEEPING) == repo.base
    assert _taken(processes) == 1, "an ending without a change"
    (tree.path / "new.txt").write_bytes(b"new")
    head = await tree.commit_all(repo.base, "new", KEEPING)
    assert _taken(processes) == 3, "an ending with a commit"
    await tree.restore(head, KEEPING)
    assert _taken(processes) == 1, "nothing in the way"


async def test_commits_of_the_agent_cost_little_more(
    repo: GitTrees, processes: CountedProcesses
) -> None:
    tree = await repo.provider.open(SCOPE, repo.base)
    (tree.path / "new.txt").write_bytes(b"new")
    head = repo.commit_in(tree.path, "new")
    _taken(processes)
    assert await tree.commit_all(repo.base, "rest", KEEPING) == head
    assert _taken(processes) == 2
    (tree.path / "calc.py").write_bytes(b"fixed")
    await tree.commit_all(head, "next", KEEPING)
    assert _taken(processes) == 3


async def test_bringing_a_tree_back_costs_few_processes(
    repo: GitTrees, processes: CountedProcesses
) -> None:
    tree = await repo.provider.open(SCOPE, repo.base)
    (tree.path / "calc.py").write_bytes(b"fixed")
    head = await tree.commit_all(repo.base, "fix", KEEPING)
    repo.reset_in(tree.path, repo.base)
    _taken(processes)
    await tree.restore(head, KEEPING)
    assert _taken(processes) == 5, "forward"
    (tree.path / "calc.py").write_bytes(b"half")
    await tree.restore(head, KEEPING)
    assert _taken(processes) == 11, "with something to keep"
    (tree.path / "new.txt").write_bytes(b"new")
    await tree.restore(head, KEEPING)
    assert _taken(processes) == 16, "with something new to keep"


async def test_a_reading_of_the_guards_costs_no_process(
    repo: GitTrees, processes: CountedProcesses
) -> None:
    await repo.guards.read((SCOPE.branch,))
    _taken(processes)
    await repo.guards.read((SCOPE.branch, CHILD.branch))
    assert _taken(processes) == 0


async def test_clear_costs_few_processes(repo: GitTrees, processes: CountedProcesses) -> None:
    await repo.provider.open(SCOPE, repo.base)
    _taken(processes)
    await repo.provider.clear((SCOPE,))
    assert _taken(processes) == 6
