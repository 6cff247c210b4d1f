"""The registrations of linked trees, as git lays them out below the common directory."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agl.adapters.git.discovery import common_dir_of, git_dir_of, main_tree, named, pointer
from agl.adapters.git.refs import HEADS
from agl.ports.errors import StateError, TreeVanished
from agl.ports.history import Repository
from agl.ports.ids import Scope

UNFINISHED = "agl: being made"
"""The reason for which a tree is locked until it is whole, see git-worktree(1)."""


@dataclass(frozen=True, slots=True)
class Registration:
    """One `worktrees/<id>` of the common directory, and the folder that it says is its tree."""

    git_dir: Path
    folder: Path

    def check(self, common_dir: Path) -> None:
        """Refuses a tree in which git would not act on exactly this registration.

        Raises:
            TreeVanished
        """
        if not self.folder.is_dir():
            raise TreeVanished(
                f"the tree {str(self.folder)!r} is gone; `agl resume` makes it again"
            )
        if (
            not self.is_marked
            or pointer(self.git_dir / "gitdir") != self.folder / ".git"
            or common_dir_of(self.git_dir) != common_dir
        ):
            raise TreeVanished(
                f"the tree {str(self.folder)!r} no longer belongs to the repository "
                f"{str(common_dir)!r}; `agl resume` looks after it"
            )

    @property
    def is_marked(self) -> bool:
        """Whether the tree's `.git` file points back here."""
        mark = self.folder / ".git"
        return not mark.is_symlink() and pointer(mark, "gitdir: ") == self.git_dir

    @property
    def half_made(self) -> bool:
        """Whether the tree is still being made, or whoever made it was killed: until it is whole it
        is locked, by git itself with a word of its own (builtin/worktree.c)."""
        return _lock_of(self.git_dir) in (UNFINISHED, "initializing")

    def finish(self) -> None:
        """Marks the tree as whole."""
        (self.git_dir / "locked").unlink()

    @property
    def branches(self) -> frozenset[str]:
        return _branches_of(self.git_dir)


def registrations(common_dir: Path) -> Iterator[Registration]:
    """All registrations that say where their tree is."""
    try:
        entries = sorted((common_dir / "worktrees").iterdir())
    except OSError:
        return
    for git_dir in entries:
        mark = named(git_dir / "gitdir")
        if mark is not None:
            yield Registration(Path(os.path.realpath(git_dir)), Path(os.path.realpath(mark.parent)))


def drop_nameless(common_dir: Path) -> None:
    """Removes what a `git worktree add` of AGL's own left that was killed before it wrote down
    where the tree would be. The caller holds the lock for making trees."""
    for git_dir in (common_dir / "worktrees").glob("*/"):
        if _lock_of(git_dir) == UNFINISHED and named(git_dir / "gitdir") is None:
            shutil.rmtree(git_dir)


def registration_of(common_dir: Path, folder: Path) -> Registration | None:
    """The registration whose tree is `folder`, or None."""
    return next((one for one in registrations(common_dir) if one.folder == folder), None)


def checked_out_at(repository: Repository, branch: str, but: Path | None = None) -> Path | None:
    """The tree, other than `but`, that has the branch checked out, or is in the middle of a rebase
    of it."""
    common_dir = repository.common_dir
    main = main_tree(common_dir) or repository.top
    if main is not None and git_dir_of(main) == common_dir and branch in _branches_of(common_dir):
        return main
    trees = (one for one in registrations(common_dir) if one.folder != but)
    return next((one.folder for one in trees if branch in one.branches), None)


def refuse_elsewhere(repository: Repository, scope: Scope, own: Path) -> None:
    """Refuses a branch that another tree than the scope's own has checked out.

    Raises:
        StateError: it says where.
    """
    elsewhere = checked_out_at(repository, scope.branch, but=own)
    if elsewhere is not None:
        raise StateError(
            f"branch {scope.branch!r} is checked out at {str(elsewhere)!r}; "
            f"`git -C {shlex.quote(str(elsewhere))} checkout --detach` frees it"
        )


def _lock_of(git_dir: Path) -> str | None:
    try:
        return (git_dir / "locked").read_text(errors="replace").strip()
    except OSError:
        return None


def _branches_of(git_dir: Path) -> frozenset[str]:
    found = []
    for name in ("HEAD", "rebase-merge/head-name", "rebase-apply/head-name"):
        try:
            text = (git_dir / name).read_bytes().decode("utf-8", "surrogateescape")
        except OSError:
            continue
        found.append(text.removeprefix("ref:").strip())
    return frozenset(ref.removeprefix(HEADS) for ref in found if ref.startswith(HEADS))
