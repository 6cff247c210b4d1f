"""Worktrees: one folder per scope, on a branch of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from agl.ports.ids import Label, Scope


@dataclass(frozen=True, slots=True)
class TreeState:
    """A tree as it is: the commit HEAD names, whether HEAD is attached to the scope's branch, and
    whether anything is changed, untracked and not ignored, or in the middle of a merge."""

    head: str
    attached: bool
    clean: bool


@dataclass(frozen=True, slots=True)
class KeptItem:
    """Something set aside instead of destroyed: a commit under a ref, or a folder."""

    name: str
    label: Label
    namespace: str
    when: str
    why: str
    commit: str | None = None
    folder: Path | None = None


def _nobody(item: KeptItem) -> None:
    """Tells nobody."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """Under what a leftover is kept: whose, and one sentence saying which step and why. `tell`
    hears of each item as it is kept, not of one that was there before."""

    scope: Scope
    why: str
    tell: Callable[[KeptItem], None] = field(default=_nobody, compare=False, repr=False)


class Workspace(ABC):
    """One scope's worktree. No call runs a hook, signs, or asks.

    Every call that acts on the tree first checks that the folder is there and belongs to this
    repository, and raises TreeVanished otherwise.
    """

    scope: Scope
    path: Path
    warnings: tuple[str, ...] = ()
    """What a person should know about how the tree was made, one sentence each."""

    @abstractmethod
    async def state(self) -> TreeState:
        """One look at the tree; takes no lock in it."""

    @abstractmethod
    async def commit_all(self, start: str, message: str, keeping: Keeping) -> str:
        """Ends a step that commits: puts all that is dirty into a commit and returns the head.

        If HEAD is a descendant of `start`, or `start` itself, the agent's own commits stay and the
        rest becomes one more; with nothing dirty, none is made. Otherwise one commit is made whose
        parent is `start` and whose tree is the agent's, and the agent's tip is kept. Afterwards the
        scope's branch is at the head that is returned, checked out and clean.

        Raises:
            BranchMoved: somebody moved the scope's branch, which is checked out, from outside of
                this tree since it was at `start`, as far as git's logs tell; nothing was committed.
        """

    @abstractmethod
    async def restore(self, to: str, keeping: Keeping) -> tuple[KeptItem, ...]:
        """Brings branch and tree to the commit `to`, attached and clean, ignored files left alone.

        What stands in the way is kept first: everything dirty, and commits that `to` does not
        contain, as one commit whose parent is HEAD; nested repositories and ignored files whose
        path `to` tracks are moved to the kept folder. Equal leftovers are kept once; what a merge
        left and nobody changed is none, since git makes it again. Returns all that was kept,
        commits first.

        Raises:
            UpstreamError: keeping failed; then nothing was reset.
        """

    @abstractmethod
    async def detach(self) -> None:
        """Detaches HEAD where it stands, so that the branch can be checked out elsewhere."""


@dataclass(frozen=True, slots=True)
class Cleared:
    """What `clear` took out of sight of one tree, and where it is now."""

    tree: str
    folder: Path | None
    branch: str
    kept: tuple[KeptItem, ...]


class WorkspaceProvider(ABC):
    """Makes, finds again, and clears away the worktrees of a run."""

    @abstractmethod
    async def check(self, label: Label) -> None:
        """Refuses, before anything is made, what would fail later: a trees root that cannot be
        written or lies inside the repository, a branch called `agl`, `agl/_work` or `agl/<label>`,
        a mirror fetch that would delete AGL's refs.

        Raises:
            StateError, UpstreamError: with what to type.
        """

    @abstractmethod
    async def open(self, scope: Scope, start: str) -> Workspace:
        """The scope's worktree. Made on its branch at `start` if it is not there, with what the
        project gives its trees; idempotent across kills and processes; on failure undone whole. A
        tree that is there is handed out as it is; one that was not whole yet is made again.

        Stale lock files in the tree and on the scope's branch are removed: the caller holds the
        run's lock and has ended its survivors.

        Raises:
            StateError: the branch is checked out elsewhere (the message says where), or the
                folder is not ours.
            UpstreamError: git or the disk refused; nothing new is left behind.
        """

    @abstractmethod
    async def clear(self, scopes: tuple[Scope, ...]) -> tuple[Cleared, ...]:
        """Takes the trees and branches of a run away without destroying anything: each tree's
        leftovers and its branch's tip are kept, its folder is moved to the kept folder, its
        registration put aside. Checks all before it touches any; repeatable after a kill. The
        caller has ended survivors and holds the run's lock."""

    @abstractmethod
    def folder(self, scope: Scope) -> Path:
        """Where the scope's tree is or would be."""
