"""A repository in memory whose working trees are real folders, because agents and tools write
real files. No git and no process is involved."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from agl.adapters.memory.trees_snapshot import File, Found, Kind, Snapshot, scan, write
from agl.ports.clock import Clock
from agl.ports.errors import InputError
from agl.ports.ids import Label
from agl.ports.workspace import KeptItem

_HEADS = "refs/heads/"

R = TypeVar("R", bound="MemoryRepository")


@dataclass(frozen=True, slots=True)
class MemoryCommit:
    parents: tuple[str, ...]
    files: Snapshot
    message: str


@dataclass(frozen=True, slots=True)
class Merging:
    """What a tree is in the middle of: the commit that comes in, the files as the merge left them,
    and the paths that it could not merge and that nobody staged."""

    other: str
    left: Snapshot
    unmerged: frozenset[str] = frozenset()


class MemoryRepository:
    """Commits and branches in memory, the user's checkout and AGL's trees below `folder`.

    It outlives the adapters that are built over it, as a real one outlives a killed process. The
    functions that end in `_in` do what an agent with a shell would do in a working tree.
    """

    def __init__(
        self, folder: Path, clock: Clock, *, ignored: Iterable[str] = ("__pycache__", "*.pyc")
    ) -> None:
        self.folder = folder.resolve()
        self.checkout = self.folder / "checkout"
        self.trees = self.folder / "trees"
        self.clock = clock
        self.ignored = tuple(ignored)
        self.commits: dict[str, MemoryCommit] = {}
        self.branches: dict[str, str] = {}
        self.kept_items: list[KeptItem] = []
        self.stashes: list[str] = []
        self.broken_config: str | None = None
        self._heads: dict[Path, str] = {}
        self._passed: dict[Path, list[str]] = {}
        self._merging: dict[Path, Merging] = {}
        self._branch_log: dict[str, list[tuple[str, Path | None]]] = {}
        self.add_tree(self.checkout, "main")

    @classmethod
    def with_files(
        cls: type[R],
        folder: Path,
        clock: Clock,
        files: Mapping[str, bytes],
        *,
        ignored: Iterable[str] = ("__pycache__", "*.pyc"),
    ) -> R:
        """A repository whose first commit, on `main`, holds these files."""
        repository = cls(folder, clock, ignored=ignored)
        content = {path: File(Kind.FILE, content) for path, content in files.items()}
        write(repository.checkout, {}, content)
        repository.commit_in(repository.checkout, "first")
        return repository

    # commits

    def add_commit(self, parents: tuple[str, ...], files: Snapshot, message: str) -> str:
        text = repr((len(self.commits), parents, message, sorted(files.items(), key=_path)))
        commit = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        self.commits[commit] = MemoryCommit(parents, dict(files), message)
        return commit

    def files(self, commit: str | None) -> Snapshot:
        """The commit's files; before the first commit there are none."""
        return {} if commit is None else self.commits[commit].files

    def reachable(self, commit: str) -> Iterator[str]:
        """The commit and all that it contains, near ones first."""
        seen = {commit}
        wave = [commit]
        while wave:
            yield from wave
            parents = (parent for one in wave for parent in self.commits[one].parents)
            wave = [one for one in dict.fromkeys(parents) if one not in seen]
            seen.update(wave)

    def contains(self, newer: str, older: str) -> bool:
        return older in self.reachable(newer)

    # working trees

    def add_tree(self, tree: Path, branch: str) -> None:
        """Registers a working tree on the branch. Its `.git` stops a real git, which would
        otherwise act on the repository around it."""
        tree.mkdir(parents=True, exist_ok=True)
        (tree / ".git").write_text(self._mark)
        self._heads[tree] = _HEADS + branch
        self._passed[tree] = []
        self._merging.pop(tree, None)

    def drop_tree(self, tree: Path) -> None:
        self._heads.pop(tree, None)
        self._passed.pop(tree, None)
        self._merging.pop(tree, None)

    def registered(self, tree: Path) -> bool:
        return tree in self._heads

    def holds(self, tree: Path) -> bool:
        """Whether the tree is registered, there, and ours."""
        mark = tree / ".git"
        return tree in self._heads and mark.is_file() and mark.read_text() == self._mark

    def tree_around(self, folder: Path) -> Path | None:
        folder = folder.resolve()
        return next((one for one in (folder, *folder.parents) if one in self._heads), None)

    def checked_out_at(self, branch: str) -> Path | None:
        return next((tree for tree, head in self._heads.items() if head == _HEADS + branch), None)

    def branch_of(self, tree: Path) -> str | None:
        """The branch the tree has checked out, None when its HEAD is detached."""
        head = self._heads[tree]
        return head.removeprefix(_HEADS) if head.startswith(_HEADS) else None

    def born(self, tree: Path) -> str | None:
        """The commit HEAD names, None before the first one."""
        branch = self.branch_of(tree)
        return self._heads[tree] if branch is None else self.branches.get(branch)

    def head(self, tree: Path) -> str:
        commit = self.born(tree)
        if commit is None:
            raise InputError(f"{str(tree)!r} has no commit yet; make a first commit")
        return commit

    def scan(self, tree: Path) -> Found:
        tracked = self.files(self.born(tree))
        merging = self.merging(tree)
        known = tracked.keys() | (merging.left.keys() if merging is not None else frozenset())
        return scan(tree, known, self.ignored)

    def put(self, tree: Path, commit: str, branch: str | None) -> None:
        """Moves HEAD, and the branch with it, and writes the commit's files over the tree's."""
        write(tree, self.scan(tree).files, self.files(commit))
        self._move(tree, commit, branch)

    def merging(self, tree: Path) -> Merging | None:
        """The merge that the tree is in the middle of. Whatever moves HEAD ends it."""
        return self._merging.get(tree)

    def begin_merge(self, tree: Path, merging: Merging) -> None:
        self._merging[tree] = merging

    def hold(self, tree: Path, start: str, other: str) -> None:
        """Moves HEAD and its branch back to `start`, in the middle of merging `other`; the files
        stay."""
        merged = self.files(self.head(tree))
        self._move(tree, start, self.branch_of(tree))
        self.settle(tree)
        self.begin_merge(tree, Merging(other, merged))

    def passed(self, tree: Path) -> tuple[str, ...]:
        """The commits that HEAD was at since AGL's own last move, as a reflog has them."""
        return tuple(self._passed[tree])

    def settle(self, tree: Path) -> None:
        """Marks the last move as AGL's own."""
        self._passed[tree] = [self.head(tree)]

    def _move(self, tree: Path, commit: str, branch: str | None) -> None:
        if branch is not None:
            self.branches[branch] = commit
            self._branch_log.setdefault(branch, []).append((commit, tree))
        self._heads[tree] = commit if branch is None else _HEADS + branch
        self._passed[tree].append(commit)
        self._merging.pop(tree, None)

    def strangers(self, tree: Path, branch: str, start: str) -> tuple[str, ...]:
        """The commits that the branch was moved to from outside of the tree since it was at
        `start`."""
        moves = self._branch_log.get(branch, [])
        last = max((n for n, (commit, _) in enumerate(moves) if commit == start), default=-1)
        return tuple(commit for commit, where in moves[last + 1 :] if where != tree)

    # what is kept

    def stamp(self) -> str:
        return f"{self.clock.now():%Y%m%dT%H%M%SZ}"

    def keep(
        self,
        label: Label,
        namespace: str,
        why: str,
        *,
        commit: str | None = None,
        folder: Path | None = None,
    ) -> KeptItem:
        name = (
            f"{label}/{self.stamp()}-{namespace}-{len(self.kept_items) + 1}"
            if folder is None
            else f"{folder.parent.name}/{folder.name}"
        )
        when = self.clock.now().isoformat()
        item = KeptItem(name, label, namespace, when, why, commit, folder)
        self.kept_items.append(item)
        return item

    # what an agent does

    def commit_in(self, tree: Path, message: str) -> str:
        return self._commit(tree, self._next_parents(tree), self.scan(tree).files, message)

    def commit_ignored_in(self, tree: Path, path: str, content: bytes, message: str) -> str:
        files = dict(self.scan(tree).files)
        files[path] = File(Kind.FILE, content)
        commit = self._commit(tree, self._next_parents(tree), files, message)
        self.put(tree, commit, self.branch_of(tree))
        return commit

    def amend_in(self, tree: Path, message: str) -> str:
        parents = self.commits[self.head(tree)].parents
        return self._commit(tree, parents, self.scan(tree).files, message)

    def stage_in(self, tree: Path, path: str) -> None:
        merging = self.merging(tree)
        if merging is not None:
            self.begin_merge(tree, replace(merging, unmerged=merging.unmerged - {path}))

    def detach_in(self, tree: Path) -> None:
        self._move(tree, self.head(tree), None)

    def reset_in(self, tree: Path, commit: str) -> None:
        """Untracked files stay, as with git."""
        tracked = self.files(self.born(tree))
        found = self.scan(tree).files
        present = {path: file for path, file in found.items() if path in tracked}
        write(tree, present, self.files(commit))
        self._move(tree, commit, self.branch_of(tree))

    def branch_in(self, tree: Path, branch: str) -> None:
        self._move(tree, self.head(tree), branch)

    def switch_in(self, tree: Path, branch: str) -> None:
        self.put(tree, self.branches[branch], branch)

    def move_branch(self, branch: str, commit: str) -> None:
        self.branches[branch] = commit
        self._branch_log.setdefault(branch, []).append((commit, None))

    def stash_in(self, tree: Path) -> None:
        head = self.head(tree)
        self.stashes.append(self.add_commit((head,), self.scan(tree).files, "stash"))
        self.put(tree, head, self.branch_of(tree))

    def nest_in(self, tree: Path, name: str, *, with_commit: bool) -> None:
        """A nested repository is told by its `.git`; its commits are nobody's business here."""
        (tree / name / ".git").mkdir(parents=True)
        (tree / name / "inside.txt").write_bytes(b"nested")

    def break_config(self) -> None:
        self.broken_config = "the shared configuration says that there is no working tree"

    def _next_parents(self, tree: Path) -> tuple[str, ...]:
        merging = self.merging(tree)
        commits = (self.born(tree), merging.other if merging else None)
        return tuple(commit for commit in commits if commit is not None)

    def _commit(self, tree: Path, parents: tuple[str, ...], files: Snapshot, message: str) -> str:
        commit = self.add_commit(parents, files, message)
        self._move(tree, commit, self.branch_of(tree))
        return commit

    @property
    def _mark(self) -> str:
        return f"gitdir: {self.folder / 'in-memory'}\n"


def _path(entry: tuple[str, File]) -> str:
    return entry[0]
