"""Where a run's steps go: its own scope, and children that begin when they are first used."""

from __future__ import annotations

import asyncio

from agl import schema
from agl.ports.errors import InputError
from agl.ports.ids import Namespace, Scope, collision_key
from agl.ports.ledger import Entry, Kind
from agl.sdk._engine import fingerprints, foreign
from agl.sdk._engine.chain import Chain
from agl.sdk._engine.scope import Asked, ScopeState
from agl.sdk._engine.state import RunState

_MAX_TREE_BYTES = 200


class Place:
    """A scope of a run in this process. A child has no state before its first awaited call."""

    def __init__(self, run: RunState, scope: Scope, parent: Place | None, base: str | None) -> None:
        self.run = run
        self.scope = scope
        self.parent = parent
        self._base = base
        self._state: ScopeState | None = None
        self._beginning = asyncio.Lock()
        self._children: dict[str, Place] = {}

    @classmethod
    def of(cls, state: ScopeState) -> Place:
        """The run's own scope."""
        place = cls(state.run, state.scope, None, None)
        place._state = state
        return place

    @property
    def begun(self) -> ScopeState:
        """The scope's state.

        Raises:
            InputError: nothing of the child was awaited yet.
        """
        if self._state is None:
            raise InputError(
                f"child {self.scope.tree!r} has not begun; it starts with its first awaited call"
            )
        return self._state

    def child(self, namespace: str, base: str | None) -> Place:
        """The child of that name; the same one each time.

        Raises:
            InputError: the name is wrong, or taken by another child.
        """
        name = Namespace(namespace)
        scope = self.scope.child(name)
        if len(scope.tree.encode()) > _MAX_TREE_BYTES:
            raise InputError(
                f"child {scope.tree!r} has too long a name for a folder; use at most"
                f" {_MAX_TREE_BYTES} bytes for all namespaces together"
            )
        known = self._children.setdefault(collision_key(name), Place(self.run, scope, self, base))
        if known.scope != scope:
            raise InputError(
                f"namespace {namespace!r} is the same name as {known.scope.path[-1]!r}; choose"
                " another one"
            )
        if base is not None and known._base != base:
            raise InputError(
                f"child {namespace!r} was asked for with base {known._base!r} before; a child has"
                " one base"
            )
        return known

    async def state(self) -> ScopeState:
        """The scope's state; a child begins now, at its parent's head or at its base."""
        if self._state is not None:
            return self._state
        async with self._beginning:
            if self._state is None:
                self._state = await self._begin()
        return self._state

    async def _begin(self) -> ScopeState:
        assert self.parent is not None
        run, parent = self.run, await self.parent.state()
        name = self.scope.path[-1]
        terms = {
            "namespace": fingerprints.digest(str(name)),
            "base": fingerprints.digest(self._base),
        }
        print_ = fingerprints.fingerprint(Kind.CHILD.value, terms)
        asked = Asked(Kind.CHILD, name, print_, terms)

        def decode(value: object) -> str:
            return _start_of(value, run.gone)

        served = parent.recorded(asked, decode) or parent.adopted(asked, decode)
        if served is None:
            start = None if self._base is None else await run.services.history.resolve(self._base)
            tip, now = parent.chain.tip, run.services.clock.now()
            start = start or tip
            parent.write(asked, {"start": start}, started=now, head_before=tip, head_after=tip)
        else:
            start = served.value
        run.emit("child_started", self.scope, name, start=start, replayed=served is not None)
        entries = run.recorded.get(self.scope, ())
        gone = run.gone | _merged_from_elsewhere(entries, parent)
        chain = Chain(start, run.epoch.number, entries, gone)
        if entries:
            await foreign.tell(run, self.scope, chain.tip)
        return ScopeState(run, self.scope, start, chain)


def _merged_from_elsewhere(entries: tuple[Entry, ...], parent: ScopeState) -> frozenset[str]:
    """The commits of this epoch that hold a head of the parent that is off the parent's chain."""
    return frozenset(
        one.head_after
        for one in entries
        if one.merged is not None
        and one.epoch == parent.run.epoch.number
        and one.head_after != one.head_before
        and not parent.chain.holds(one.merged)
    )


def _start_of(value: object, gone: frozenset[str]) -> str:
    match value:
        case {"start": str(start)} if start not in gone:
            return start
    raise schema.Invalid((f"{value!r} is not where a child starts",))
