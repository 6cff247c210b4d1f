"""Take a run away without destroying anything."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from agl.api.locking import held
from agl.ports.errors import NotFoundError
from agl.ports.ids import Label, Scope
from agl.ports.ledger import runs_folder
from agl.ports.processes import Survivor
from agl.ports.workspace import Cleared, KeptItem
from agl.sdk._engine.ledger import Ledger
from agl.sdk._engine.services import Services
from agl.sdk._engine.state import run_marker


@dataclass(frozen=True, slots=True)
class ClearReport:
    """What `clear` took away, ended, and destroyed for good. `bystanders` are processes of others
    that stood in a tree when it was moved."""

    label: str
    trees: tuple[Cleared, ...]
    survivors: tuple[Survivor, ...]
    bystanders: tuple[Survivor, ...]
    purged: tuple[KeptItem, ...]


async def clear(
    services: Services, label: Label, *, keep_days: int, purge: bool = False
) -> ClearReport:
    """Takes away a run's trees, branches and documents. What only they held is kept, and can be
    brought back for `keep_days` days; with `purge` it is destroyed at once. Repeatable. Of a run
    without documents only what is kept is left: a branch of its name is somebody else's.

    Raises:
        RunIsLive: the run is at work.
        NotFoundError: there is no such run, and nothing kept of one.
    """
    root = Scope(services.project, label)
    with held(services, root, wait_s=0.0):
        exists = label in services.store.folders(runs_folder(services.project))
        kept = await services.kept.items(label)
        if not exists and not kept:
            raise NotFoundError(f"no run {label!r}; `agl list` shows the runs there are")
        survivors = await services.processes.end(run_marker(services, root))
        ledger = Ledger(services.store, root)
        scopes = ledger.scopes(root)
        folders = {services.workspaces.folder(scope) for scope in scopes}
        bystanders = [one for folder in folders for one in services.processes.standing_in(folder)]
        trees = await services.workspaces.clear(scopes) if exists else ()
        ledger.remove()
        now = services.clock.now()
        before = None if purge else now - timedelta(days=keep_days)
        purged = await services.kept.purge(label, before)
        return ClearReport(label, trees, survivors, tuple(bystanders), purged)
