"""What the scopes of one run share."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agl.ports.errors import AglError, InputError
from agl.ports.events import Emit, Event, event_to_json
from agl.ports.ids import Scope
from agl.ports.ledger import Entry, Epoch, Spending
from agl.ports.models import Usage
from agl.ports.processes import Marker
from agl.ports.stopping import is_asked_to_stop
from agl.ports.workspace import Keeping, KeptItem
from agl.sdk._engine.leases import Waiting
from agl.sdk._engine.ledger import Ledger
from agl.sdk._engine.patience import Patience
from agl.sdk._engine.services import Services
from agl.sdk._engine.source import digest_of, digests_of
from agl.sdk.roles import files_taken_in

if TYPE_CHECKING:
    from agl.sdk._engine.scope import ScopeState


@dataclass(slots=True)
class RunState:
    """One run in this process: its epoch, the answers given beforehand, who listens, and counts.
    `recorded` are the entries that were found of each scope, `gone` the commits of theirs that the
    repository no longer holds."""

    services: Services
    root: Scope
    ledger: Ledger
    epoch: Epoch
    answers: Mapping[str, str]
    emit_to: Emit | None = None
    max_wait_s: float = 0.0
    scopes: dict[Scope, ScopeState] = field(default_factory=dict)
    spendings: dict[str, Spending] = field(default_factory=dict)
    tries: dict[tuple[str, str, int], int] = field(default_factory=dict)
    answers_taken: set[str] = field(default_factory=set)
    answers_used: set[tuple[Scope, str]] = field(default_factory=set)
    open_questions: list[str] = field(default_factory=list)
    failed_in: list[tuple[AglError, str]] = field(default_factory=list)
    lacks: set[str] = field(default_factory=set)
    kept: list[KeptItem] = field(default_factory=list)
    replayed: int = 0
    ran: int = 0
    nothing_needed: str | None = None
    recorded: dict[Scope, tuple[Entry, ...]] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()
    at_work: list[list[str]] = field(default_factory=list)
    calls: list[asyncio.Task[Any]] = field(default_factory=list)
    has_ended: bool = False
    waiting: Waiting = field(init=False)
    patience: Patience = field(init=False)

    def __post_init__(self) -> None:
        self.waiting = Waiting(lambda: len(self.calls))
        self.patience = Patience(self.services.clock, self.max_wait_s, self.root.label)

    @property
    def marker(self) -> Marker:
        return run_marker(self.services, self.root)

    @property
    def usage(self) -> Usage:
        """What all attempts of the run used, those of dead processes included."""
        return sum((one.usage for one in self.spendings.values()), Usage())

    def load_spendings(self, spendings: Iterable[Spending], entries: Iterable[Entry]) -> None:
        """Takes over what attempts of dead processes used; those that no entry holds count as tries
        at the step that they were at."""
        recorded = {attempt for entry in entries for attempt in entry.attempts}
        for one in spendings:
            self.spendings[one.attempt] = one
            if one.attempt not in recorded:
                self.next_try(one.namespace, one.step, one.nth)

    def next_try(self, namespace: str, step: str, nth: int) -> int:
        """Counts one more attempt at a step, and says which it is, from 1."""
        key = (namespace, step, nth)
        self.tries[key] = self.tries.get(key, 0) + 1
        return self.tries[key]

    @contextmanager
    def working(self, step: str) -> Iterator[list[str]]:
        """A step at work; the names of all that are meanwhile, its own first, however short."""
        names = [step, *(others[0] for others in self.at_work)]
        for others in self.at_work:
            others.append(step)
        self.at_work.append(names)
        try:
            yield names
        finally:
            self.at_work = [others for others in self.at_work if others is not names]

    @contextmanager
    def call(self) -> Iterator[None]:
        """One call of the workflow on its run.

        Raises:
            InputError: the workflow has ended.
            CancelledError: AGL is being stopped.
        """
        if self.has_ended:
            raise InputError("the workflow has ended; await every task that it starts")
        task = asyncio.current_task()
        assert task is not None
        if is_asked_to_stop():
            # The task's cancellation came while what could not be left halfway was ended, and the
            # failure that came before it was handled. (`Task.cancelling` does not tell: a TaskGroup
            # of Python 3.11 leaves it raised.)
            raise asyncio.CancelledError
        self.calls.append(task)
        try:
            yield
        finally:
            self.calls.remove(task)

    async def end_calls(self) -> bool:
        """Lets no further call begin, and stops those that still go on; whether there were any."""
        self.has_ended = True
        left = set(self.calls)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)
        return bool(left)

    def emit(self, kind: str, scope: Scope, about: str = "", **details: object) -> None:
        event = Event(kind, self.services.clock.now(), "/".join(scope.path), about, details)
        self.services.log.append(self.ledger.folder, event_to_json(event))
        self.services.terminal.tell(event)
        if self.emit_to is not None:
            self.emit_to(event)

    def keeping(self, scope: Scope, why: str) -> Keeping:
        """Under what is kept in a scope's tree; what is, is told."""

        def tell(item: KeptItem) -> None:
            self.kept.append(item)
            self.emit("kept", scope, item.name, why=item.why)

        return Keeping(scope, why, tell)

    def take_in(self, files: tuple[Path, ...]) -> tuple[str, ...]:
        """Adds outside files to the source of this epoch, in writing, before anything is made of
        them; returns the digests of `files` as this epoch knows them."""
        known = dict(self.epoch.files)
        for file in (*files_taken_in(), *(str(one) for one in files)):
            if file not in known:
                known[file] = files_taken_in().get(file) or digest_of(Path(file))
        if len(known) > len(self.epoch.files):
            self.epoch = dataclasses.replace(self.epoch, files=known)
            self.ledger.write_epoch(self.epoch)
        return tuple(known[str(file)] for file in files)


def run_marker(services: Services, run: Scope) -> Marker:
    """What the processes of a run carry, in this process and in the next one that resumes it."""
    return Marker(f"{services.marker_root}/{run.label}")


def next_epoch(ledger: Ledger, source: str, services: Services) -> tuple[Epoch, tuple[str, ...]]:
    """The epoch to go on in, and what changed since the last one: `the workflow`, outside files.
    One in which something changed is new, and not written yet."""
    epochs = ledger.epochs()
    if not epochs:
        return Epoch(1, source, {}, services.clock.now()), ("the workflow",)
    last = epochs[-1]
    now = digests_of(last.files)
    changed = [] if last.source == source else ["the workflow"]
    changed += [file for file, digest in now.items() if digest != last.files[file]]
    if not changed:
        return last, ()
    return Epoch(last.number + 1, source, now, services.clock.now()), tuple(changed)
