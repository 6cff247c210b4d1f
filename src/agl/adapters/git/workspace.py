"""One scope's worktree on real git."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from agl.adapters.git.changes import Change, changes
from agl.adapters.git.keeping import keep_lost
from agl.adapters.git.kept_folders import KeptFolders, move, open_up
from agl.adapters.git.kept_refs import keep_commit
from agl.adapters.git.merging import merged_tree
from agl.adapters.git.reflog import (
    OPERATION_FILES,
    merge_heads,
    moved_through,
    operation_commits,
    strangers,
)
from agl.adapters.git.refs import HEADS, Head, Refs
from agl.adapters.git.registration import Registration, refuse_elsewhere
from agl.adapters.git.runner import LONG_S, Git
from agl.adapters.git.submodules import Submodules
from agl.adapters.git.tree_index import Look, TreeIndex
from agl.ports.clock import Clock
from agl.ports.errors import BranchMoved, StateError, UpstreamError
from agl.ports.history import Repository
from agl.ports.ids import Scope
from agl.ports.workspace import Keeping, KeptItem, TreeState, Workspace

_LOCK_TRIES = 10
_LOCK_PAUSE_S = 0.05


class GitWorkspace(Workspace):
    """A linked tree, at its registration."""

    def __init__(
        self,
        git: Git,
        repository: Repository,
        scope: Scope,
        registration: Registration,
        folders: KeptFolders,
        clock: Clock,
    ) -> None:
        self.scope = scope
        self.path = registration.folder
        self._registration = registration
        self.git_dir = registration.git_dir
        self._repository = repository
        self.git = git.at(registration.git_dir, registration.folder)
        self.refs = Refs(git, repository.common_dir)
        self._folders = folders
        self.submodules = Submodules(git, repository, registration.git_dir, registration.folder)
        self._clock = clock
        self._ref = HEADS + scope.branch
        self._dealt = self._read = 0
        self.index = TreeIndex(self.git, self.refs, repository, registration, scope.branch)

    async def state(self) -> TreeState:
        look = await self.index.look()
        return TreeState(look.head or "", look.attached, look.clean)

    async def commit_all(self, start: str, message: str, keeping: Keeping) -> str:
        await self.remove_stale_locks()
        look = await self.index.mended(await self.index.look())
        passed = self._passed()
        await self.check_branch()
        if look.attached:
            self._refuse_strangers(start)
        if not look.clean:
            look = await self._flattened(look, keeping)
            self._move(self._unreadable(look), keeping)
            await self.index.stage(look)
        if look.attached and look.head and await self.index.contains(look.head, start):
            await self._keep_lost(passed, keeping, look.head, start)
            head = look.head if look.clean else await self.index.commit(look.head, message)
        else:
            head = await self.index.commit_on(start, message)
            tip = await self.refs.commit(self._ref)
            await self._keep_lost([look.head, tip, *passed], keeping, head, start)
            await self._attach()
            await self.git.run("update-ref", "-m", "agl", "HEAD", head)
        if look.in_operation:
            self.end_operations()
        return head

    async def restore(self, to: str, keeping: Keeping) -> tuple[KeptItem, ...]:
        await self.remove_stale_locks()
        look = await self.index.look()
        passed = self._passed()
        await self.check_branch()
        tip = await self.refs.commit(self._ref)
        if look.clean and look.attached and look.head == to:
            return tuple(await self._keep_lost(passed, keeping, to))
        look = await self.index.mended(look)
        kept = self._move(look.status.nested if look.status else (), keeping)
        kept += self._move(self._unreadable(look), keeping)
        base, dirty = await self._keep_dirty(look, keeping)
        kept += dirty
        kept += await self._keep_lost([look.head, tip, *passed], keeping, to)
        submodules = self._changed_submodules(look)
        kept += await self._set_aside(submodules, keeping)
        kept += self.clear_the_way(await changes(self.git, base, to), keeping)
        if not look.attached:
            await self._attach()
        if not look.clean and look.head is not None:
            # What is new stays on disk for now: some of it may be ignored at `to`.
            await self.git.run("read-tree", "--reset", look.head)
        await self.git.run("reset", "--hard", "--quiet", to, timeout_s=LONG_S)
        self.end_operations()
        left, look = await self._remove_leftovers(base, look.head, keeping)
        await self._settle(look, to, submodules)
        unique = {item.name: item for item in kept + left}
        return tuple(sorted(unique.values(), key=lambda item: item.commit is None))

    async def keep_all(self, keeping: Keeping) -> list[KeptItem]:
        """Keeps what is dirty, but for nested repositories, and what only this tree's HEAD holds.
        Every file stays where it is."""
        await self.remove_stale_locks()
        look = await self.index.mended(await self.index.look())
        _, kept = await self._keep_dirty(look, keeping)
        return kept + await self._keep_lost([look.head, *self._passed()], keeping)

    async def detach(self) -> None:
        self.index.check()
        head = await self.refs.head(self.git_dir)
        if head.branch is not None and head.commit is not None:
            await self.git.run("update-ref", "--no-deref", "-m", "detached", "HEAD", head.commit)

    def _passed(self) -> tuple[str, ...]:
        """What HEAD was at since it was last made sure of, and what git would take up again."""
        moves, self._read = moved_through(self.git_dir, self._dealt)
        return (*moves, *operation_commits(self.git_dir))

    async def _keep(self, tree: str, head: str | None, keeping: Keeping) -> KeptItem:
        parents = [head] if head else []
        return await keep_commit(self.git, tree, parents, keeping, self._clock.now())

    async def _keep_dirty(self, look: Look, keeping: Keeping) -> tuple[str, list[KeptItem]]:
        """Keeps what differs from HEAD. Returns the commit or tree that holds what is on disk."""
        if look.clean and look.head is not None:
            return look.head, []
        await self.index.stage(look)
        tree = (await self.git.run("write-tree")).text
        if tree == await self.index.tree_of(look.head) or await self._is_as_merged(look, tree):
            return tree, []
        return tree, [await self._keep(tree, look.head, keeping)]

    async def _is_as_merged(self, look: Look, tree: str) -> bool:
        """Whether the tree holds what the merge that it is in the middle of makes of its two
        commits, and not a byte of anybody's."""
        heads = merge_heads(self.git_dir)
        if look.head is None or len(heads) != 1:
            return False
        return tree == await merged_tree(self.git, heads[0])

    async def _keep_lost(
        self, commits: Iterable[str | None], keeping: Keeping, *safe: str
    ) -> list[KeptItem]:
        kept = await keep_lost(self.git, commits, keeping, self._clock, safe=safe)
        self._dealt = self._read
        return kept

    def _move(self, paths: Iterable[bytes], keeping: Keeping) -> list[KeptItem]:
        """Moves what cannot be committed to one new kept folder, each under its own path."""
        names = [os.fsdecode(path).rstrip("/") for path in paths]
        if not names:
            return []
        with self._folders.place(keeping, self._clock.now()) as item:
            assert item.folder is not None
            for name in names:
                open_up((self.path / name).parent)
                move(self.path / name, item.folder / name)
            return [item]

    def _unreadable(self, look: Look) -> list[bytes]:
        """The dirty paths whose content git cannot read: pipes, sockets and devices, and files
        that are another user's. What is shut but our own is opened."""
        found: list[bytes] = []
        for path in (*look.status.tracked, *look.status.untracked) if look.status else ():
            file = self.path / os.fsdecode(path)
            try:
                mode = file.lstat().st_mode
                if stat.S_ISREG(mode) and not os.access(file, os.R_OK):
                    file.chmod(stat.S_IMODE(mode) | stat.S_IRUSR)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError:
                found.append(path)
                continue
            if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode)):
                found.append(path)
        return found

    async def _flattened(self, look: Look, keeping: Keeping) -> Look:
        """The look once the files of nested repositories are plain files of the tree: what makes
        them repositories is kept."""
        while look.status is not None and look.status.nested:
            self._move(
                (
                    path + b".git" if (self.path / os.fsdecode(path) / ".git").is_dir() else path
                    for path in look.status.nested
                ),
                keeping,
            )
            look = await self.index.look()
        return look

    def _changed_submodules(self, look: Look) -> tuple[bytes, ...]:
        changed = look.status.submodules if look.status else ()
        return tuple(path for path in changed if self._obstacle(path) == path)

    async def _set_aside(self, submodules: tuple[bytes, ...], keeping: Keeping) -> list[KeptItem]:
        """Moves the files of submodules away; their commits are kept in their own repositories,
        which stay."""
        stamp = f"{self._clock.now():%Y%m%dT%H%M%S.%fZ}"
        for path in submodules:
            await self.submodules.keep_commit(path, f"refs/agl/kept/{self.scope.label}/{stamp}")
        return self._move(submodules, keeping)

    async def head(self) -> Head:
        """What HEAD names; no process where the ref format allows it."""
        return await self.refs.head(self.git_dir)

    async def populate(self) -> None:
        """Fills the submodules of a new tree as they are in the user's checkout."""
        failed = await self.submodules.populate()
        self.warnings = tuple(
            f"submodule {path!r} could not be checked out in {str(self.path)!r}" for path in failed
        )

    def clear_the_way(self, coming: Sequence[Change], keeping: Keeping) -> list[KeptItem]:
        """Moves away what stands, unknown to the old side, where the new one has a file."""
        return self._move(self.in_the_way(coming), keeping)

    def in_the_way(self, coming: Sequence[Change]) -> tuple[bytes, ...]:
        known = {one.path for one in coming if one.kind == b"D"}
        added = (self._obstacle(one.path) for one in coming if one.kind == b"A")
        places = dict.fromkeys(place for place in added if place and place not in known)
        return tuple(path for place in places for path in self._unknown(place, known))

    def _unknown(self, place: bytes, known: set[bytes]) -> Iterator[bytes]:
        """The place itself, or the files below it that are not known if some are."""
        if not any(path.startswith(place + b"/") for path in known):
            yield place
            return
        for folder, folders, files in os.walk(self.path / os.fsdecode(place)):
            links = (name for name in folders if Path(folder, name).is_symlink())
            for name in (*files, *links):
                path = os.fsencode(Path(folder, name).relative_to(self.path))
                if path not in known:
                    yield path

    def _obstacle(self, path: bytes) -> bytes | None:
        """The part of the path that is on disk and leaves no room for a file there."""
        parts = path.split(b"/")
        for count in range(1, len(parts) + 1):
            place = b"/".join(parts[:count])
            full = self.path / os.fsdecode(place)
            if not os.path.lexists(full):
                return None
            if full.is_symlink() or not full.is_dir():
                return place
            if count == len(parts):
                return place if any(full.iterdir()) else None
        return None

    async def remove_stale_locks(self) -> None:
        """Removes what git processes left locked that are gone, in the tree and on its branch. One
        that is still at work gets half a second to finish."""
        branch = self._repository.common_dir / f"{self._ref}.lock"
        for left in range(_LOCK_TRIES, -1, -1):
            locks = [one for one in (branch, *self.git_dir.glob("*.lock")) if one.exists()]
            if not locks:
                return
            if left:
                await self._clock.sleep(_LOCK_PAUSE_S)
        for lock in locks:
            lock.unlink(missing_ok=True)

    async def check_branch(self) -> None:
        """Refuses a branch whose move would move another one, or another tree."""
        target = await self.refs.symbolic(self._ref)
        if target is not None:
            words = [f"--git-dir={self._repository.common_dir}", "symbolic-ref", "-d", self._ref]
            raise StateError(
                f"branch {self.scope.branch!r} is only another name of {target!r}, which would "
                f"move with it; `git {shlex.join(words)}` ends that"
            )
        refuse_elsewhere(self._repository, self.scope, self.path)

    def _refuse_strangers(self, start: str) -> None:
        log = self._repository.common_dir / "logs" / self._ref
        for commit in strangers(self.git_dir, log, start):
            raise BranchMoved(
                f"branch {self.scope.branch!r} was moved to {commit} from outside of its tree"
            )

    async def _attach(self) -> None:
        await self.git.run("symbolic-ref", "-m", "agl", "HEAD", self._ref)

    def end_operations(self) -> None:
        for name in OPERATION_FILES:
            file = self.git_dir / name
            if file.is_dir():
                shutil.rmtree(file)
            else:
                file.unlink(missing_ok=True)

    async def _remove_leftovers(
        self, base: str, head: str | None, keeping: Keeping
    ) -> tuple[list[KeptItem], Look]:
        """Removes untracked files once it is sure that they are kept, and looks at what is left."""
        kept: list[KeptItem] = []
        look = await self.index.look()
        # To remove an ignore file can bring more to light.
        while look.status is not None and (look.status.untracked or look.status.nested):
            unreadable = self._unreadable(look)
            kept += self._move((*look.status.nested, *unreadable), keeping)
            if look.status.untracked and not unreadable:
                tree, base = await self.index.tree_with(base, look.status.untracked)
                if tree != base:
                    kept.append(await self._keep(base, head, keeping))
                self._remove(look.status.untracked)
            look = await self.index.look()
        return kept, look

    async def _settle(self, look: Look, to: str, submodules: tuple[bytes, ...]) -> None:
        """Brings submodules to what `to` says of them, and makes sure of where the tree is."""
        status = look.status
        if status is not None and (submodules or status.submodules):
            await self.submodules.populate({*submodules, *status.submodules})
        # What is tracked and differs right after a hard reset differs by the repository's filters.
        settled = status is not None and not (status.untracked or status.nested)
        if not settled or look.head != to or not look.attached:
            raise UpstreamError(f"git could not bring {str(self.path)!r} to {to}; look at it there")

    def _remove(self, paths: Iterable[bytes]) -> None:
        for path in paths:
            file = self.path / os.fsdecode(path)
            file.unlink(missing_ok=True)
            for parent in file.parents:
                if parent == self.path:
                    break
                try:
                    parent.rmdir()
                except OSError:
                    break
