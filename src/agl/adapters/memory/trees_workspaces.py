"""Worktrees over a repository in memory."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from agl.adapters.memory.repository import MemoryRepository
from agl.adapters.memory.trees_snapshot import in_the_way
from agl.ports.errors import BranchMoved, StateError, TreeVanished, UpstreamError
from agl.ports.ids import Label, ProjectName, Scope
from agl.ports.workspace import (
    Cleared,
    Keeping,
    KeptItem,
    TreeState,
    Workspace,
    WorkspaceProvider,
)


class MemoryWorkspace(Workspace):
    def __init__(self, repository: MemoryRepository, scope: Scope, path: Path) -> None:
        self.scope = scope
        self.path = path
        self._repository = repository

    async def state(self) -> TreeState:
        head = self._head()
        found = self._repository.scan(self.path)
        attached = self._repository.branch_of(self.path) == self.scope.branch
        changed = found.nested or found.files != self._repository.files(head)
        clean = not changed and self._repository.merging(self.path) is None
        return TreeState(head, attached, clean)

    async def commit_all(self, start: str, message: str, keeping: Keeping) -> str:
        repository, head = self._repository, self._head()
        attached = repository.branch_of(self.path) == self.scope.branch
        for commit in repository.strangers(self.path, self.scope.branch, start) if attached else ():
            raise BranchMoved(
                f"branch {self.scope.branch!r} was moved to {commit} from outside of its tree"
            )
        while nested := repository.scan(self.path).nested:
            self.move_aside(tuple(f"{path}/.git" for path in nested), keeping)
        stays = attached and repository.contains(head, start)
        parent = head if stays else start
        merging = repository.merging(self.path) if stays else None
        files, commit = repository.scan(self.path).files, parent
        if merging is not None:
            commit = repository.add_commit((parent, merging.other), files, message)
        elif files != repository.files(parent):
            commit = repository.add_commit((parent,), files, message)
        self.keep_commits(commit, keeping)
        self._put(commit)
        return commit

    async def restore(self, to: str, keeping: Keeping) -> tuple[KeptItem, ...]:
        self._head()
        found = self._repository.scan(self.path)
        blocking = in_the_way(found.ignored, self._repository.files(to))
        moved = self.move_aside(found.nested + blocking, keeping)
        left = self.keep_files(keeping)
        commits = self.keep_commits(to, keeping)
        self._put(to)
        return tuple(left + commits + moved)

    async def detach(self) -> None:
        self._head()
        self._repository.detach_in(self.path)

    def keep_files(self, keeping: Keeping) -> list[KeptItem]:
        """Keeps what differs from HEAD, and from what a merge left, as a commit on HEAD; what was
        kept before is found again."""
        repository = self._repository
        head, files = repository.head(self.path), repository.scan(self.path).files
        merging = repository.merging(self.path)
        if files == repository.files(head) or (merging is not None and files == merging.left):
            return []
        for item in _of_scope(repository, self.scope):
            if item.commit is not None and repository.files(item.commit) == files:
                return [item]
        commit = repository.add_commit((head,), files, keeping.why)
        return [_keep(repository, keeping, commit=commit)]

    def keep_commits(self, to: str | None, keeping: Keeping) -> list[KeptItem]:
        """Keeps every commit that the tree was at and that nothing which stays contains."""
        repository, kept = self._repository, list[KeptItem]()
        others = (tip for name, tip in repository.branches.items() if name != self.scope.branch)
        safe = [*others, *([] if to is None else [to])]
        safe += [item.commit for item in repository.kept_items if item.commit is not None]
        own = repository.branches.get(self.scope.branch)
        merging = repository.merging(self.path)
        came = [] if merging is None else [merging.other]
        for tip in (own, *came, *reversed(repository.passed(self.path))):
            if tip is not None and not any(repository.contains(one, tip) for one in safe):
                kept.append(_keep(repository, keeping, commit=tip))
                safe.append(tip)
        return kept

    def move_aside(self, paths: tuple[str, ...], keeping: Keeping) -> list[KeptItem]:
        if not paths:
            return []
        folder = _kept_folder(self._repository, self.scope)
        for path in paths:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.path / path).rename(folder / path)
        return [_keep(self._repository, keeping, folder=folder)]

    def _put(self, commit: str) -> None:
        refuse_elsewhere(self._repository, self.scope, self.path)
        self._repository.put(self.path, commit, self.scope.branch)
        self._repository.settle(self.path)

    def _head(self) -> str:
        if not self._repository.holds(self.path):
            raise TreeVanished(
                f"the tree {str(self.path)!r} is gone or no longer ours;"
                f" `agl resume {self.scope.label}` makes it again once nothing is in its place"
            )
        return self._repository.head(self.path)


class MemoryWorkspaces(WorkspaceProvider):
    """Trees at `<folder>/trees/<project>/<label>/<tree>` of the repository's folder."""

    def __init__(self, repository: MemoryRepository, project: ProjectName) -> None:
        self._repository = repository
        self._project = project

    def folder(self, scope: Scope) -> Path:
        return self._repository.trees / self._project / scope.label / scope.tree

    async def check(self, label: Label) -> None:
        wanted = f"agl/{label}"
        for branch in self._repository.branches:
            if branch in ("agl", "agl/_work", wanted) or branch.startswith(f"{wanted}/"):
                raise StateError(
                    f"a branch {branch!r} is in the way of {wanted!r};"
                    f" `git branch -m {branch} NEW` frees the name"
                )

    async def open(self, scope: Scope, start: str) -> Workspace:
        repository, folder = self._repository, self.folder(scope)
        if repository.holds(folder):
            return MemoryWorkspace(repository, scope, folder)
        if folder.exists():
            raise StateError(f"the folder {str(folder)!r} is not a tree of AGL's; move it away")
        refuse_elsewhere(repository, scope, folder)
        at = repository.branches.get(scope.branch, start)
        if at not in repository.commits:
            raise UpstreamError(f"no commit {at!r} to start {scope.branch!r} at")
        if repository.registered(folder):
            keeping = Keeping(scope, f"the tree {str(folder)!r} was gone")
            MemoryWorkspace(repository, scope, folder).keep_commits(at, keeping)
        try:
            repository.add_tree(folder, scope.branch)
        except OSError as error:
            raise UpstreamError(f"cannot make the tree {str(folder)!r}: {error}") from error
        repository.put(folder, at, scope.branch)
        return MemoryWorkspace(repository, scope, folder)

    async def clear(self, scopes: tuple[Scope, ...]) -> tuple[Cleared, ...]:
        for scope in scopes:
            refuse_elsewhere(self._repository, scope, self.folder(scope))
        cleared = (self._clear(scope) for scope in scopes)
        return tuple(one for one in cleared if one is not None)

    def _clear(self, scope: Scope) -> Cleared | None:
        repository, tree = self._repository, self.folder(scope)
        tip = repository.branches.get(scope.branch)
        if tip is None and not repository.registered(tree):
            return None
        keeping = Keeping(scope, f"cleared {scope.branch!r}")
        kept = [] if tip is None else [_keep(repository, keeping, commit=tip)]
        folder = None
        if repository.registered(tree):
            workspace = MemoryWorkspace(repository, scope, tree)
            kept += workspace.keep_commits(None, keeping)
            if tree.exists():
                kept += workspace.keep_files(keeping)
                folder = self._move_away(tree, keeping)
            repository.drop_tree(tree)
        repository.branches.pop(scope.branch, None)
        return Cleared(scope.tree, folder, scope.branch, tuple(kept))

    def _move_away(self, tree: Path, keeping: Keeping) -> Path:
        folder = _kept_folder(self._repository, keeping.scope)
        tree.rename(folder)
        if (folder / ".git").exists():
            (folder / ".git").rename(folder / ".git-was")
        _keep(self._repository, keeping, folder=folder)
        return folder


