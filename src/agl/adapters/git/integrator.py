"""Merging on real git."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from agl.adapters.git.changes import Change, brought, changes
from agl.adapters.git.conflicts import conflict_of, still_open, unmerged
from agl.adapters.git.merging import options
from agl.adapters.git.reflog import merge_heads
from agl.adapters.git.runner import LONG_S
from agl.adapters.git.turns import Turns
from agl.adapters.git.workspace import GitWorkspace
from agl.ports.clock import Clock
from agl.ports.errors import InternalError, StateError, UpstreamError
from agl.ports.integrator import Conflict, Integrator, Merged, NothingToMerge
from agl.ports.locks import Locks
from agl.ports.workspace import Keeping, Workspace

_FLAGS = (
    "--no-ff",
    "--no-edit",
    "--no-verify",
    "--no-stat",
    "--no-autostash",
    "--no-log",
    "--no-signoff",
    "--no-gpg-sign",
    "--no-verify-signatures",
    "--no-progress",
    "--cleanup=verbatim",
    "--strategy=ort",
)


class GitIntegrator(Integrator):
    """Merges in trees that `GitWorkspaces` opened."""

    def __init__(self, locks: Locks, clock: Clock) -> None:
        self._turns = Turns(locks, clock, "agl-merges")

    async def merge(
        self, tree: Workspace, start: str, other: str, message: str, keeping: Keeping
    ) -> Merged | Conflict | NothingToMerge:
        own = _own(tree)
        before = await own.head()
        async with self._turn(own):
            now = await own.head()
            moved = before.commit == start != now.commit
            if moved and now.commit and await own.index.contains(now.commit, start):
                start = now.commit
            return await self._merge(own, start, other, message, keeping)

    async def begin(self, tree: Workspace, other: str, keeping: Keeping) -> Conflict:
        own = _own(tree)
        async with self._turn(own):
            await own.remove_stale_locks()
            look = await own.index.look()
            if not look.clean or look.head is None:
                raise StateError(
                    f"the tree {str(tree.path)!r} has changes; commit or undo them before a merge"
                )
            coming = await changes(own.git, look.head, other)
            return await self._bring_in(
                own, look.head, coming, other, f"merge {other}", keeping, "--no-commit"
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
        own = _own(tree)
        async with self._turn(own):
            merged = await self._merge_commit(own, start, other)
            if merged is not None:
                look = await own.index.mended(await own.index.look())
                if not still_open(own.path, {}, conflict).paths:
                    if look.status is not None and look.status.clean:
                        own.end_operations()
                    else:
                        await own.restore(merged, keeping)
                    return await self._concluded(own, start, merged)
                await self._hold(own, start, other, merged)
            elif not await self._is_in_merge(own, start, other):
                return await self._merge(own, start, other, message, keeping)
            still = still_open(own.path, await unmerged(own.git), conflict)
            if still.paths:
                return still
            await own.commit_all(start, message, keeping)
            merged = await self._merge_commit(own, start, other)
            if merged is None:
                raise UpstreamError(
                    f"git made no merge commit of {start} and {other} in {str(tree.path)!r}"
                )
            return await self._concluded(own, start, merged)

    async def unresolved(self, tree: Workspace, conflict: Conflict) -> Conflict:
        own = _own(tree)
        return still_open(own.path, await unmerged(own.git), conflict)

    async def hold(self, tree: Workspace, start: str, other: str, merged: str) -> None:
        own = _own(tree)
        async with self._turn(own):
            await self._hold(own, start, other, merged)

    def _turn(self, tree: GitWorkspace) -> AbstractAsyncContextManager[None]:
        return self._turns.take(tree.git_dir.name, f"merging in {str(tree.path)!r}")

    async def _merge(
        self, tree: GitWorkspace, start: str, other: str, message: str, keeping: Keeping
    ) -> Merged | Conflict | NothingToMerge:
        await tree.restore(start, keeping)
        coming = await changes(tree.git, start, other)
        conflict = await self._bring_in(tree, start, coming, other, message, keeping)
        if conflict.paths:
            return conflict
        head = (await tree.head()).commit
        if head is None or head == start:
            return NothingToMerge()
        return await self._merged(tree, head, coming)

    async def _bring_in(
        self,
        tree: GitWorkspace,
        head: str,
        coming: Sequence[Change],
        other: str,
        message: str,
        keeping: Keeping,
        *flags: str,
    ) -> Conflict:
        """Runs the merge in a tree that is clean."""
        if tree.in_the_way(coming):
            theirs = await brought(tree.git, head, other)
            paths = {one.path for one in (coming if theirs is None else theirs)}
            written = [one for one in coming if one.kind == b"D" or one.path in paths]
            tree.clear_the_way(written, keeping)
        submodules = [one for one in coming if one.is_submodule]
        await tree.submodules.fetch(submodules)
        settings = options(f"branch.{tree.scope.branch}.mergeOptions=")
        merge = ("merge", *_FLAGS, *flags, "-m", message, other)
        answer = await tree.git.run(*settings, *merge, check=False, timeout_s=LONG_S)
        found = await unmerged(tree.git) if answer.status != 0 else None
        if answer.status != 0 and not (found and merge_heads(tree.git_dir) == (other,)):
            raise UpstreamError(tree.git.refusal("merge", answer))
        if submodules:
            await tree.submodules.populate(one.path for one in submodules)
        return conflict_of(tree.path, found or {}, other)

    async def _concluded(self, tree: GitWorkspace, start: str, head: str) -> Merged:
        return await self._merged(tree, head, await changes(tree.git, start, head))

    async def _merged(self, tree: GitWorkspace, head: str, coming: Sequence[Change]) -> Merged:
        submodules = [one for one in coming if one.is_submodule]
        if not submodules:
            return Merged(head)
        return Merged(head, await tree.submodules.unpublished(submodules))

    async def _hold(self, tree: GitWorkspace, start: str, other: str, merged: str) -> None:
        await tree.remove_stale_locks()
        if await self._attached_head(tree) != merged:
            return
        await tree.check_branch()
        # First these: a kill in between leaves a tree that is still at the merge. Without the mode
        # `git commit` leaves out a parent that the other one contains (builtin/commit.c).
        (tree.git_dir / "MERGE_MODE").write_text("no-ff")
        (tree.git_dir / "MERGE_HEAD").write_text(f"{other}\n")
        await tree.git.run("update-ref", "-m", "agl: hold", "HEAD", start, merged)

    async def _is_in_merge(self, tree: GitWorkspace, start: str, other: str) -> bool:
        at_start = await self._attached_head(tree) == start
        return at_start and merge_heads(tree.git_dir) == (other,)

    async def _merge_commit(self, tree: GitWorkspace, start: str, other: str) -> str | None:
        """The commit that the tree is at, if it is a merge of just these two."""
        head = await self._attached_head(tree)
        if head in (None, start):
            return None
        answer = await tree.git.run("rev-list", "--parents", "--max-count=1", "HEAD")
        commit, *parents = answer.text.split()
        return commit if parents == [start, other] else None

    async def _attached_head(self, tree: GitWorkspace) -> str | None:
        head = await tree.head()
        return head.commit if head.branch == tree.scope.branch else None


def _own(tree: Workspace) -> GitWorkspace:
    if not isinstance(tree, GitWorkspace):
        raise InternalError(f"{str(tree.path)!r} is no tree on git")
    tree.index.check()
    return tree
