"""Merging over a repository in memory."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from agl.adapters.memory.repository import MemoryRepository, Merging
from agl.adapters.memory.trees_merging import merge_files
from agl.adapters.memory.trees_snapshot import Snapshot, in_the_way, write
from agl.adapters.memory.trees_workspaces import MemoryWorkspace
from agl.ports.errors import StateError, UpstreamError
from agl.ports.integrator import (
    Conflict,
    ConflictedPath,
    Integrator,
    Merged,
    NothingToMerge,
)
from agl.ports.workspace import Keeping, TreeState, Workspace

_MARKER = re.compile(rb"^(<{7,}|>{7,})( |\r?$)", re.MULTILINE)


class MemoryIntegrator(Integrator):
    def __init__(self, repository: MemoryRepository) -> None:
        self._repository = repository

    async def merge(
        self, tree: Workspace, start: str, other: str, message: str, keeping: Keeping
    ) -> Merged | Conflict | NothingToMerge:
        await tree.restore(start, keeping)
        if self._repository.contains(start, other):
            return NothingToMerge()
        conflict = await self.begin(tree, other, keeping)
        if conflict.paths:
            return conflict
        return Merged(await tree.commit_all(start, message, keeping))

    async def begin(self, tree: Workspace, other: str, keeping: Keeping) -> Conflict:
        repository, state = self._repository, await tree.state()
        if not state.clean:
            raise StateError(
                f"the tree {str(tree.path)!r} has changes; commit or undo them before a merge"
            )
        if repository.contains(state.head, other):
            return Conflict(())
        base = self._base(state.head, other)
        merged = merge_files(base, repository.files(state.head), repository.files(other), other)
        found = repository.scan(tree.path)
        workspace = MemoryWorkspace(repository, tree.scope, tree.path)
        workspace.move_aside(in_the_way(found.ignored, merged.files), keeping)
        write(tree.path, found.files, merged.files)
        merging = Merging(other, merged.files, frozenset(merged.conflicts))
        repository.begin_merge(tree.path, merging)
        return Conflict(
            tuple(
                ConflictedPath(path, kind, _digest(tree.path / path))
                for path, kind in sorted(merged.conflicts.items())
            )
        )

    async def conclude(
        self,
        tree: Workspace,
        start: str,
        other: str,
        message: str,
        conflict: Conflict,
        keeping: Keeping,
    ) -> Merged | Conflict | NothingToMerge:
        state = await tree.state()
        if state.attached and self._is_merge(state.head, start, other):
            if not (await self.unresolved(tree, conflict)).paths:
                if not state.clean:
                    await tree.restore(state.head, keeping)
                return Merged(state.head)
            await self.hold(tree, start, other, state.head)
        elif not self._is_in_merge(tree, state, start, other):
            return await self.merge(tree, start, other, message, keeping)
        still = await self.unresolved(tree, conflict)
        if still.paths:
            return still
        return Merged(await tree.commit_all(start, message, keeping))

    async def unresolved(self, tree: Workspace, conflict: Conflict) -> Conflict:
        await tree.state()
        merging = self._repository.merging(tree.path)
        unmerged = merging.unmerged if merging is not None else frozenset[str]()
        return Conflict(
            tuple(one for one in conflict.paths if _is_open(tree.path, one, one.path in unmerged))
        )

    async def hold(self, tree: Workspace, start: str, other: str, merged: str) -> None:
        state = await tree.state()
        if state.attached and state.head == merged:
            self._repository.hold(tree.path, start, other)

    def _is_in_merge(self, tree: Workspace, state: TreeState, start: str, other: str) -> bool:
        merging = self._repository.merging(tree.path)
        at_start = state.attached and state.head == start
        return at_start and merging is not None and merging.other == other

    def _is_merge(self, commit: str, start: str, other: str) -> bool:
        return self._repository.commits[commit].parents == (start, other)

    def _base(self, ours: str, theirs: str) -> Snapshot:
        """The files of a newest commit that both contain."""
        repository = self._repository
        theirs_too = set(repository.reachable(theirs))
        shared = [one for one in repository.reachable(ours) if one in theirs_too]
        if not shared:
            raise UpstreamError(f"{ours} and {theirs} have no commit in common")
        older = {parent for one in shared for parent in repository.commits[one].parents}
        return repository.files(next(one for one in shared if one not in older))


def _is_open(tree: Path, one: ConflictedPath, unmerged: bool) -> bool:
    as_left, marked = _digest(tree / one.path) == one.left, _marked(tree / one.path)
    return (as_left or marked) if unmerged else (as_left and marked)


def _digest(file: Path) -> str | None:
    if file.is_symlink():
        return hashlib.sha256(b"link " + os.fsencode(file.readlink())).hexdigest()
    return hashlib.sha256(b"file " + file.read_bytes()).hexdigest() if file.is_file() else None


def _marked(file: Path) -> bool:
    return file.is_file() and not file.is_symlink() and bool(_MARKER.search(file.read_bytes()))
