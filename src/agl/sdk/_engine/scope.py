"""One scope at work: its turn, its tree, and what it has recorded."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any, Generic, Literal, TypeVar

from agl.ports.errors import StateError, UpstreamError
from agl.ports.ids import Scope
from agl.ports.ledger import Entry, Kind
from agl.ports.models import Usage
from agl.ports.workspace import Workspace
from agl.schema import Invalid
from agl.sdk._engine import landings
from agl.sdk._engine.chain import Chain
from agl.sdk._engine.leases import Hold, Lease
from agl.sdk._engine.ledger import renumbered
from agl.sdk._engine.state import RunState

T = TypeVar("T")

_asker: ContextVar[asyncio.Task[Any] | None] = ContextVar("asker", default=None)
_given: ContextVar[Mapping[Scope, str]] = ContextVar("given", default=MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Asked:
    """What is looked up: its fingerprint with the digests of its terms. `given`: for a verdict the
    last head that its own task was given, for a landing the child's. `within`: the attempt of a
    step in which it was asked; its repeats are counted anew in each attempt. `onto`: the scope
    whose head a step merges first; `child`: the scope that lands."""

    kind: Kind
    name: str
    fingerprint: str
    terms: Mapping[str, str]
    given: str | None = None
    within: str | None = None
    onto: ScopeState | None = None
    child: ScopeState | None = None


@dataclass(frozen=True, slots=True)
class Served(Generic[T]):
    """A recorded entry with its value as the workflow gets it."""

    entry: Entry
    value: T


class Turn(asyncio.Lock):
    """The turn in one scope's tree; `count` says how often it was taken."""

    count = 0

    async def acquire(self) -> Literal[True]:
        await super().acquire()
        self.count += 1
        return True


