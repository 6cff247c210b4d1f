"""A process that lands one commit: `python landing_of_one.py PLACE START OTHER`. It says `waiting`
whenever it waits for its turn, and then what came of it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from adapters.git.hands import environment
from agl.adapters.filesystem import FilesystemLocks
from agl.adapters.git.discovery import find_repository
from agl.adapters.git.integrator import GitIntegrator
from agl.adapters.git.runner import Git
from agl.adapters.git.workspaces import GitWorkspaces
from agl.adapters.system import SystemClock, SystemProcesses
from agl.testing.contracts.trees import KEEPING, SCOPE


def _say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


class _ToldClock(SystemClock):
    async def sleep(self, seconds: float) -> None:
        _say("waiting")
        await super().sleep(seconds)


async def land(place: Path, start: str, other: str) -> None:
    repository = find_repository(place / "checkout")
    assert repository is not None
    locks, clock = FilesystemLocks(repository.common_dir), _ToldClock()
    git = Git(SystemProcesses(), environment(place))
    provider = GitWorkspaces(git, repository, SCOPE.project, place / "trees", locks, clock)
    tree = await provider.open(SCOPE, start)
    landed = await GitIntegrator(locks, clock).merge(tree, start, other, "land", KEEPING)
    _say(type(landed).__name__)


if __name__ == "__main__":
    asyncio.run(land(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
