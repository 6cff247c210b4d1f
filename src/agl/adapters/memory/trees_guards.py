"""Readings of a repository in memory."""

from __future__ import annotations

from agl.adapters.memory.repository import MemoryRepository
from agl.ports.guards import Guards, Reading


class MemoryGuards(Guards):
    def __init__(self, repository: MemoryRepository) -> None:
        self._repository = repository

    async def read(self, branches: tuple[str, ...]) -> Reading:
        repository = self._repository
        checkout = repository.checkout
        return Reading(
            branches={branch: repository.branches.get(branch) for branch in branches},
            broken_config=repository.broken_config,
            config=repository.broken_config or "",
            shallow="",
            stash=" ".join(repository.stashes),
            checkout=f"{repository.branch_of(checkout)} {repository.born(checkout)}",
        )
