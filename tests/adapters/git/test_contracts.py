"""Real git keeps the promises of the ports about trees."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.git.hands import GitTrees
from agl.testing.contracts.guards import GuardsContract
from agl.testing.contracts.history import HistoryContract
from agl.testing.contracts.integrator import IntegratorContract
from agl.testing.contracts.kept import KeptContract
from agl.testing.contracts.workspace import WorkspaceContract, WorkspaceProviderContract


class _OnGit:
    @pytest.fixture
    def repo(self, tmp_path: Path) -> GitTrees:
        return GitTrees(tmp_path)


class TestGitWorkspace(_OnGit, WorkspaceContract):
    pass


class TestGitWorkspaces(_OnGit, WorkspaceProviderContract):
    pass


class TestGitHistory(_OnGit, HistoryContract):
    pass


class TestGitKept(_OnGit, KeptContract):
    pass


class TestGitGuards(_OnGit, GuardsContract):
    pass


class TestGitIntegrator(_OnGit, IntegratorContract):
    pass
