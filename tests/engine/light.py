"""The outside world of the model, light: commits that hold results, trees, a merge, a person.

A commit is the tuple of the results that it contains; two results that touch one file clash, and a
result that breaks the build does so until one that mends it comes after it.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from agl.ports.agents import AgentEvent, AgentOutcome, AgentRunner, AgentTask
from agl.ports.clock import Clock
from agl.ports.errors import AglError, NeedsAnswer, Overloaded
from agl.ports.event_log import EventLog
from agl.ports.events import Event
from agl.ports.guards import Guards, Reading
from agl.ports.history import History
from agl.ports.ids import Label, Scope
from agl.ports.integrator import (
    BOTH_CHANGED,
    Conflict,
    ConflictedPath,
    Integrator,
    Merged,
    NothingToMerge,
)
from agl.ports.kept import Kept
from agl.ports.models import Capability, ModelId
from agl.ports.processes import Marker
from agl.ports.store import Address, Document, Store
from agl.ports.terminal import Answer, Screen, Terminal, Typed
from agl.ports.verifier import Verdict, Verifier
from agl.ports.workspace import (
    Cleared,
    Keeping,
    KeptItem,
    TreeState,
    Workspace,
    WorkspaceProvider,
)

if TYPE_CHECKING:
    from engine.model import Process, Ran

Tree = tuple[int, ...]

BUILD = "build"
WRITES = ("write", "tell", "repair")
ROOT = Path("/light")


class Killed(BaseException):
    """The death of the process. Once dead, it writes and does nothing more."""


# Time.


class _Clockwork(selectors.SelectSelector):
    """Waits for nothing: where a loop would wait, its time moves on."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "nothing will ever happen again"
        self.now += max(timeout, 0)
        return super().select(0)


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop in which no time is spent waiting."""

    def __init__(self) -> None:
        self._clockwork = _Clockwork()
        super().__init__(self._clockwork)

    def time(self) -> float:
        return self._clockwork.now


class TickingClock(Clock):
    """A second later at each look, so that no two documents have one time."""

    def __init__(self) -> None:
        self._seconds = 0

    def now(self) -> datetime:
        self._seconds += 1
        return datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=self._seconds)

    def monotonic_s(self) -> float:
        return float(self._seconds)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


# The repository.


@dataclass(frozen=True, slots=True)
class Commit:
    parents: tuple[str, ...]
    tokens: Tree
    below: frozenset[str]


@dataclass(slots=True)
class LightTree:
    """A worktree. `unresolved`: files of the merge in it that nobody looked at."""

    branch: str
    attached: bool = True
    detached_at: str = ""
    dirty: Tree = ()
    merging: str | None = None
    unresolved: frozenset[str] = frozenset()

    @property
    def is_clean(self) -> bool:
        return not self.dirty and self.merging is None


class LightRepository:
    """Commits, branches, trees by the names of their scopes, and kept refs. `files` says which file
    a result touches."""

    base = "c0"

    def __init__(self) -> None:
        self.commits = {self.base: Commit((), (), frozenset({self.base}))}
        self.branches: dict[str, str] = {}
        self.trees: dict[str, LightTree] = {}
        self.kept: list[str] = []
        self.written: set[int] = set()
        self.typed: set[int] = set()
        self.files: dict[int, str] = {}
        self.red: set[int] = set()
        self.mending: set[int] = set()
        self._count = 0

    def tokens(self, commit: str) -> Tree:
        return self.commits[commit].tokens

    def contains(self, newer: str, older: str) -> bool:
        return older in self.commits[newer].below

    def commit(self, parents: tuple[str, ...], more: Tree) -> str:
        self._count += 1
        name = f"c{self._count}"
        tokens = dict.fromkeys(one for parent in parents for one in self.tokens(parent))
        below = {name}.union(*(self.commits[parent].below for parent in parents))
        self.commits[name] = Commit(parents, (*tokens, *more), frozenset(below))
        return name

    def head(self, tree: LightTree) -> str:
        return self.branches[tree.branch] if tree.attached else tree.detached_at

    def put(self, tree: LightTree, token: int) -> None:
        tree.dirty = (*tree.dirty, token)
        self.written.add(token)

    def commit_here(self, tree: LightTree) -> str:
        parents = (self.head(tree), *((tree.merging,) if tree.merging else ()))
        self.check_out(tree, self.commit(parents, tree.dirty))
        return self.head(tree)

    def check_out(self, tree: LightTree, commit: str) -> None:
        self.branches[tree.branch] = commit
        tree.attached, tree.dirty, tree.merging, tree.unresolved = True, (), None, frozenset()

    def clash(self, ours: str, theirs: str) -> frozenset[str]:
        """The files that both sides changed since they parted."""
        here, there = set(self.tokens(ours)), set(self.tokens(theirs))
        changed = (
            {self.files[one] for one in side if one in self.files}
            for side in (here - there, there - here)
        )
        return frozenset(set.intersection(*changed))

    def is_green(self, commit: str) -> bool:
        broken = False
        for token in self.tokens(commit):
            broken = token in self.red or (broken and token not in self.mending)
        return not broken

    def reachable(self) -> set[int]:
        """The results that somebody can find again: in a tree, on a branch, or kept."""
        tips = {*self.branches.values(), *self.kept, *map(self.head, self.trees.values())}
        found = {token for tip in tips for token in self.tokens(tip)}
        return found.union(*(tree.dirty for tree in self.trees.values()))


class LightWorkspace(Workspace):
    def __init__(self, process: Process, scope: Scope, path: Path) -> None:
        self.scope = scope
        self.path = path
        self._process = process
        self._repo = process.world.repo
        self._tree = self._repo.trees[scope.tree]

    async def state(self) -> TreeState:
        await self._process.pause()
        tree = self._tree
        return TreeState(self._repo.head(tree), tree.attached, tree.is_clean)

    async def commit_all(self, start: str, message: str, keeping: Keeping) -> str:
        await self._process.pause()
        repo, tree = self._repo, self._tree
        assert repo.contains(repo.head(tree), start)
        self._process.ends(self.scope)
        if not tree.is_clean:
            self._process.burn()
            repo.commit_here(tree)
        await self._process.pause()
        return repo.head(tree)

    async def restore(self, to: str, keeping: Keeping) -> tuple[KeptItem, ...]:
        await self._process.pause()
        repo, tree, kept = self._repo, self._tree, list[str]()
        head = repo.head(tree)
        if tree.dirty:
            self._process.burn()
            kept.append(repo.commit((head,), tree.dirty))
            repo.kept.append(kept[-1])
        for tip in (head, repo.branches[tree.branch]):
            if not any(repo.contains(one, tip) for one in (to, *repo.kept)):
                self._process.burn()
                kept.append(tip)
                repo.kept.append(tip)
        self._process.burn()
        repo.check_out(tree, to)
        await self._process.pause()
        return tuple(
            KeptItem(one, self.scope.label, self.scope.tree, "now", keeping.why, one)
            for one in kept
        )

    async def detach(self) -> None:
        self._process.burn()
        self._tree.detached_at, self._tree.attached = self._repo.head(self._tree), False


class LightWorkspaces(WorkspaceProvider):
    def __init__(self, process: Process) -> None:
        self._process = process

    async def check(self, label: Label) -> None:
        return None

    async def open(self, scope: Scope, start: str) -> Workspace:
        await self._process.pause()
        repo = self._process.world.repo
        if scope.tree not in repo.trees:
            self._process.burn()
            repo.trees[scope.tree] = LightTree(scope.branch)
            repo.branches[scope.branch] = start
        return LightWorkspace(self._process, scope, self.folder(scope))

    async def clear(self, scopes: tuple[Scope, ...]) -> tuple[Cleared, ...]:
        raise NotImplementedError

    def folder(self, scope: Scope) -> Path:
        return ROOT / scope.tree


class LightIntegrator(Integrator):
    def __init__(self, process: Process) -> None:
        self._process = process
        self._repo = process.world.repo

    async def merge(
        self, tree: Workspace, start: str, other: str, message: str, keeping: Keeping
    ) -> Merged | Conflict | NothingToMerge:
        await tree.restore(start, keeping)
        if self._repo.contains(start, other):
            return NothingToMerge()
        conflict = await self.begin(tree, other, keeping)
        return conflict if conflict.paths else await self._merged(tree)

    async def begin(self, tree: Workspace, other: str, keeping: Keeping) -> Conflict:
        await self._process.pause()
        repo, here = self._repo, self._of(tree)
        assert here.is_clean
        if repo.contains(repo.head(here), other):
            return Conflict(())
        self._process.burn()
        here.merging, here.unresolved = other, repo.clash(repo.head(here), other)
        return _conflict(here)

    async def conclude(
        self,
        tree: Workspace,
        start: str,
        other: str,
        message: str,
        conflict: Conflict,
        keeping: Keeping,
    ) -> Merged | Conflict | NothingToMerge:
        await self._process.pause()
        repo, here = self._repo, self._of(tree)
        if self._is_merge(here, start, other):
            if here.is_clean:
                return Merged(repo.head(here))
            await self.hold(tree, start, other, repo.head(here))
        elif not self._is_in_merge(here, start, other):
            return await self.merge(tree, start, other, message, keeping)
        return _conflict(here) if here.unresolved else await self._merged(tree)

    async def unresolved(self, tree: Workspace, conflict: Conflict) -> Conflict:
        return _conflict(self._of(tree))

    async def hold(self, tree: Workspace, start: str, other: str, merged: str) -> None:
        await self._process.pause()
        repo, here = self._repo, self._of(tree)
        if here.attached and repo.head(here) == merged:
            self._process.burn()
            old = {*repo.tokens(start), *repo.tokens(other)}
            typed = tuple(one for one in repo.tokens(merged) if one not in old)
            repo.branches[here.branch] = start
            here.merging, here.dirty = other, (*typed, *here.dirty)

    async def _merged(self, tree: Workspace) -> Merged:
        await self._process.pause()
        self._process.burn()
        head = self._repo.commit_here(self._of(tree))
        await self._process.pause()
        return Merged(head)

    def _of(self, tree: Workspace) -> LightTree:
        return self._repo.trees[tree.scope.tree]

    def _is_in_merge(self, tree: LightTree, start: str, other: str) -> bool:
        return tree.attached and (self._repo.head(tree), tree.merging) == (start, other)

    def _is_merge(self, tree: LightTree, start: str, other: str) -> bool:
        parents = self._repo.commits[self._repo.head(tree)].parents
        return tree.attached and parents == (start, other)


def _conflict(tree: LightTree) -> Conflict:
    return Conflict(tuple(ConflictedPath(one, BOTH_CHANGED) for one in sorted(tree.unresolved)))


class LightHistory(History):
    def __init__(self, repo: LightRepository) -> None:
        self._repo = repo

    async def problems(self) -> tuple[AglError, ...]:
        return ()

    async def resolve(self, ref: str) -> str:
        return self._repo.base

    async def tip(self, branch: str) -> str | None:
        return self._repo.branches.get(branch)

    async def checked_out_at(self, branch: str) -> Path | None:
        for name, tree in self._repo.trees.items():
            if tree.attached and tree.branch == branch:
                return ROOT / name
        return None

    async def missing(self, commits: Iterable[str]) -> frozenset[str]:
        return frozenset(commits) - self._repo.commits.keys()

    async def is_ancestor(self, older: str, newer: str) -> bool:
        return self._repo.contains(newer, older)

    async def between(self, older: str, newer: str) -> tuple[str, ...]:
        return (f"{newer} found",)

    async def message(self, commit: str) -> str:
        return ""

    async def files(self, commit: str) -> dict[str, bytes]:
        return {}

    async def patch(self, older: str, newer: str) -> str:
        return ""

    async def uncommitted(self, folder: Path) -> tuple[str, ...]:
        return ()


class LightGuards(Guards):
    def __init__(self, process: Process) -> None:
        self._process = process

    async def read(self, branches: tuple[str, ...]) -> Reading:
        await self._process.pause()
        known = self._process.world.repo.branches
        return Reading({one: known.get(one) for one in branches}, None, "", "", "", "")


class NothingListed(Kept):
    async def items(self, label: Label | None = None) -> tuple[KeptItem, ...]:
        return ()

    async def bring_back(self, item: KeptItem, branch: str) -> None:
        raise NotImplementedError

    async def purge(self, label: Label, older_than: datetime | None) -> tuple[KeptItem, ...]:
        raise NotImplementedError


# Who works in it.


class LightAgent(AgentRunner):
    """Adds its result to the tree, or litter; commits some itself; fails as the stage says."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def capabilities(self, model: ModelId) -> frozenset[Capability]:
        return frozenset(Capability)

    def files(self, model: ModelId) -> tuple[Path, ...]:
        return ()

    async def check_ready(self, model: ModelId) -> str:
        return "a fake"

    async def run(self, task: AgentTask, emit: Callable[[AgentEvent], None]) -> AgentOutcome:
        process, world = self._process, self._process.world
        repo, tree = world.repo, world.repo.trees[task.scope.tree]
        await process.pause()
        kind, words = task.instructions.split("/")[1], task.instructions
        fits = tree.attached and not tree.dirty and (kind == "repair" or tree.is_clean)
        world.must(fits, f"{words} began in a tree that is not clean")
        ran = process.begin_step(task, writes=kind in WRITES)
        if ran.writes:
            repo.put(tree, ran.result)
            process.touch(ran.result, words)
            tree.unresolved = frozenset()
        elif kind == "look" and process.chance(0.5):
            repo.put(tree, -ran.result)
        await process.pause()
        if ran.writes and process.chance(0.3):
            repo.commit_here(tree)
            await process.pause()
        if process.fails(words):
            raise Overloaded("no capacity")
        for tool in task.tools:
            await tool.handler({"result": ran.result})
        await process.pause()
        return AgentOutcome("", "light")


