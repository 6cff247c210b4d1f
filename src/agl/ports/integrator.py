"""Merging one scope's commits into another scope's tree, and the hold that a conflict leaves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from agl.ports.workspace import Keeping, Workspace

BOTH_CHANGED = "changed on both sides"
BOTH_ADDED = "added on both sides"
DELETED_HERE = "deleted here, changed there"
DELETED_THERE = "changed here, deleted there"
FOLDER_RENAMED = "in a folder that the other side renamed"
RENAMED_TWICE = "renamed differently on both sides"
FILE_AGAINST_FOLDER = "a file on one side, a folder on the other"
TWO_KINDS = "two kinds of file, a link and a regular one, say"
SUBMODULE_MOVED = "a submodule that was moved on both sides"


@dataclass(frozen=True, slots=True)
class ConflictedPath:
    """One path that could not be merged: `kind` is one of the words above, in which "here" is the
    tree that is merged into, `left` the digest of what the merge left on disk there, None when it
    left nothing."""

    path: str
    kind: str
    left: str | None = None


@dataclass(frozen=True, slots=True)
class Conflict:
    """What could not be merged, by path. The tree is held."""

    paths: tuple[ConflictedPath, ...]


@dataclass(frozen=True, slots=True)
class Merged:
    """A merge commit with two parents: where the tree was, and what came in. `warnings` are what a
    person should know of it, one sentence each."""

    head: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NothingToMerge:
    """The tree contained it all before."""


class Integrator(ABC):
    """Merges in a scope's tree. A **hold** is a fact of the tree, not of this object: the scope's
    branch is checked out at `start`, in the middle of merging `other`, and the files are as the
    merge or a person left them. No call runs a hook, signs, asks, or follows a person's merge
    settings, but for drivers that attributes name. Two calls on one tree, also of two processes,
    take turns.

    Raises (all calls):
        TreeVanished: the tree is gone, or no longer ours.
        StateError: another tree has the branch checked out, so that it cannot be moved.
        UpstreamError: git or the disk refused; what was in the tree is still there, or kept.
    """

    @abstractmethod
    async def merge(
        self, tree: Workspace, start: str, other: str, message: str, keeping: Keeping
    ) -> Merged | Conflict | NothingToMerge:
        """Brings the tree to `start` (what is in the way is kept), then merges `other` with a
        commit, never by moving forward. Ignored files where `other` has a file are kept first. A
        conflict leaves the tree held. What an earlier call left half done is undone first. Where
        another call moved the tree on from `start` while this one waited for its turn, it merges
        onto where that one left it."""

    @abstractmethod
    async def begin(self, tree: Workspace, other: str, keeping: Keeping) -> Conflict:
        """Merges `other` into a tree that is clean, without a commit: also what merged by itself
        waits in the tree for one, and conflicts stand in the files between markers. No paths: all
        merged by itself, or there was nothing to merge.

        Raises:
            StateError: the tree is not clean.
        """

    @abstractmethod
    async def conclude(
        self,
        tree: Workspace,
        start: str,
        other: str,
        message: str,
        conflict: Conflict,
        keeping: Keeping,
    ) -> Merged | Conflict | NothingToMerge:
        """Ends a hold with what is in the tree now, all that is dirty included.

        Paths of `conflict` that nobody resolved, see `unresolved`, are returned, and the tree stays
        held. A merge commit of the two that is there already (this call was killed, or a
        person made it) is taken as it is, and what is dirty beside it is kept. Where there is no
        hold, it is `merge`.
        """

    @abstractmethod
    async def unresolved(self, tree: Workspace, conflict: Conflict) -> Conflict:
        """Those of the paths that are unmerged in the index and whose file still is as the merge
        left it, or holds a conflict marker. One that somebody staged is resolved, unless it is
        staged or committed with its markers just as the merge left it; so is the old name of a file
        that both sides renamed."""

    @abstractmethod
    async def hold(self, tree: Workspace, start: str, other: str, merged: str) -> None:
        """Turns the merge commit that the tree is at back into a hold: the branch is at `start`
        again, the files stay. A tree that is not at `merged` is left as it is."""
