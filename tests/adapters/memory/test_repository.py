from pathlib import Path

import pytest

from adapters.memory.memory_trees import MemoryTrees, memory_trees
from agl.testing.contracts.guards import GuardsContract
from agl.testing.contracts.history import HistoryContract
from agl.testing.contracts.kept import KeptContract
from agl.testing.contracts.workspace import WorkspaceContract, WorkspaceProviderContract


class TestMemoryWorkspace(WorkspaceContract):
    @pytest.fixture
    def repo(self, tmp_path: Path) -> MemoryTrees:
        return memory_trees(tmp_path)


class TestMemoryWorkspaces(WorkspaceProviderContract):
    @pytest.fixture
    def repo(self, tmp_path: Path) -> MemoryTrees:
        return memory_trees(tmp_path)


class TestMemoryHistory(HistoryContract):
    @pytest.fixture
    def repo(self, tmp_path: Path) -> MemoryTrees:
        return memory_trees(tmp_path)


class TestMemoryKept(KeptContract):
    @pytest.fixture
    def repo(self, tmp_path: Path) -> MemoryTrees:
        return memory_trees(tmp_path)


class TestMemoryGuards(GuardsContract):
    @pytest.fixture
    def repo(self, tmp_path: Path) -> MemoryTrees:
        return memory_trees(tmp_path)