def refuse_elsewhere(repository: MemoryRepository, scope: Scope, tree: Path) -> None:
    where = repository.checked_out_at(scope.branch)
    if where is not None and where != tree:
        raise StateError(
            f"the branch {scope.branch!r} is checked out at {str(where)!r};"
            " check out another branch there"
        )


def _of_scope(repository: MemoryRepository, scope: Scope) -> list[KeptItem]:
    whose = (scope.label, scope.tree)
    return [item for item in repository.kept_items if (item.label, item.namespace) == whose]


def _keep(
    repository: MemoryRepository,
    keeping: Keeping,
    *,
    commit: str | None = None,
    folder: Path | None = None,
) -> KeptItem:
    scope = keeping.scope
    item = repository.keep(scope.label, scope.tree, keeping.why, commit=commit, folder=folder)
    keeping.tell(item)
    return item


def _kept_folder(repository: MemoryRepository, scope: Scope) -> Path:
    """A place for a folder that is kept; its parent is there, itself it is not."""
    runs = repository.trees / scope.project / "_kept"
    base = f"{scope.label}-{repository.stamp()}"
    names = (base if n == 1 else f"{base}-{n}" for n in count(1))
    folder = next(runs / name / scope.tree for name in names if not (runs / name).exists())
    folder.parent.mkdir(parents=True)
    return folder
