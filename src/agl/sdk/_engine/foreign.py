"""Commits on a branch of the run that are not AGL's."""

from __future__ import annotations

from collections.abc import Iterable

from agl.ports.ids import Scope
from agl.ports.ledger import Entry, Kind, Spending
from agl.sdk._engine import landings
from agl.sdk._engine.chain import ON_CHAIN, heads_of
from agl.sdk._engine.state import RunState


def is_waiting(entries: tuple[Entry, ...]) -> bool:
    """Whether a landing in the scope's tree is not settled, so that a person may have resolved and
    committed it."""
    made = _made_in_tree(entries)
    return bool(made) and _is_open(made[-1])


def was_cut_short(
    entries: tuple[Entry, ...], spendings: Iterable[Spending], namespace: str
) -> bool:
    """Whether an attempt of a step of that scope came to no entry after the last one that was made
    in its tree. Answers, records, children's starts and what an epoch took over are not, so they
    say nothing about the tree."""
    recorded = {attempt for entry in entries for attempt in entry.attempts}
    made = _made_in_tree(entries)
    last = made[-1].number if made else 0
    return any(
        one.attempt not in recorded and one.begun > last and one.namespace == namespace
        for one in spendings
    )


async def tell(run: RunState, scope: Scope, tip: str) -> None:
    """Warns of what a person committed on a child's branch: it is no part of the run. `tip` is
    where AGL left the branch."""
    entries = run.recorded.get(scope, ())
    namespace = "/".join(scope.path)
    if is_waiting(entries) or was_cut_short(entries, run.spendings.values(), namespace):
        return
    history = run.services.history
    now = await history.tip(scope.branch)
    if now in {None, *(head for entry in entries for head in heads_of(entry))}:
        return
    assert now is not None
    commits = ", ".join((await history.between(tip, now))[:3]) or now
    text = (
        f"branch {scope.branch!r} has commits that are not AGL's ({commits}) and no part of the"
        f" run; `git branch my-work {now}` makes a branch of them"
    )
    run.emit("warned", scope, text=text)


def _made_in_tree(entries: tuple[Entry, ...]) -> list[Entry]:
    return [
        one
        for one in entries
        if one.kind in ON_CHAIN
        and one.kind is not Kind.CHILD
        and (one.copy_of is None or _is_open(one))
    ]


def _is_open(entry: Entry) -> bool:
    return entry.kind is Kind.LANDING and not landings.is_settled(entry)
