"""Which landing waits in the tree, by what is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from agl.ports.ledger import Entry, Kind
from agl.sdk._engine.chain import Chain
from agl.sdk._engine.landings import Stage, State, held, open_at, with_stage

NOW = datetime(2030, 1, 1, tzinfo=UTC)
BASE = "base"


def landing(number: int, stages: Sequence[tuple[State, int]], start: str = BASE) -> Entry:
    """A landing with these states, each at its number."""
    begun = Entry(
        kind=Kind.LANDING,
        name="a",
        epoch=1,
        number=number,
        fingerprint=f"f{number}",
        ordinal=0,
        value={"stages": []},
        head_before=start,
        head_after=start,
        started=NOW,
        finished=NOW,
    )
    made = (
        Stage(state, "child", f"{start}+{number}" if state is State.LANDED else start, at=at)
        for state, at in stages
    )
    return with_stage(begun, tuple(made)) if stages else begun


def test_a_landing_waited_from_its_open_stage_to_the_next() -> None:
    entry = landing(2, [(State.CONFLICTED, 3), (State.RELEASED, 5)])
    chain = Chain(BASE, 1, [entry])
    assert [number for number in range(8) if open_at(chain, number) is entry] == [3, 4]


def test_a_landing_that_still_waits_waited_ever_since() -> None:
    entry = landing(2, [(State.REFUSED, 3), (State.CONFLICTED, 6)])
    chain = Chain(BASE, 1, [entry])
    assert [number for number in range(9) if open_at(chain, number) is entry] == [3, 4, 5, 6, 7, 8]


def test_only_an_open_landing_at_the_tip_is_held() -> None:
    waits = landing(2, [(State.CONFLICTED, 3)])
    assert held(Chain(BASE, 1, [waits])) is waits
    gone_on = landing(3, [(State.LANDED, 4)])
    assert held(Chain(BASE, 1, [waits, gone_on])) is None
    for state in (State.ABORTED, State.RELEASED, State.NOTHING):
        settled = landing(2, [(State.CONFLICTED, 3), (state, 4)])
        assert held(Chain(BASE, 1, [settled])) is None
    assert held(Chain(BASE, 1, [landing(2, [])])) is None


def test_the_one_begun_last_is_held() -> None:
    older, newer = (landing(number, [(State.CONFLICTED, number + 1)]) for number in (2, 4))
    assert held(Chain(BASE, 1, [older, newer])) is newer
