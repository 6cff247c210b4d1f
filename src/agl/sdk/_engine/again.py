"""`--again`: from where on what is recorded is out of use."""

from __future__ import annotations

from agl.ports.errors import InputError, NotFoundError
from agl.ports.ledger import Entry, Kind
from agl.sdk._engine import fingerprints
from agl.sdk._engine.scope import ScopeState


def find_cut(scope: ScopeState, again: str) -> tuple[str, int, int, bool]:
    """Name, n and first number of a cut, and whether it is of answers and records alone."""
    name, _, count = again.rpartition("#")
    if not (name and count.isdecimal()):
        name, count = again, "1"
    nth = int(count)
    if nth == 0:
        raise InputError(f"--again {again!r}: after # stands a number from 1, as in {name}#1")
    cut_from = scope.chain.cut_from(name, nth)
    if cut_from is not None:
        return name, nth, cut_from, False
    cut_from = scope.chain.forget_from(name, nth)
    if cut_from is not None:
        return name, nth, cut_from, True
    raise NotFoundError(
        f"no step {again!r} is recorded in run {scope.scope.label!r};"
        f" `agl show {scope.scope.label}` lists them"
    )


def write_cut(scope: ScopeState, name: str, nth: int, cut_from: int, forgets: bool) -> None:
    terms = {"step": fingerprints.digest(name), "nth": fingerprints.digest(nth)}
    now, tip = scope.run.services.clock.now(), scope.chain.tip
    entry = Entry(
        kind=Kind.CUT,
        name=name,
        epoch=scope.run.epoch.number,
        number=scope.chain.next_number,
        fingerprint=fingerprints.fingerprint(Kind.CUT.value, terms),
        ordinal=nth - 1,
        value={"step": name, "nth": nth, "forgets": forgets},
        head_before=tip,
        head_after=tip,
        started=now,
        finished=now,
        terms=terms,
        cut_from=cut_from,
    )
    scope.run.ledger.write_entry(scope.scope, entry)
    scope.chain.add(entry)
    text = f"{name!r} is asked again" if forgets else f"from {name}#{nth} on, all runs again"
    scope.run.emit("warned", scope.scope, name, text=text)