class LightVerifier(Verifier):
    """The gate goes by what is in the tree; any other build is green."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def verify(self, tree: Path, command: str, timeout_s: float, marker: Marker) -> Verdict:
        process, world = self._process, self._process.world
        repo, here = world.repo, world.repo.trees[tree.name]
        head = repo.head(here)
        fits = here.attached and here.is_clean
        world.must(fits, f"{command} ran in a tree that is not clean")
        if command != BUILD:
            ran = process.begin("verify")
            await process.pause()
            return Verdict(passed=True, status=0, tail=str(ran.result))
        world.must(world.is_landing(tree.name), "a build ran, and no landing is at work")
        process.gates.append(head)
        await process.pause()
        if process.fails(f"{BUILD} {len(process.gates)}"):
            raise Overloaded("no disk")
        world.must(repo.head(here) == head, "the tree moved under the gate")
        if repo.is_green(head):
            world.green.add(head)
            return Verdict(passed=True, status=0, tail="")
        return Verdict(passed=False, status=1, tail="red")


class LightTerminal(Terminal):
    """A person who answers all, and resolves the merge in the tree when asked to."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def __aenter__(self) -> Terminal:
        return self

    async def __aexit__(self, *exc: object) -> None:
        return None

    def tell(self, event: Event) -> None:
        return None

    def show(self, view: Callable[[], Screen[object]]) -> None:
        return None

    async def ask(self, view: Callable[[], Screen[object]], *, priority: int = 0) -> Answer:
        process = self._process
        if process.stage.faults == "raised" and process.fails():
            raise NeedsAnswer("nobody is here", questions=(view().title,))
        ran = process.begin("ask")
        await process.pause()
        repo = process.world.repo
        tree = repo.trees.get(ran.scope.tree)
        if ran.key[1].startswith("resolve/") and tree is not None and self._is_held(ran, tree):
            repo.put(tree, ran.result)
            repo.typed.add(ran.result)
            repo.mending.add(ran.result)
            tree.unresolved = frozenset()
        await process.pause()
        return Typed("say", str(ran.result))

    def _is_held(self, ran: Ran, tree: LightTree) -> bool:
        """Whether a merge waits in the tree; a process that died may have left it committed."""
        world = self._process.world
        return tree.merging is not None or world.repo.head(tree) != world.tip(ran.scope)


class MortalStore(Store):
    """The ledger of one process, which may die before any write."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._inner = process.world.store

    def read(self, address: Address) -> Document | None:
        return self._inner.read(address)

    def write(self, address: Address, document: Document) -> None:
        self._process.burn()
        self._inner.write(address, document)
        self._process.world.note(self._process, address, document)

    def remove(self, address: Address) -> None:
        self._process.burn()
        self._inner.remove(address)

    def names(self, folder: Address) -> tuple[str, ...]:
        return self._inner.names(folder)

    def folders(self, folder: Address) -> tuple[str, ...]:
        return self._inner.folders(folder)

    def set_aside(self, address: Address) -> str:
        return self._inner.set_aside(address)

    def remove_folder(self, folder: Address) -> None:
        raise NotImplementedError


class NoLog(EventLog):
    def append(self, run: Address, event: Document) -> None:
        return None

    def read(self, run: Address) -> Iterator[Document]:
        return iter(())
