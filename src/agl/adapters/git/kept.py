"""What was set aside in a repository: commits under refs, and folders."""

from __future__ import annotations

import asyncio
import os
from datetime import datetime
from pathlib import Path

from agl.adapters.git.kept_folders import KeptFolders
from agl.adapters.git.kept_refs import drop_refs, kept_refs
from agl.adapters.git.refs import HEADS
from agl.adapters.git.runner import Git
from agl.ports.errors import InputError, StateError, UpstreamError
from agl.ports.history import Repository
from agl.ports.ids import Label, ProjectName
from agl.ports.kept import Kept
from agl.ports.workspace import KeptItem


class GitKept(Kept):
    """Refs below `refs/agl/kept/`, and folders in `trees_root/<project>/_kept/`."""

    def __init__(
        self, git: Git, repository: Repository, project: ProjectName, trees_root: Path
    ) -> None:
        self._git = git.at(repository.common_dir)
        self._folders = KeptFolders(Path(os.path.realpath(trees_root)) / project / "_kept")

    async def items(self, label: Label | None = None) -> tuple[KeptItem, ...]:
        found = [one.item for one in await kept_refs(self._git, label)]
        found += self._folders.items(label)
        return tuple(sorted(found, key=lambda item: item.when))

    async def bring_back(self, item: KeptItem, branch: str) -> None:
        if item.commit is None:
            raise StateError(
                f"{item.name!r} is a folder, not a commit; copy from {str(item.folder)!r}"
            )
        named = await self._git.run("check-ref-format", "--branch", branch, check=False)
        if named.status != 0 or named.text != branch or "\0" in branch:
            raise InputError(f"git takes no branch called {branch!r}; give another name")
        ref = HEADS + branch
        made = await self._git.run(
            "update-ref", "-m", "agl", ref, item.commit, "0" * len(item.commit), check=False
        )
        if made.status != 0 and "already exists" in made.stderr:
            raise StateError(f"branch {branch!r} exists; give another name")
        if made.status != 0:
            raise UpstreamError(f"git made no branch {branch!r}: {made.stderr.strip()}")

    async def purge(self, label: Label, older_than: datetime | None) -> tuple[KeptItem, ...]:
        def goes(item: KeptItem) -> bool:
            return older_than is None or datetime.fromisoformat(item.when) < older_than

        refs = [one for one in await kept_refs(self._git, label) if goes(one.item)]
        folders = [item for item in self._folders.items(label) if goes(item)]
        await drop_refs(self._git, refs)
        for item in folders:
            await asyncio.to_thread(self._folders.remove, item)
        gone = [*(one.item for one in refs), *folders]
        return tuple(sorted(gone, key=lambda item: item.when))
