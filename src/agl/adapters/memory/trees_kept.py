"""What a repository in memory keeps."""

from __future__ import annotations

import re
import shutil
from datetime import datetime

from agl.adapters.memory.repository import MemoryRepository
from agl.ports.errors import InputError, StateError
from agl.ports.ids import Label
from agl.ports.kept import Kept
from agl.ports.workspace import KeptItem

# git-check-ref-format(1)
_NOT_IN_A_BRANCH = re.compile(
    r"^$|^[-/]|/$|\.$|//|\.\.|@\{|^@$|(^|/)\.|\.lock(/|$)|[\x00-\x20\x7f~^:?*\[\\]"
)


class MemoryKept(Kept):
    def __init__(self, repository: MemoryRepository) -> None:
        self._repository = repository

    async def items(self, label: Label | None = None) -> tuple[KeptItem, ...]:
        kept = self._repository.kept_items
        return tuple(item for item in kept if label is None or item.label == label)

    async def bring_back(self, item: KeptItem, branch: str) -> None:
        if _NOT_IN_A_BRANCH.search(branch):
            raise InputError(f"{branch!r} is not a name that git takes for a branch")
        if item.commit is None:
            raise StateError(f"{str(item.folder)!r} is a folder; move it where you want it")
        if branch in self._repository.branches:
            raise StateError(f"a branch {branch!r} exists already; choose another name")
        self._repository.branches[branch] = item.commit

    async def purge(self, label: Label, older_than: datetime | None) -> tuple[KeptItem, ...]:
        gone = tuple(
            item
            for item in await self.items(label)
            if older_than is None or datetime.fromisoformat(item.when) < older_than
        )
        for item in gone:
            if item.folder is not None:
                shutil.rmtree(item.folder, ignore_errors=True)
            self._repository.kept_items.remove(item)
        return gone
