"""A repository in memory as the suites about trees want it."""

from __future__ import annotations

from pathlib import Path

from agl.adapters.memory.clock import ManualClock
from agl.adapters.memory.integrator import MemoryIntegrator
from agl.adapters.memory.repository import MemoryRepository
from agl.adapters.memory.trees_guards import MemoryGuards
from agl.adapters.memory.trees_history import MemoryHistory
from agl.adapters.memory.trees_kept import MemoryKept
from agl.adapters.memory.trees_workspaces import MemoryWorkspaces
from agl.ports.guards import Guards
from agl.ports.history import History
from agl.ports.integrator import Integrator
from agl.ports.kept import Kept
from agl.ports.workspace import WorkspaceProvider
from agl.testing.contracts.trees import BASE_FILES, SCOPE


class MemoryTrees(MemoryRepository):
    provider: WorkspaceProvider
    integrator: Integrator
    history: History
    kept: Kept
    guards: Guards
    base: str

    def another_provider(self) -> WorkspaceProvider:
        return MemoryWorkspaces(self, SCOPE.project)

    def another_integrator(self) -> Integrator:
        return MemoryIntegrator(self)


def memory_trees(folder: Path) -> MemoryTrees:
    repo = MemoryTrees.with_files(folder, ManualClock(), BASE_FILES, ignored=("*.ignored",))
    repo.provider = repo.another_provider()
    repo.integrator = repo.another_integrator()
    repo.history = MemoryHistory(repo)
    repo.kept = MemoryKept(repo)
    repo.guards = MemoryGuards(repo)
    repo.base = repo.branches["main"]
    return repo
