"""Landing: a child's head merged into its parent's tree, built, and recorded."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from agl.ports.errors import StateError
from agl.ports.integrator import Conflict, Merged, NothingToMerge
from agl.ports.ledger import Entry, Kind
from agl.ports.verifier import Verdict
from agl.ports.workspace import Keeping
from agl.sdk._engine import fingerprints
from agl.sdk._engine.landings import Stage, State, read, stages_of, with_stage
from agl.sdk._engine.leases import HeldHere, Hold
from agl.sdk._engine.reports import refuse_in_tool
from agl.sdk._engine.scope import Asked, ScopeState


class LandingAtWork:
    """One landing, from `integrate` until it is settled. It goes through stages, each recorded; a
    resume serves them one by one, as the workflow asks for them."""

    def __init__(self, parent: ScopeState, child: ScopeState) -> None:
        self._parent = parent
        self._child = child
        self._run = parent.run
        self._name = child.scope.path[-1]
        self._entry: Entry
        self._stages: tuple[Stage, ...] = ()
        self._served = 0
        self._hold: Hold | None = None
        self._is_given_up = False
        self._at_work: str | None = None

    @property
    def last(self) -> Stage:
        """The stage that the workflow has seen last."""
        return self._stages[self._served - 1]

    @property
    def last_seen(self) -> tuple[Stage, ...]:
        """The stages that the workflow has seen."""
        return self._stages[: self._served]

    @property
    def is_open(self) -> bool:
        """Whether the workflow has still to retry or abort."""
        return self.last.state.is_open and not self._is_given_up

    async def begin(self) -> None:
        """Merges and builds, or serves what came of it."""
        self._refuse_in_tool("integrate")
        asked = self._asked()
        served = self._parent.recorded(asked, stages_of)
        if served is not None:
            if served.value:
                self._serve_first(served.entry, served.value)
                return
            self._parent.give_back(asked, served.entry)
        async with self._turn():
            parent = self._parent
            served = parent.recorded(asked, stages_of) or parent.adopted(asked, stages_of)
            if served is not None and served.value:
                self._serve_first(served.entry, served.value)
                return
            if served is not None and served.entry.head_before != parent.chain.tip:
                # The parent went on since this landing was begun, so it begins anew.
                parent.give_back(asked, served.entry)
                served = None
            self._entry = self._intent(asked) if served is None else served.entry
            seen, self._stages, self._served = self.last_seen, (), 0
            try:
                await self._land()
            except BaseException:
                self._let_go()
                parent.give_back(asked, self._entry)
                if not self._stages:
                    self._stages, self._served = seen, len(seen)
                raise

    async def retry(self) -> None:
        """Concludes what was resolved in the tree, or merges what the child has now, and builds."""
        with self._alone("retry"):
            await self._retry()

    async def abort(self) -> None:
        """Gives the landing up; what was typed in the tree is kept. One that is recorded to have
        landed has landed."""
        with self._alone("abort"):
            await self._abort()

    async def _retry(self) -> None:
        following = self._following()
        if following is not None and following.state is not State.ABORTED:
            self._serve_next()
            if following.state is State.RELEASED:
                await self.begin()
            return
        if self._hold is None:
            await self.begin()
            return
        self._hold.task = asyncio.current_task()
        try:
            async with self._parent.turn:
                await self._conclude()
        except BaseException:
            self._let_go()
            raise

    async def _abort(self) -> None:
        while self._following() is not None:
            self._serve_next()
        if not self.is_open:
            return
        try:
            if self._hold is not None:
                self._hold.task = asyncio.current_task()
                async with self._parent.turn:
                    await self._take_back()
            self._note(State.ABORTED, self.last.child)
        finally:
            self._let_go()

    def _asked(self) -> Asked:
        terms = {"namespace": fingerprints.digest(str(self._name))}
        print_ = fingerprints.fingerprint(Kind.LANDING.value, terms)
        given, child = self._child.given, self._child
        return Asked(Kind.LANDING, self._name, print_, terms, given=given, child=child)

    def _intent(self, asked: Asked) -> Entry:
        tip, now = self._parent.chain.tip, self._run.services.clock.now()
        return self._parent.write(
            asked, {"stages": []}, started=now, head_before=tip, head_after=tip
        )

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        lease = self._parent.lease
        hold = lease.hold
        if hold is not None and hold.task is None and hold.child == self._name:
            # Held since an earlier process, and now asked for in another way.
            lease.give_way(hold)
        try:
            async with lease.taken(self._run.waiting), self._parent.turn:
                yield
        except HeldHere as error:
            raise StateError(
                f"{self._name!r} cannot land while the same task holds the landing of"
                f" {error.hold.child!r}; retry() or abort() that one first"
            ) from error

    def _serve_first(self, entry: Entry, stages: tuple[Stage, ...]) -> None:
        self._entry, self._stages, self._served = entry, stages, 0
        self._serve_next()

    def _serve_next(self) -> None:
        self._served += 1
        last = self.last
        self._run.emit("landing_replayed", self._parent.scope, self._name, result=last.state.value)
        if last.state.is_open:
            if self._served == len(self._stages):
                self._take_hold()
        else:
            self._settle()

    def _following(self) -> Stage | None:
        """The next recorded stage, if it was made of what the child has now."""
        if self._served == len(self._stages) and self._hold is not None:
            self._take_over_older()
        if self._served == len(self._stages):
            return None
        stage, chain = self._stages[self._served], self._child.chain
        was_then = chain.holds(stage.child) and not self._child.moved_meanwhile()
        return stage if stage.child == chain.tip or was_then else None

    def _take_over_older(self) -> None:
        """Writes down what came next of the landing of an older epoch that this one repeats."""
        known = {one.number: one for one in self._parent.chain.entries}
        older = known.get(self._entry.copy_of or 0)
        while older is not None and len(read(older)) == self._served:
            older = known.get(older.copy_of or 0)
        stages = read(older) if older is not None else ()
        if stages[: self._served] != self._stages or len(stages) == self._served:
            return
        stage = stages[self._served]
        settles = stage.state in (State.LANDED, State.NOTHING)
        if settles and stage.child == self._child.chain.tip and stage.head not in self._run.gone:
            self._write(stage)

    def _take_hold(self) -> None:
        lease = self._parent.lease
        if self._entry.head_before != self._parent.chain.tip:
            return
        if lease.hold is None:
            lease.hold = Hold(self._entry.number, self._name, self._release)
        if lease.hold.number == self._entry.number:
            self._hold = lease.hold
            self._hold.release = self._release
            self._hold.task = asyncio.current_task()

    def _release(self) -> None:
        """Gives way to another landing; the next `retry` begins again."""
        self._hold = None
        self._write(Stage(State.RELEASED, self.last.child, self._entry.head_before))
        self._run.emit("landing_released", self._parent.scope, self._name)

    def _settle(self) -> None:
        self._parent.lease.settle(self._hold)
        self._hold = None
        self._parent.hand_out(self.last.head)

    def _let_go(self) -> None:
        self._parent.lease.settle(self._hold)
        self._hold = None
        self._is_given_up = True

    async def _land(self) -> None:
        head = self._child.chain.tip
        self._run.emit("landing_started", self._parent.scope, self._name, child=head)
        await self._arrived(await self._merged(head), head)

    async def _conclude(self) -> None:
        head = self._child.chain.tip
        self._run.emit("landing_started", self._parent.scope, self._name, child=head)
        if head != self.last.child:
            await self._arrived(await self._merged(head), head)
            return
        result = await self._run.services.integrator.conclude(
            await self._parent.tree(),
            self._entry.head_before,
            head,
            self._message,
            self.last.conflict,
            self._keeping,
        )
        await self._arrived(result, head)

    async def _merged(self, head: str) -> Merged | Conflict | NothingToMerge:
        return await self._run.services.integrator.merge(
            await self._parent.tree(),
            self._entry.head_before,
            head,
            self._message,
            self._keeping,
        )

    async def _take_back(self) -> None:
        tree = await self._parent.tree()
        why = f"the landing of {self._name!r} was given up"
        keeping = self._run.keeping(self._parent.scope, why)
        await tree.restore(self._entry.head_before, keeping)

    async def _arrived(self, result: Merged | Conflict | NothingToMerge, head: str) -> None:
        match result:
            case NothingToMerge():
                self._note(State.NOTHING, head)
            case Conflict():
                self._note(State.CONFLICTED, head, conflict=result)
            case Merged(merged, warnings):
                for text in warnings:
                    self._run.emit("warned", self._parent.scope, self._name, text=text)
                verdict = await self._gate()
                if verdict is None or verdict.passed:
                    self._note(State.LANDED, head, at=merged, verdict=verdict)
                else:
                    tree = await self._parent.tree()
                    why = f"left by the build of {self._name!r}"
                    await tree.restore(merged, self._run.keeping(self._parent.scope, why))
                    self._note(State.REFUSED, head, verdict=verdict)
                    start = self._entry.head_before
                    await self._run.services.integrator.hold(tree, start, head, merged)

    async def _gate(self) -> Verdict | None:
        services = self._run.services
        if services.build is None:
            return None
        return await services.verifier.verify(
            (await self._parent.tree()).path,
            services.build,
            services.build_timeout_s,
            self._run.marker,
        )

    def _note(
        self,
        state: State,
        child: str,
        *,
        at: str | None = None,
        conflict: Conflict | None = None,
        verdict: Verdict | None = None,
    ) -> None:
        """Records the next stage, and what follows from it."""
        stage = Stage(
            state, child, at or self._entry.head_before, conflict or Conflict(()), verdict
        )
        self._write(stage)
        self._served = len(self._stages)
        details: dict[str, object] = {"head": stage.head}
        if conflict is not None:
            details["paths"] = [f"{one.path} ({one.kind})" for one in conflict.paths]
        if verdict is not None:
            details |= {"status": verdict.status, "note": verdict.note}
        self._run.emit(_EVENTS[state], self._parent.scope, self._name, **details)
        if state.is_open:
            self._take_hold()
        else:
            self._settle()

    def _write(self, stage: Stage) -> None:
        stage = dataclasses.replace(stage, at=self._parent.chain.next_number)
        self._stages = (*self._stages, stage)
        self._entry = with_stage(self._entry, self._stages)
        self._parent.rewrite(self._entry)

    def _refuse_in_tool(self, verb: str) -> None:
        for scope in (self._parent.scope, self._child.scope):
            refuse_in_tool(scope, f"{verb}() of {self._name!r}")

    @contextmanager
    def _alone(self, verb: str) -> Iterator[None]:
        """A call on a landing that is open, while no other one is at work on it."""
        self._refuse_in_tool(verb)
        if self._at_work is not None:
            raise StateError(
                f"{verb}() of the landing of {self._name!r} was called while {self._at_work}() of"
                " it is at work; await that one first"
            )
        if not self.is_open:
            raise StateError(
                f"the landing of {self._name!r} is settled: {self.last.state.value}; {verb}() is"
                " for one that is conflicted"
            )
        self._at_work = verb
        try:
            yield
        finally:
            self._at_work = None

    @property
    def _message(self) -> str:
        return f"Land {'/'.join(self._child.scope.path)} on {self._parent.scope.branch}"

    @property
    def _keeping(self) -> Keeping:
        return self._run.keeping(self._parent.scope, f"in the way of landing {self._name!r}")


_EVENTS = {
    State.LANDED: "landed",
    State.NOTHING: "landed_nothing",
    State.CONFLICTED: "landing_conflicted",
    State.REFUSED: "landing_refused",
    State.ABORTED: "landing_aborted",
}
