"""Things that were set aside instead of destroyed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime

from agl.ports.ids import Label
from agl.ports.workspace import KeptItem


class Kept(ABC):
    """Lists what was kept, and brings it back."""

    @abstractmethod
    async def items(self, label: Label | None = None) -> tuple[KeptItem, ...]:
        """All that is kept, or what belongs to one label, oldest first."""

    @abstractmethod
    async def bring_back(self, item: KeptItem, branch: str) -> None:
        """Makes a branch at a kept commit.

        Raises:
            StateError: the branch exists, or what was kept is a folder and not a commit.
            InputError: the branch's name is not one that git takes.
        """

    @abstractmethod
    async def purge(self, label: Label, older_than: datetime | None) -> tuple[KeptItem, ...]:
        """Deletes what was kept of the label before that moment, or all of it; says what went.
        This is the only call that destroys."""
