"""The worktrees of runs on real git."""

from __future__ import annotations

import asyncio
import os
import shlex
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from agl.adapters.git.checks import check_label, refuse_no_room
from agl.adapters.git.clearing import Clearing
from agl.adapters.git.discovery import git_dir_of
from agl.adapters.git.equipment import Equipment
from agl.adapters.git.keeping import keep_lost
from agl.adapters.git.kept_folders import (
    KeptFolders,
    move,
    open_up,
    registration_place,
    remove_tree,
)
from agl.adapters.git.reflog import moved_through
from agl.adapters.git.refs import HEADS, Refs
from agl.adapters.git.registration import (
    UNFINISHED,
    Registration,
    drop_nameless,
    refuse_elsewhere,
    registration_of,
)
from agl.adapters.git.runner import LONG_S, Git
from agl.adapters.git.sparse import follow
from agl.adapters.git.turns import Turns
from agl.adapters.git.workspace import GitWorkspace
from agl.ports.clock import Clock
from agl.ports.errors import StateError, UpstreamError
from agl.ports.history import Repository
from agl.ports.ids import Label, ProjectName, Scope
from agl.ports.locks import Locks
from agl.ports.workspace import Cleared, Keeping, Workspace, WorkspaceProvider

_LOCK = "agl-trees"


