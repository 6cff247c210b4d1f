"""What the ledger holds of a landing: the states that it went through, in order."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from enum import Enum

from agl import schema
from agl.ports.integrator import Conflict
from agl.ports.ledger import Entry, Kind
from agl.ports.verifier import Verdict
from agl.sdk._engine.chain import Chain


class State(Enum):
    """Where a landing stood after it was begun, tried again, or given up. Stored text."""

    LANDED = "landed"
    NOTHING = "nothing"
    CONFLICTED = "conflicted"
    REFUSED = "refused"
    ABORTED = "aborted"
    RELEASED = "released"

    @property
    def is_open(self) -> bool:
        """Whether the parent's tree is held."""
        return self in (State.CONFLICTED, State.REFUSED)


@dataclass(frozen=True, slots=True)
class Stage:
    """One state, with the child's head that it is about. `head`: where the parent then was; `at`:
    the parent's next number when it came; `released`: another landing needed the parent, and the
    hold gave way."""

    state: State
    child: str
    head: str
    conflict: Conflict = field(default_factory=lambda: Conflict(()))
    verdict: Verdict | None = None
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Stages:
    """The value of a landing's entry. None yet: it was begun, and nothing is known of it."""

    stages: tuple[Stage, ...] = ()


def stages_of(value: object) -> tuple[Stage, ...]:
    """Raises schema.Invalid when the value is not that of a landing."""
    return schema.validate(Stages, value).stages


def with_stage(entry: Entry, stages: tuple[Stage, ...]) -> Entry:
    """The landing's entry with all its stages, as it is to be written."""
    value = schema.to_json(Stages, Stages(stages))
    return dataclasses.replace(entry, value=value, head_after=stages[-1].head)


def read(entry: Entry) -> tuple[Stage, ...]:
    """The stages, none where they cannot be read."""
    try:
        return stages_of(entry.value)
    except schema.Invalid:
        return ()


def is_settled(entry: Entry) -> bool:
    """Whether the parent's tree is no longer in the middle of it."""
    stages = read(entry)
    return bool(stages) and not stages[-1].state.is_open


def begun_again(entry: Entry) -> Entry:
    """The copy for a new epoch: with what the landing came to at first. What followed is taken over
    when it is asked for."""
    return with_stage(entry, read(entry)[:1])


def has_landed(parent: Chain, namespace: str, head: str) -> bool:
    """Whether the parent's live chain holds this head of the child."""
    return any(
        stage.child == head and stage.state in (State.LANDED, State.NOTHING)
        for entry in parent.live
        if entry.kind is Kind.LANDING and entry.name == namespace
        for stage in read(entry)
    )


def open_at(chain: Chain, number: int) -> Entry | None:
    """The landing that waited in the tree when that number was given to an entry, or None."""
    for entry in chain.live:
        if entry.kind is not Kind.LANDING:
            continue
        stages = read(entry)
        for stage, after in zip(stages, (*stages[1:], None), strict=True):
            if stage.state.is_open and stage.at <= number and (after is None or number < after.at):
                return entry
    return None


def held(chain: Chain) -> Entry | None:
    """The landing that waits in the tree by what is recorded, or None."""
    for entry in reversed(chain.live):
        if entry.kind is Kind.LANDING and entry.head_before == chain.tip:
            stages = read(entry)
            if stages and stages[-1].state.is_open:
                return entry
    return None
