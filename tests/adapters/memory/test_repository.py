from pathlib import Path

import pytest

from adapters.memory.memory_trees import MemoryTrees, memory_trees
from agl.adapters.memory.clock import ManualClock
from agl.adapters.memory.repository import MemoryRepository
from agl.adapters.memory.trees_history import MemoryHistory
from agl.adapters.memory.trees_kept import MemoryKept
from agl.adapters.memory.trees_workspaces import MemoryWorkspaces
from agl.ports.errors import InputError
from agl.ports.workspace import Keeping
from agl.testing.contracts.guards import GuardsContract
from agl.testing.contracts.history import HistoryContract
from agl.testing.contracts.integrator import IntegratorContract
from agl.testing.contracts.kept import KeptContract
from agl.testing.contracts.trees import BASE_FILES, CHILD, SCOPE
from agl.testing.contracts.workspace import WorkspaceContract, WorkspaceProviderContract


class _InMemory:
    @pytest.fixture
    def repo(self, tmp_path: Path) -> MemoryTrees:
        return memory_trees(tmp_path)


class TestMemoryWorkspace(_InMemory, WorkspaceContract):
    pass


class TestMemoryWorkspaces(_InMemory, WorkspaceProviderContract):
    pass


class TestMemoryHistory(_InMemory, HistoryContract):
    pass


class TestMemoryKept(_InMemory, KeptContract):
    pass


class TestMemoryGuards(_InMemory, GuardsContract):
    pass


class TestMemoryIntegrator(_InMemory, IntegratorContract):
    pass


@pytest.fixture
def repository(tmp_path: Path) -> MemoryRepository:
    return MemoryRepository.with_files(tmp_path, ManualClock(), BASE_FILES)


async def test_before_the_first_commit_nothing_is_ready(tmp_path: Path) -> None:
    history = MemoryHistory(MemoryRepository(tmp_path, ManualClock()))
    with pytest.raises(InputError, match="make a first commit"):
        await history.check_ready()


async def test_compiled_files_are_ignored_at_any_depth(repository: MemoryRepository) -> None:
    tree = await MemoryWorkspaces(repository, SCOPE.project).open(
        SCOPE, repository.branches["main"]
    )
    (tree.path / "docs" / "__pycache__").mkdir()
    (tree.path / "docs" / "__pycache__" / "notes").write_bytes(b"compiled")
    (tree.path / "docs" / "notes.pyc").write_bytes(b"compiled")
    assert (await tree.state()).clean


async def test_outside_of_any_tree_nothing_is_uncommitted(repository: MemoryRepository) -> None:
    assert await MemoryHistory(repository).uncommitted(repository.folder) == ()


async def test_each_scope_keeps_its_own_of_equal_leftovers(repository: MemoryRepository) -> None:
    provider, base = MemoryWorkspaces(repository, SCOPE.project), repository.branches["main"]
    for scope in (SCOPE, CHILD):
        tree = await provider.open(scope, base)
        (tree.path / "left.txt").write_bytes(b"same")
        await tree.restore(base, Keeping(scope, "stopped"))
    kept = await MemoryKept(repository).items()
    assert [item.namespace for item in kept] == [SCOPE.tree, CHILD.tree]


async def test_a_repository_outlives_its_adapters(repository: MemoryRepository) -> None:
    base = repository.branches["main"]
    tree = await MemoryWorkspaces(repository, SCOPE.project).open(SCOPE, base)
    (tree.path / "half.txt").write_bytes(b"half")
    tree = await MemoryWorkspaces(repository, SCOPE.project).open(SCOPE, base)
    assert not (await tree.state()).clean
    await tree.restore(base, Keeping(SCOPE, "killed"))
    (item,) = await MemoryKept(repository).items()
    assert item.commit is not None
    assert (await MemoryHistory(repository).files(item.commit))["half.txt"] == b"half"


async def test_only_moves_since_the_last_step_are_remembered(repository: MemoryRepository) -> None:
    base = repository.branches["main"]
    tree = await MemoryWorkspaces(repository, SCOPE.project).open(SCOPE, base)
    for n in range(3):
        (tree.path / "n.txt").write_text(str(n))
        await tree.commit_all(base, "step", Keeping(SCOPE, "step"))
    assert len(repository.passed(tree.path)) == 1


def test_a_reset_leaves_untracked_files(repository: MemoryRepository) -> None:
    (repository.checkout / "new.txt").write_bytes(b"new")
    (repository.checkout / "calc.py").write_bytes(b"half")
    repository.reset_in(repository.checkout, repository.branches["main"])
    assert (repository.checkout / "new.txt").read_bytes() == b"new"
    assert (repository.checkout / "calc.py").read_bytes() == BASE_FILES["calc.py"]