class GitWorkspaces(WorkspaceProvider):
    """Linked trees at `trees_root/<project>/<label>/<tree>`."""

    def __init__(
        self,
        git: Git,
        repository: Repository,
        project: ProjectName,
        trees_root: Path,
        locks: Locks,
        clock: Clock,
        equipment: Equipment | None = None,
    ) -> None:
        self._git = git
        self._repository = repository
        self._trees = Path(os.path.realpath(trees_root)) / project
        self._turns = Turns(locks, clock)
        self._clock = clock
        self._folders = KeptFolders(self._trees / "_kept")
        self._refs = Refs(git, repository.common_dir)
        self._equipment = equipment
        self._opening: dict[Path, asyncio.Lock] = {}
        self._filling = asyncio.Semaphore(max(2, os.cpu_count() or 1))

    def folder(self, scope: Scope) -> Path:
        return self._trees / scope.label / scope.tree

    async def check(self, label: Label) -> None:
        await check_label(self._git, self._repository, self._trees.parent, label)

    async def open(self, scope: Scope, start: str) -> Workspace:
        folder = self.folder(scope)
        async with self._opening.setdefault(folder, asyncio.Lock()):
            registration = self._ours(folder)
            if registration is None:
                return await self._make(scope, folder, start)
            workspace = self._workspace(scope, registration)
            await workspace.remove_stale_locks()
            return workspace

    async def clear(self, scopes: tuple[Scope, ...]) -> tuple[Cleared, ...]:
        clearing = Clearing(
            self._git, self._repository, self._folders, self._clock, self.folder, self._workspace
        )
        async with self._turn():
            return await clearing.clear(scopes)

    def _turn(self) -> AbstractAsyncContextManager[None]:
        """The repository's lock for making trees."""
        return self._turns.take(_LOCK, f"making trees in {str(self._repository.common_dir)!r}")

    def _workspace(self, scope: Scope, registration: Registration) -> GitWorkspace:
        return GitWorkspace(
            self._git, self._repository, scope, registration, self._folders, self._clock
        )

    def _ours(self, folder: Path) -> Registration | None:
        """The tree that is there, or None when it is to be made."""
        for each in (folder.parent, folder):
            open_up(each)
        registration = registration_of(self._repository.common_dir, folder)
        if not os.path.lexists(folder) or (folder.is_dir() and not any(folder.iterdir())):
            return None
        if registration is not None and registration.half_made and folder.is_dir():
            return None
        mark = folder / ".git"
        if (
            registration is None
            or not folder.is_dir()
            or (os.path.lexists(mark) and not registration.is_marked)
        ):
            away = shlex.join([str(folder), f"{folder}.away"])
            raise StateError(
                f"{str(folder)!r} is not a tree of {str(self._repository.common_dir)!r}; "
                f"`mv {away}` makes room for it"
            )
        if not os.path.lexists(mark):
            mark.write_bytes(b"gitdir: " + os.fsencode(registration.git_dir) + b"\n")
        return registration

    async def _make(self, scope: Scope, folder: Path, start: str) -> Workspace:
        async with self._turn():
            registration, branch_made_at = await self._register(scope, folder, start)
        try:
            async with self._filling:
                workspace = self._workspace(scope, registration)
                await self._fill(workspace)
            registration.finish()
        except (Exception, asyncio.CancelledError) as error:
            async with self._turn():
                await self._undo(scope, folder, branch_made_at)
            if isinstance(error, OSError):
                raise _not_made(folder, error) from error
            raise
        return workspace

    async def _register(
        self, scope: Scope, folder: Path, start: str
    ) -> tuple[Registration, str | None]:
        """Makes branch and registration of a tree with no file in it, and says where the branch
        was made unless it was there before."""
        drop_nameless(self._repository.common_dir)
        await self._drop_registration(scope, folder)
        refuse_elsewhere(self._repository, scope, folder)
        ref = HEADS + scope.branch
        known = await self._refs.commit(ref)
        what = [str(folder), scope.branch] if known else ["-b", scope.branch, str(folder), start]
        flags = ("--quiet", "--no-checkout", "--lock", "--reason", UNFINISHED)
        made_at = None if known else start
        try:
            (self._repository.common_dir / f"{ref}.lock").unlink(missing_ok=True)
            folder.parent.mkdir(parents=True, exist_ok=True)
            await self._git.at(self._repository.common_dir).run("worktree", "add", *flags, *what)
            registration = registration_of(self._repository.common_dir, folder)
            if registration is None:
                raise UpstreamError(f"git made no tree at {str(folder)!r}")
        except OSError as error:
            self._remove_empty(folder.parent)
            await refuse_no_room(self._refs, scope.branch)
            raise _not_made(folder, error) from error
        except (Exception, asyncio.CancelledError):
            await self._undo(scope, folder, made_at)
            await refuse_no_room(self._refs, scope.branch)
            raise
        return registration, made_at

    async def _fill(self, workspace: GitWorkspace) -> None:
        checkout = git_dir_of(self._repository.top) if self._repository.top else None
        if checkout is not None:
            await follow(self._git, checkout, workspace.git_dir)
        await workspace.git.run("reset", "--hard", "--quiet", timeout_s=LONG_S)
        await workspace.populate()
        if self._equipment is not None:
            workspace.warnings += await self._equipment.put_into(workspace)

    async def _undo(self, scope: Scope, folder: Path, made_at: str | None) -> None:
        """Takes back a tree that was not made whole, and the branch if it was made with it."""
        _remove(registration_of(self._repository.common_dir, folder), folder)
        self._remove_empty(folder.parent)
        if made_at is not None:
            await self._git.at(self._repository.common_dir).run(
                "update-ref", "--no-deref", "-d", HEADS + scope.branch, made_at, check=False
            )

    async def _drop_registration(self, scope: Scope, folder: Path) -> None:
        """Forgets a tree whose folder is gone, or was never whole; what it alone held is kept."""
        registration = registration_of(self._repository.common_dir, folder)
        if registration is None:
            return
        if registration.half_made:
            _remove(registration, folder)
            return
        keeping = Keeping(scope, f"the tree {str(folder)!r} was gone")
        git = self._git.at(self._repository.common_dir)
        tip = await self._refs.commit(HEADS + scope.branch)
        head = await self._refs.head(registration.git_dir)
        passed, _ = moved_through(registration.git_dir)
        await keep_lost(
            git, [head.commit, *passed], keeping, self._clock, safe=[tip] if tip else []
        )
        with self._folders.place(keeping, self._clock.now()) as item:
            move(registration.git_dir, registration_place(item))

    def _remove_empty(self, folder: Path) -> None:
        """Removes the folders from this one up to the trees root that hold nothing."""
        for each in (folder, *folder.parents):
            if not each.is_relative_to(self._trees.parent):
                return
            try:
                each.rmdir()
            except OSError:
                return


def _not_made(folder: Path, error: OSError) -> UpstreamError:
    return UpstreamError(f"cannot make {str(folder)!r}: {error.strerror}")


def _remove(registration: Registration | None, folder: Path) -> None:
    """Removes a tree in which nobody has been at work; its registration last, since it tells."""
    if folder.is_dir():
        remove_tree(folder)
    if registration is not None:
        remove_tree(registration.git_dir)
