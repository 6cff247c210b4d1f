"""What a run is refused for, before anything of it is touched."""

from __future__ import annotations

from agl.ports.errors import NotFoundError, StateError
from agl.ports.ids import Label, Scope, collision_key
from agl.ports.ledger import Entry
from agl.sdk._engine import foreign
from agl.sdk._engine.ledger import Ledger, labels_of
from agl.sdk._engine.services import Services


def refuse_unknown(services: Services, label: Label) -> None:
    if label not in labels_of(services.store, services.project):
        raise NotFoundError(f"no run {label!r}; `agl list` shows the runs there are")


def refuse_taken(services: Services, label: Label) -> None:
    for other in labels_of(services.store, services.project):
        if other == label:
            raise StateError(
                f"run {label!r} exists; `agl resume {label}` goes on with it, `agl clear {label}`"
                " takes it away"
            )
        if collision_key(other) == collision_key(label):
            raise StateError(
                f"label {label!r} is the same name as run {other!r}; choose another one"
            )


async def refuse_elsewhere(services: Services, root: Scope) -> None:
    elsewhere = await services.history.checked_out_at(root.branch)
    if elsewhere is not None and elsewhere != services.workspaces.folder(root):
        raise StateError(
            f"branch {root.branch!r} is checked out at {str(elsewhere)!r}; switch that tree to"
            f" another branch, then `agl resume {root.label}`"
        )


async def refuse_foreign_commits(
    services: Services, root: Scope, ours: set[str], last: str
) -> None:
    """Refuses a branch whose tip is none of `ours`. After a kill in the middle of a step this is
    not asked: what the agent committed is kept when the tree is next needed."""
    tip = await services.history.tip(root.branch)
    if tip is None or tip in ours:
        return
    foreign = await services.history.between(last, tip)
    raise StateError(
        f"branch {root.branch!r} has commits that are not AGL's ({', '.join(foreign[:3])});"
        f" `git branch my-work {tip}` keeps them, then"
        f" `git update-ref refs/heads/{root.branch} {last}` and `agl resume {root.label}`"
    )


def was_at_work(ledger: Ledger, entries: tuple[Entry, ...], *, was_cut_off: bool) -> bool:
    """Whether a landing waits in the run's own tree or, in a run that was cut off, a step there was
    cut short: then commits that are not recorded may be there."""
    if foreign.is_waiting(entries):
        return True
    return was_cut_off and foreign.was_cut_short(entries, ledger.spendings(), "")