class ScopeState:
    """A scope's chain, and the one tree that its steps take turns in."""

    def __init__(self, run: RunState, scope: Scope, base: str, chain: Chain) -> None:
        self.run = run
        self.scope = scope
        self.chain = chain
        self.turn = Turn()
        self.base = base
        self.lease = Lease()
        self.activity: str | None = None
        self.has_no_tree = False
        self._in_doubt: UpstreamError | None = None
        self._workspace: Workspace | None = None
        self._claimed: dict[_Claim, int] = {}
        self._given_back: dict[_Claim, set[int]] = {}
        self._names: dict[str, int] = {}
        self._far: dict[asyncio.Task[Any], int] = {}
        self._far_of_ended = 0
        self._moves: list[tuple[int, asyncio.Task[Any] | None]] = []
        run.scopes[scope] = self
        self._reserve()

    @property
    def given(self) -> str:
        """The last head that the calling task was handed by a step of this scope."""
        return _given.get().get(self.scope, self.base)

    def hand_out(self, head: str) -> None:
        """Notes in the calling task which head it was handed."""
        _given.set(MappingProxyType({**_given.get(), self.scope: head}))
        self.saw(head)

    def saw(self, head: str) -> None:
        """Notes how far along the chain the calling task has seen the tree."""
        task = asyncio.current_task()
        if task is not None:
            far = max(self.chain.position(head), self._far.get(task, 0))
            if task not in self._far:
                task.add_done_callback(self._note_end)
            self._far[task] = far

    def ordinal(self, asked: Asked) -> int:
        """The next free ordinal of what is asked."""
        back = self._given_back.get(_claim(asked))
        return min(back) if back else self._claimed.get(_claim(asked), 0)

    def nth(self, name: str) -> int:
        """Which step of that name the next one is, from 1."""
        return self._names.get(name, 0) + 1

    def recorded(self, asked: Asked, decode: Callable[[object], T]) -> Served[T] | None:
        """The entry of this epoch (for answers and records: of any) that answers, claimed; or None.
        A value that no longer fits is set aside."""
        _asker.set(asyncio.current_task())
        while True:
            entry = self.chain.find(
                asked.kind, asked.fingerprint, self.ordinal(asked), partial(_answers, asked)
            )
            if entry is None or self._is_outdated(asked, entry):
                return None
            value = self._decoded(entry, decode)
            if value is not None:
                self._take(asked)
                return value

    def adopted(self, asked: Asked, decode: Callable[[object], T]) -> Served[T] | None:
        """The entry of an older epoch that starts at the tip, written again under this epoch; or
        None. The caller has the turn, but for a child's start, which moves no tree."""
        while True:
            older = self.chain.adoptable(
                asked.kind,
                asked.name,
                asked.fingerprint,
                self.ordinal(asked),
                partial(self._is_as_now, asked),
            )
            if older is None:
                return None
            if self._decoded(older, decode) is not None:
                number, epoch = self.chain.next_number, self.run.epoch.number
                entry = renumbered(older, epoch=epoch, number=number, given=asked.given)
                if asked.kind is Kind.LANDING:
                    entry = landings.begun_again(entry)
                self._write(entry)
                self._take(asked)
                return Served(entry, decode(entry.value))

    def write(
        self,
        asked: Asked,
        value: object,
        *,
        started: datetime,
        head_before: str,
        head_after: str,
        attempts: tuple[str, ...] = (),
        model: str | None = None,
        usage: Usage | None = None,
        merged: str | None = None,
    ) -> Entry:
        """Records an entry: the commit point of whatever it stands for."""
        entry = Entry(
            kind=asked.kind,
            name=asked.name,
            epoch=self.run.epoch.number,
            number=self.chain.next_number,
            fingerprint=asked.fingerprint,
            ordinal=self.ordinal(asked),
            value=value,
            head_before=head_before,
            head_after=head_after,
            started=started,
            finished=self.run.services.clock.now(),
            attempts=attempts,
            model=model,
            usage=usage or Usage(),
            terms=asked.terms,
            given=asked.given,
            merged=merged,
        )
        self._write(entry)
        self._take(asked)
        self._note_move(entry)
        return entry

    def rewrite(self, landing: Entry) -> None:
        """Records the next state of a landing. Where that fails, nobody knows whether it has landed
        before the ledger is read again, so this process no longer works in the tree."""
        try:
            self.run.ledger.rewrite_landing(self.scope, landing)
        except UpstreamError as error:
            self._in_doubt = error
            raise
        self.chain.replace(landing)
        self._note_move(landing)

    def moved_meanwhile(self, number: int = 0) -> bool:
        """Whether this process moved the tree after that entry, in the calling task or in one that
        has ended and so may have been waited for."""
        now = asyncio.current_task()
        return any(
            moved > number and (task is None or task is now or task.done())
            for moved, task in self._moves
        )

    def give_back(self, asked: Asked, entry: Entry) -> None:
        """Frees the ordinal of an entry that was written and never handed to the workflow, so that
        it is served when its step is asked again."""
        self._given_back.setdefault(_claim(asked), set()).add(entry.ordinal)
        if asked.kind is Kind.STEP:
            self._names[asked.name] -= 1

    @asynccontextmanager
    async def in_turn(self) -> AsyncIterator[None]:
        """The scope's turn for a step or a build."""
        await self.lease.free(self.run.waiting, or_claimed=True)
        async with self.turn:
            yield

    def refuse_if_held(self) -> None:
        """Refuses work in a tree in which a landing waits.

        Raises:
            StateError
        """
        if self.lease.hold is not None:
            raise StateError(
                f"the landing of {self.lease.hold.child!r} waits in the tree of"
                f" {self.scope.tree!r}; retry() or abort() it before anything else runs there"
            )

    async def tree(self) -> Workspace:
        """The scope's worktree, made on first use at the tip.

        Raises:
            UpstreamError: a landing there could not be recorded.
        """
        if self._in_doubt is not None:
            raise UpstreamError(
                f"a landing in {self.scope.tree!r} could not be recorded ({self._in_doubt});"
                f" `agl resume {self.scope.label}` goes on from what is"
            )
        if self._workspace is None:
            self.has_no_tree = True
            self._workspace = await self.run.services.workspaces.open(self.scope, self.chain.tip)
            self.has_no_tree = False
            for text in self._workspace.warnings:
                self.run.emit("warned", self.scope, text=text)
        return self._workspace

    async def bring(self, why: str) -> Workspace:
        """The tree, clean and at the tip; what was in the way is kept. The caller has the turn."""
        tree = await self.tree()
        state = await tree.state()
        if not (state.attached and state.clean and state.head == self.chain.tip):
            await tree.restore(self.chain.tip, self.run.keeping(self.scope, why))
        return tree

    def _reserve(self) -> None:
        """Keeps the tree for a landing that waits in it since an earlier process."""
        entry = landings.held(self.chain)
        if entry is None:
            return
        stages = landings.read(entry)
        released = dataclasses.replace(stages[-1], state=landings.State.RELEASED)

        def release() -> None:
            self.rewrite(landings.with_stage(entry, (*stages, released)))

        self.lease.hold = Hold(entry.number, entry.name, release)

    def _decoded(self, entry: Entry, decode: Callable[[object], T]) -> Served[T] | None:
        try:
            return Served(entry, decode(entry.value))
        except Invalid as error:
            file = self.run.ledger.set_entry_aside(self.scope, entry)
            self.chain.drop(entry)
            self.run.emit("entry_set_aside", self.scope, entry.name, file=file, why=str(error))
            return None

    def _is_outdated(self, asked: Asked, entry: Entry) -> bool:
        """Whether a verdict was made before this process moved the tree, or a landing before it
        moved the child's."""
        if entry.kind is Kind.VERIFY:
            return self.moved_meanwhile(entry.number)
        if asked.child is not None:
            last = landings.read(entry)[-1:]
            tip = asked.child.chain.tip
            return any(one.child != tip for one in last) and asked.child.moved_meanwhile()
        return False

    def _is_as_now(self, asked: Asked, entry: Entry) -> bool:
        """Whether an entry of an older epoch was made of what is there now: a landing of the
        child's present head, a merge of the parent's, a child's start of no less than the calling
        task, or one that has ended, has seen."""
        if asked.child is not None:
            first = landings.read(entry)[:1]
            return any(one.child == asked.child.chain.tip for one in first)
        if entry.merged is not None:
            return asked.onto is not None and asked.onto.chain.tip == entry.merged
        if asked.kind is Kind.CHILD:
            task = asyncio.current_task()
            far = 0 if task is None else self._far.get(task, 0)
            known = max(self.chain.position(self.given), far, self._far_of_ended)
            return self.chain.position(entry.head_before) >= known
        return True

    def _note_end(self, task: asyncio.Task[Any]) -> None:
        self._far_of_ended = max(self._far_of_ended, self._far.pop(task))

    def _note_move(self, entry: Entry) -> None:
        if entry.head_after != entry.head_before:
            self._moves.append((entry.number, _asker.get()))

    def _write(self, entry: Entry) -> None:
        try:
            self.run.ledger.write_entry(self.scope, entry)
        except UpstreamError:
            # It may be there all the same: its number is not used again.
            self.chain.skip(entry.number)
            raise
        self.chain.add(entry)

    def _take(self, asked: Asked) -> None:
        claim, ordinal = _claim(asked), self.ordinal(asked)
        self._given_back.get(claim, set()).discard(ordinal)
        self._claimed[claim] = max(ordinal + 1, self._claimed.get(claim, 0))
        if asked.kind is Kind.STEP:
            self._names[asked.name] = self.nth(asked.name)


def _answers(asked: Asked, entry: Entry) -> bool:
    """Whether an entry of the live chain, found by its fingerprint, answers in all else."""
    if asked.kind in (Kind.VERIFY, Kind.LANDING):
        return entry.given == asked.given
    if entry.merged is not None:
        return asked.onto is not None and asked.onto.chain.holds(entry.merged)
    return True


_Claim = tuple[Kind, str, str | None, str | None]


def _claim(asked: Asked) -> _Claim:
    return asked.kind, asked.fingerprint, asked.given, asked.within
