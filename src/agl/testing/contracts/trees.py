"""What the suites about trees ask for: one repository, its ports, and hands to act as an agent."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from agl.ports.guards import Guards
from agl.ports.history import History
from agl.ports.ids import Label, Namespace, ProjectName, Scope
from agl.ports.integrator import Integrator
from agl.ports.kept import Kept
from agl.ports.workspace import Keeping, WorkspaceProvider

BASE_FILES = {"calc.py": b"def add(a, b):\n    return a - b\n", "docs/notes.txt": b"notes\n"}
"""What the first commit holds; plain files."""

SCOPE = Scope(ProjectName("project"), Label("fix"))
CHILD = SCOPE.child(Namespace("left"))
KEEPING = Keeping(SCOPE, "step 'implement' began again")


class TreesUnderTest(Protocol):
    """A repository of the project `project` whose only commit, `base`, holds BASE_FILES.

    It is checked out at `checkout` on the branch `main`. Untracked files called `*.ignored` are
    ignored. The functions do what an agent with a shell does in a working tree, `checkout` too.
    """

    provider: WorkspaceProvider
    integrator: Integrator
    history: History
    kept: Kept
    guards: Guards
    base: str
    checkout: Path

    def another_provider(self) -> WorkspaceProvider:
        """The provider that a new process builds over the same repository."""

    def another_integrator(self) -> Integrator:
        """The integrator that a new process builds over the same repository."""

    def stage_in(self, tree: Path, path: str) -> None:
        """`git add` of one file as it is."""

    def commit_in(self, tree: Path, message: str) -> str:
        """`git add -A` and `git commit --allow-empty`; returns the new commit."""

    def commit_ignored_in(self, tree: Path, path: str, content: bytes, message: str) -> str:
        """Writes a file below the tree, `git add -f` of it and `git commit`; the new commit."""

    def amend_in(self, tree: Path, message: str) -> str:
        """`git add -A` and `git commit --amend --allow-empty`; returns the new commit."""

    def reset_in(self, tree: Path, commit: str) -> None:
        """`git reset --hard`: untracked files stay."""

    def detach_in(self, tree: Path) -> None:
        """`git checkout --detach`."""

    def branch_in(self, tree: Path, branch: str) -> None:
        """`git checkout -b`."""

    def switch_in(self, tree: Path, branch: str) -> None:
        """`git checkout` of a branch that is there, in a clean tree."""

    def move_branch(self, branch: str, commit: str) -> None:
        """`git update-ref` of a branch, from a folder in which another one is checked out."""

    def stash_in(self, tree: Path) -> None:
        """`git stash --include-untracked`."""

    def nest_in(self, tree: Path, name: str, *, with_commit: bool) -> None:
        """`git init` in a new folder of the tree that holds the file `inside.txt` with the content
        `nested`, and on demand `git commit` of it there."""

    def break_config(self) -> None:
        """Makes the configuration that all trees share unfit for working trees."""


def files_below(folder: Path) -> dict[str, bytes]:
    """Path → content of all files below a folder, but for its own `.git`; a link's content is its
    target."""
    found: dict[str, bytes] = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if name == ".git" or name.startswith(".git/"):
            continue
        if path.is_symlink():
            found[name] = os.fsencode(path.readlink())
        elif path.is_file():
            found[name] = path.read_bytes()
    return found


async def kept_contents(repo: TreesUnderTest) -> set[bytes]:
    """Every file's content that can be found in what is kept."""
    contents: set[bytes] = set()
    for item in await repo.kept.items():
        if item.commit is not None:
            contents.update((await repo.history.files(item.commit)).values())
        if item.folder is not None:
            contents.update(files_below(item.folder).values())
    return contents


async def can_be_found(repo: TreesUnderTest, commit: str, *branches: str) -> bool:
    """Whether the commit is part of one of the branches or of something kept."""
    tips = [await repo.history.tip(branch) for branch in branches]
    tips += [item.commit for item in await repo.kept.items()]
    return any([await repo.history.is_ancestor(commit, tip) for tip in tips if tip is not None])
