"""Makes trees in a process of its own: `makers.py PLACE NAMESPACE…` below a `GitTrees` place."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from agl.adapters.filesystem import FilesystemLocks
from agl.adapters.git.discovery import find_repository
from agl.adapters.git.runner import Git
from agl.adapters.git.workspaces import GitWorkspaces
from agl.adapters.system import SystemClock, SystemProcesses
from agl.ports.ids import Namespace
from agl.testing.contracts.trees import SCOPE


async def make(place: Path, base: str, names: list[str], environ: dict[str, str]) -> None:
    """Makes all of them at once."""
    repository = find_repository(place / "checkout")
    assert repository is not None
    provider = GitWorkspaces(
        Git(SystemProcesses(), environ),
        repository,
        SCOPE.project,
        place / "trees",
        FilesystemLocks(repository.common_dir),
        SystemClock(),
    )
    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(provider.open(SCOPE.child(Namespace(name)), base))


if __name__ == "__main__":
    import os

    asyncio.run(make(Path(sys.argv[1]), sys.argv[2], sys.argv[3:], dict(os.environ)))
