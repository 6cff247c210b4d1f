"""`--again`: from where on what is recorded is out of use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from agl.ports.errors import InputError, NotFoundError
from agl.ports.ids import Scope
from agl.ports.ledger import Entry, Kind
from agl.sdk._engine import fingerprints, landings
from agl.sdk._engine.chain import NAMED, Chain, called
from agl.sdk._engine.state import RunState


@dataclass(frozen=True, slots=True)
class Cut:
    """What one scope is to forget. `name` and `nth` say what runs again; with `forgets` that is a
    question or a record, and it alone."""

    scope: Scope
    name: str
    nth: int
    cut_from: int
    forgets: bool = False


def find_cuts(run: RunState, base: str, again: str) -> tuple[Cut, ...]:
    """The cut that `[NAMESPACE/]NAME[#n]` asks for; before it one in each scope above that a
    landing carried it on to, after it those in the scopes below. `base` is where the run began.

    Raises:
        InputError, NotFoundError
    """
    path, count = _counted(again)
    if count == 0:
        raise InputError(f"--again {again!r}: after # stands a number from 1, as in {path}#1")
    for scope in sorted(run.recorded, key=lambda one: -len(one.path)):
        prefix = "".join(f"{name}/" for name in scope.path)
        if not path.startswith(prefix):
            continue
        name = path.removeprefix(prefix)
        cut = _cut(run, base, scope, name, count)
        if cut is not None and cut.forgets:
            return (*_settled_by(run, base, cut), cut)
        if cut is not None:
            carried = _carried_on(run, base, cut)
            below = [*_below(run, base, cut, all_children=True)]
            for upper in carried:
                below += _below(run, base, upper, all_children=False)
            return (*reversed(carried), cut, *below)
    raise NotFoundError(
        f"no step {again!r} is recorded in run {run.root.label!r};"
        f" `agl show {run.root.label}` lists them"
    )


def write_cut(run: RunState, cut: Cut) -> None:
    entries = run.recorded.get(cut.scope, ())
    terms = {"step": fingerprints.digest(cut.name), "nth": fingerprints.digest(cut.nth)}
    now, head = run.services.clock.now(), entries[-1].head_after
    entry = Entry(
        kind=Kind.CUT,
        name=cut.name,
        epoch=run.epoch.number,
        number=entries[-1].number + 1,
        fingerprint=fingerprints.fingerprint(Kind.CUT.value, terms),
        ordinal=cut.nth - 1,
        value={"step": cut.name, "nth": cut.nth, "forgets": cut.forgets},
        head_before=head,
        head_after=head,
        started=now,
        finished=now,
        terms=terms,
        cut_from=cut.cut_from,
    )
    run.ledger.write_entry(cut.scope, entry)
    run.recorded[cut.scope] = (*entries, entry)
    text = f"from {cut.name}#{cut.nth} on, all runs again"
    if cut.forgets:
        text = f"{cut.name!r} is asked again"
    run.emit("warned", cut.scope, cut.name, text=text)


def _counted(again: str) -> tuple[str, int]:
    name, _, count = again.rpartition("#")
    return (name, int(count)) if name and count.isdecimal() else (again, 1)


def _cut(run: RunState, base: str, scope: Scope, name: str, nth: int) -> Cut | None:
    chain = _chain(run, base, scope, run.epoch.number)
    cut_from = chain.cut_from(name, nth)
    if cut_from is not None:
        return Cut(scope, name, nth, cut_from)
    cut_from = chain.forget_from(name, nth)
    return None if cut_from is None else Cut(scope, name, nth, cut_from, forgets=True)


def _settled_by(run: RunState, base: str, cut: Cut) -> tuple[Cut, ...]:
    """The cut of the landing that waited when the question was asked: it is made again, so that
    what is asked about is there."""
    chain = _chain(run, base, cut.scope, run.epoch.number)
    entry = landings.open_at(chain, cut.cut_from)
    if entry is None:
        return ()
    alike = [one for one in chain.live if (one.kind, one.name) == (entry.kind, entry.name)]
    found = _cut(run, base, cut.scope, f"{entry.name}/", alike.index(entry) + 1)
    return () if found is None else (found,)


def _below(run: RunState, base: str, cut: Cut, *, all_children: bool) -> Iterator[Cut]:
    """The cuts in the scopes below, from what began there once the step was recorded: of all
    children, which may have been told what it said, or of those that began behind it."""
    if cut.forgets:
        return
    epoch = max(one.epoch for one in run.recorded[cut.scope])
    chain = _chain(run, base, cut.scope, epoch)
    at = chain.cut_from(cut.name, cut.nth)
    behind = [one for one in chain.live if at is not None and one.number >= at]
    begun, depth = {one.name for one in behind if one.kind is Kind.CHILD}, len(cut.scope.path)
    for scope in run.recorded if behind else ():
        if len(scope.path) == depth or scope.path[:depth] != cut.scope.path:
            continue
        is_behind = scope.path[depth] in begun
        if not (is_behind or all_children):
            continue
        names: Counter[str] = Counter()
        for entry in _chain(run, base, scope, epoch).live:
            name = called(entry.kind, entry.name)
            names[name] += entry.kind in NAMED
            if entry.kind in NAMED and (is_behind or entry.started >= behind[0].finished):
                found = _cut(run, base, scope, name, names[name])
                if found is not None:
                    yield found
                break


def _carried_on(run: RunState, base: str, cut: Cut) -> tuple[Cut, ...]:
    """The cut in the parent from the first landing that held what is cut off, and so on upwards."""
    if cut.forgets or not cut.scope.path:
        return ()
    scope, parent = cut.scope, cut.scope.parent
    epoch = max(one.epoch for one in run.recorded[scope])
    chain = _chain(run, base, scope, epoch)
    at = chain.cut_from(cut.name, cut.nth) or cut.cut_from
    before = {chain.base, *(one.head_after for one in chain.live if one.number < at)}
    name, nth = f"{scope.path[-1]}/", 0
    for entry in _chain(run, base, parent, epoch).live:
        if entry.kind is Kind.LANDING and entry.name == scope.path[-1]:
            nth += 1
            last = landings.read(entry)[-1:]
            if any(one.child not in before for one in last):
                upper = _cut(run, base, parent, name, nth)
                return () if upper is None else (upper, *_carried_on(run, base, upper))
    return ()


def _chain(run: RunState, base: str, scope: Scope, epoch: int) -> Chain:
    """The scope's chain as it stands recorded for that epoch."""
    entries = run.recorded.get(scope, ())
    if scope.path:
        begun = [
            one
            for one in run.recorded.get(scope.parent, ())
            if one.kind is Kind.CHILD and one.name == scope.path[-1]
        ]
        base = str(begun[-1].value["start"]) if begun else base  # type: ignore[index]
    return Chain(base, epoch, entries, run.gone)
