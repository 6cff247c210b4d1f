"""Taking the trees and branches of a run out of sight."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from agl.adapters.git.discovery import pointer
from agl.adapters.git.keeping import keep_lost
from agl.adapters.git.kept_folders import KeptFolders, move, open_up, registration_place
from agl.adapters.git.kept_refs import keep_tip
from agl.adapters.git.reflog import moved_through
from agl.adapters.git.refs import HEADS, Refs
from agl.adapters.git.registration import Registration, refuse_elsewhere, registration_of
from agl.adapters.git.runner import Git
from agl.adapters.git.workspace import GitWorkspace
from agl.ports.clock import Clock
from agl.ports.errors import TreeVanished, UpstreamError
from agl.ports.history import Repository
from agl.ports.ids import Scope
from agl.ports.workspace import Cleared, Keeping, KeptItem


class Clearing:
    """One `clear`. Each of its moves can be found half done, and is then finished."""

    def __init__(
        self,
        git: Git,
        repository: Repository,
        folders: KeptFolders,
        clock: Clock,
        folder: Callable[[Scope], Path],
        workspace: Callable[[Scope, Registration], GitWorkspace],
    ) -> None:
        self._repository = repository
        self._git = git.at(repository.common_dir)
        self._refs = Refs(git, repository.common_dir)
        self._folders = folders
        self._clock = clock
        self._folder = folder
        self._workspace = workspace

    async def clear(self, scopes: tuple[Scope, ...]) -> tuple[Cleared, ...]:
        for scope in scopes:
            for each in (self._folder(scope).parent, self._folder(scope)):
                open_up(each)
            refuse_elsewhere(self._repository, scope, self._folder(scope))
        self._finish_moves(scopes)
        cleared = [await self._clear(scope) for scope in scopes]
        return tuple(one for one in cleared if one is not None)

    async def _clear(self, scope: Scope) -> Cleared | None:
        keeping = Keeping(scope, f"the run {str(scope.label)!r} was cleared")
        folder = self._folder(scope)
        registration = registration_of(self._repository.common_dir, folder)
        tip = await self._refs.commit(HEADS + scope.branch)
        if registration is None and tip is None and not folder.is_dir():
            return None
        kept: list[KeptItem] = []
        # In a tree that was never whole nobody has been at work, and its index would mislead.
        if registration is not None and not registration.half_made:
            kept += await self._keep(scope, registration, keeping)
        if tip is not None:
            kept.append(await keep_tip(self._git, tip, keeping, self._clock.now()))
        moved = self._move(folder, registration, keeping)
        if tip is not None:
            await self._git.run("update-ref", "--no-deref", "-d", HEADS + scope.branch, tip)
        if folder.parent.is_dir() and not any(folder.parent.iterdir()):
            folder.parent.rmdir()
        unique = {item.name: item for item in kept}
        return Cleared(scope.tree, moved, scope.branch, tuple(unique.values()))

    async def _keep(
        self, scope: Scope, registration: Registration, keeping: Keeping
    ) -> list[KeptItem]:
        try:
            return await self._workspace(scope, registration).keep_all(keeping)
        except (TreeVanished, UpstreamError):
            # The files go to the kept folder as they are; of commits HEAD and its log tell.
            head = await self._refs.head(registration.git_dir)
            passed, _ = moved_through(registration.git_dir)
            return await keep_lost(self._git, [head.commit, *passed], keeping, self._clock)

    def _move(
        self, folder: Path, registration: Registration | None, keeping: Keeping
    ) -> Path | None:
        if registration is None and not folder.is_dir():
            return None
        with self._folders.place(keeping, self._clock.now()) as item:
            assert item.folder is not None
            moved = folder.is_dir()
            if moved:
                move(folder, item.folder)
                _unmark(item.folder)
            if registration is not None:
                move(registration.git_dir, registration_place(item))
            return item.folder if moved else None

    def _finish_moves(self, scopes: tuple[Scope, ...]) -> None:
        """Puts aside what a killed `clear` left: the mark in a moved folder, its registration."""
        labels = {scope.label for scope in scopes}
        for item in self._folders.items():
            if item.label not in labels or item.folder is None:
                continue
            git_dir = pointer(item.folder / ".git", "gitdir: ")
            if git_dir is None or git_dir.parent != self._repository.common_dir / "worktrees":
                continue
            _unmark(item.folder)
            if git_dir.is_dir() and not registration_place(item).exists():
                move(git_dir, registration_place(item))


def _unmark(folder: Path) -> None:
    mark = folder / ".git"
    if mark.is_file():
        move(mark, folder / ".git-was")
