"""What is recorded of runs. Nothing here changes anything, and `runs` loads no event loop."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agl.api.projects import find
from agl.config import container
from agl.config.settings import Settings
from agl.ports.errors import InputError, NewerFormat, NotFoundError, UpstreamError
from agl.ports.ids import Label, Namespace, ProjectName, Scope, collision_key
from agl.ports.ledger import Outcome, RunRecord, run_folder, runs_folder, scope_folder
from agl.ports.ledger_json import outcome_from_json, run_from_json
from agl.ports.locks import Locks
from agl.ports.models import Usage
from agl.ports.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agl.ports.event_log import EventLog
    from agl.ports.ledger import Entry, Spending
    from agl.ports.workspace import KeptItem
    from agl.sdk._engine.chain import Chain
    from agl.sdk._engine.services import Services


@dataclass(frozen=True, slots=True)
class Summary:
    """A run in a line. `state` is derived: `running` while its lock is held, else what its outcome
    says (`finished`, `stopped`, `failed`, `limit`, `needs_answer`), else `interrupted`; or
    `unreadable`, and `message` says why. `result`: one of the four outcomes of the work. `held`:
    the children whose landing waits to be resolved, as `a/b`."""

    label: str
    state: str
    workflow: str = ""
    branch: str = ""
    created: datetime | None = None
    ended: datetime | None = None
    result: str = ""
    message: str = ""
    questions: tuple[str, ...] = ()
    held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """One recorded fact of a run. `live`: it counts; otherwise it is off the chain. `copy_of`: the
    number of the entry of an older epoch that this one repeats; `cut_from`: of a cut, the first
    number that it put out of use; `model`: as `provider:name`."""

    number: int
    epoch: int
    kind: str
    name: str
    ordinal: int
    live: bool
    model: str | None
    duration_s: float
    usage: Usage
    head_before: str
    head_after: str
    copy_of: int | None
    cut_from: int | None
    value: object


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a step, dead ones too. `nth`: which step of that name in its namespace.
    `recorded`: an entry holds what came of it; `at_work`: that is not known yet. `program`: what
    the agent worked with; `sandbox`: what confined its shell, empty: nothing did."""

    id: str
    namespace: str
    step: str
    nth: int
    model: str
    program: str
    sandbox: str
    usage: Usage
    started: datetime
    updated: datetime
    recorded: bool
    at_work: bool


@dataclass(frozen=True, slots=True)
class Part:
    """A child of a run, by its `namespace` as `a/b`. `state`: `held` (its landing waits in its
    parent's tree), `at_work` (a step of it is), `landed`, `nothing` (it has no commit of its own),
    or `not_landed`. `branch_at` is where its branch is now, None when it is not there."""

    namespace: str
    state: str
    branch: str
    branch_at: str | None
    base: str
    head: str
    tree: Path | None
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Details:
    """All that is known of one run. `head` is where its live chain ends, `branch_at` where its
    branch is now (None: gone), `tree` the folder of its tree while there is one, `bare` whether no
    working tree is here that could switch to the branch, `at_work` the steps that run now, `spent`
    what all attempts used, `spent_known_usd` the money of those whose price is known,
    `spent_in_vain` what those used that ended without an entry, `exit_code` how the run ended
    (None: it did not), `failure` a traceback of the author's own code."""

    summary: Summary
    version: str
    base_ref: str
    base: str
    head: str
    branch_at: str | None
    tree: Path | None
    bare: bool
    epoch: int
    params: Mapping[str, object]
    lines: tuple[Line, ...]
    children: tuple[Part, ...]
    at_work: tuple[str, ...]
    attempts: tuple[Attempt, ...]
    spent: Usage
    spent_known_usd: float
    spent_in_vain: Usage
    kept: tuple[KeptItem, ...]
    exit_code: int | None
    failure: str | None


def runs(settings: Settings, start: Path) -> tuple[ProjectName, tuple[Summary, ...]]:
    """The project around a folder, and its runs.

    Raises:
        InputError, NotFoundError: as `projects.find`.
    """
    project, _ = find(settings, start)
    store, locks = container.store(settings), container.locks(settings)
    return project.name, summaries(store, locks, project.name)


def summaries(store: Store, locks: Locks, project: ProjectName) -> tuple[Summary, ...]:
    """The runs of a project, the oldest first; one that cannot be read says so."""
    found = [_summary(store, locks, project, name) for name in store.folders(runs_folder(project))]
    known = [summary for summary in found if summary is not None]
    return tuple(sorted(known, key=lambda one: (one.created is not None, one.created, one.label)))


async def run(services: Services, label: Label) -> Details:
    """One run with all its entries.

    Raises:
        NotFoundError: there is no such run.
        CorruptDocument, NewerFormat: a document cannot be read; the message names the file.
    """
    from agl.sdk._engine.chain import Chain, heads_of
    from agl.sdk._engine.ledger import Ledger

    scope = Scope(services.project, label)
    ledger = Ledger(services.store, scope)
    record = ledger.record()
    if record is None:
        raise NotFoundError(not_found(services.store, services.project, label))
    outcome = ledger.outcome()
    summary = _of(record, outcome, services.locks, services.project)
    epochs = ledger.epochs()
    epoch = epochs[-1].number if epochs else 0
    found = ledger.all_entries(scope)
    every = [entry for entries in found.values() for entry in entries]
    gone = await services.history.missing({head for entry in every for head in heads_of(entry)})
    chains = {scope: Chain(record.base, epoch, found[scope], gone)}
    for child in found:
        if child.path:
            start = _start_of(chains[child.parent], child)
            chains[child] = Chain(start, epoch, found[child], gone)
    spendings = ledger.spendings()
    tree = services.workspaces.folder(scope)
    asked = {one.attempt: one.model for one in spendings}
    recorded = {attempt for entry in every for attempt in entry.attempts}
    settled = summary.state in ("finished", "stopped")
    working = _at_work(services.log, scope) if summary.state == "running" else ()
    attempts = tuple(
        _attempt(one, recorded, working)
        for one in sorted(spendings, key=lambda one: (one.started, one.attempt))
    )
    children = tuple(
        [
            await _part(services, chains, child, asked, working, settled=settled)
            for child in chains
            if child.path
        ]
    )
    held = tuple(child.namespace for child in children if child.state == "held")
    return Details(
        summary=replace(summary, held=held),
        version=record.version,
        base_ref=record.base_ref,
        base=record.base,
        head=chains[scope].tip,
        branch_at=await services.history.tip(record.branch),
        tree=tree if tree.is_dir() else None,
        bare=services.checkout is None,
        epoch=epoch,
        params=record.params,
        lines=_lines(chains[scope], asked),
        children=children,
        at_work=tuple(one.name for one in working),
        attempts=attempts,
        spent=_total(one.usage for one in attempts),
        spent_known_usd=sum((one.usage.cost_usd or 0.0 for one in attempts), 0.0),
        spent_in_vain=_total(one.usage for one in attempts if not one.recorded and not one.at_work),
        kept=await services.kept.items(label),
        exit_code=None if outcome is None else outcome.exit_code,
        failure=None if outcome is None else outcome.failure,
    )


def not_found(store: Store, project: ProjectName, label: str) -> str:
    """The sentence for a label without a run, with the one that was perhaps meant."""
    for known in store.folders(runs_folder(project)):
        if known != label and collision_key(known) == collision_key(label):
            return f"no run {label!r} in project {str(project)!r}; there is {known!r}"
    return f"no run {str(label)!r} in project {str(project)!r}; `agl list` shows them"


def _summary(store: Store, locks: Locks, project: ProjectName, name: str) -> Summary | None:
    try:
        folder = run_folder(project, Label(name))
        document = store.read((*folder, "run"))
        if document is None:
            return None
        record = run_from_json(document, "/".join((*folder, "run.json")))
        ended = store.read((*folder, "outcome"))
        where = "/".join((*folder, "outcome.json"))
        outcome = None if ended is None else outcome_from_json(ended, where)
        summary = _of(record, outcome, locks, project)
        if summary.state in ("finished", "stopped"):
            return summary
        return replace(summary, held=_held(store, Scope(project, Label(name))))
    except InputError:  # a folder that no label names is no run
        return None
    except (UpstreamError, NewerFormat) as error:
        return Summary(name, "unreadable", message=str(error))


def _held(store: Store, scope: Scope) -> tuple[str, ...]:
    """The children whose last landing is open, by the landings' documents alone."""
    folder = scope_folder(scope)
    found: list[str] = []
    for child in _children(scope, store.folders((*folder, "landings"))):
        place = (*folder, "landings", child.path[-1])
        last = max(store.names(place), default=None)
        match last and store.read((*place, last)):
            case {"value": {"stages": [*_, {"state": "conflicted" | "refused"}]}}:
                found.append("/".join(child.path))
    for child in _children(scope, store.folders((*folder, "worktrees"))):
        found += _held(store, child)
    return tuple(found)


def _children(scope: Scope, names: Iterable[str]) -> Iterator[Scope]:
    """The children of these names; a folder that no namespace names is none."""
    for name in names:
        with suppress(InputError):
            yield scope.child(Namespace(name))


def _of(record: RunRecord, outcome: Outcome | None, locks: Locks, project: ProjectName) -> Summary:
    state = "interrupted" if outcome is None else outcome.kind.value
    message = "" if outcome is None else outcome.message
    holder = locks.holder((project, collision_key(record.label)))
    if holder is not None:
        state, message = "running", str(holder)
    return Summary(
        label=record.label,
        state=state,
        workflow=record.workflow,
        branch=record.branch,
        created=record.created,
        ended=None if outcome is None else outcome.ended,
        result="" if outcome is None else outcome.result,
        message=message,
        questions=() if outcome is None else outcome.questions,
    )


def _start_of(parent: Chain, child: Scope) -> str:
    """Where a child began by what is live in its parent; else by what was recorded last."""
    from agl.ports.ledger import Kind

    begun = [
        one
        for one in (*parent.entries, *parent.live)
        if one.kind is Kind.CHILD and one.name == child.path[-1]
    ]
    value = begun[-1].value if begun else None
    start = value.get("start") if isinstance(value, dict) else None
    return start if isinstance(start, str) else parent.base


async def _part(
    services: Services,
    chains: Mapping[Scope, Chain],
    scope: Scope,
    asked: Mapping[str, str],
    working: Iterable[_AtWork],
    *,
    settled: bool,
) -> Part:
    from agl.sdk._engine import landings

    chain, parent, name = chains[scope], chains[scope.parent], scope.path[-1]
    namespace = "/".join(scope.path)
    held = None if settled else landings.held(parent)
    state = "not_landed"
    if held is not None and held.name == name:
        state = "held"
    elif any(one.namespace == namespace for one in working):
        state = "at_work"
    elif chain.tip == chain.base:
        state = "nothing"
    elif landings.has_landed(parent, name, chain.tip):
        state = "landed"
    tree = services.workspaces.folder(scope)
    return Part(
        namespace=namespace,
        state=state,
        branch=scope.branch,
        branch_at=await services.history.tip(scope.branch),
        base=chain.base,
        head=chain.tip,
        tree=tree if tree.is_dir() else None,
        lines=_lines(chain, asked),
    )


def _lines(chain: Chain, asked: Mapping[str, str]) -> tuple[Line, ...]:
    live = {entry.number for entry in chain.live}
    return tuple(_line(entry, live, asked) for entry in chain.entries)


def _line(entry: Entry, live: set[int], asked: Mapping[str, str]) -> Line:
    from agl.sdk._engine.chain import ON_CHAIN

    return Line(
        number=entry.number,
        epoch=entry.epoch,
        kind=entry.kind.value,
        name=entry.name,
        ordinal=entry.ordinal,
        live=entry.kind not in ON_CHAIN or entry.number in live,
        model=_model(entry, asked),
        duration_s=(entry.finished - entry.started).total_seconds(),
        usage=entry.usage,
        head_before=entry.head_before,
        head_after=entry.head_after,
        copy_of=entry.copy_of,
        cut_from=entry.cut_from,
        value=entry.value,
    )


def _attempt(spending: Spending, recorded: set[str], working: Iterable[_AtWork]) -> Attempt:
    is_recorded = spending.attempt in recorded
    return Attempt(
        id=spending.attempt,
        namespace=spending.namespace,
        step=spending.step,
        nth=spending.nth,
        model=spending.model,
        program=spending.program,
        sandbox=spending.sandbox,
        usage=spending.usage,
        started=spending.started,
        updated=spending.updated,
        recorded=is_recorded,
        at_work=not is_recorded and any(one.attempt == spending.attempt for one in working),
    )


def _model(entry: Entry, asked: Mapping[str, str]) -> str | None:
    """The model that answered, with the provider of the one that the last attempt asked."""
    provider = asked.get(entry.attempts[-1], "").partition(":")[0] if entry.attempts else ""
    if entry.model is None or not provider or entry.model.startswith(f"{provider}:"):
        return entry.model
    return f"{provider}:{entry.model}"


def _total(usages: Iterable[Usage]) -> Usage:
    total = Usage()
    for usage in usages:
        total += usage
    return total


@dataclass(frozen=True, slots=True)
class _AtWork:
    """A step that runs now, and the id of its attempt."""

    namespace: str
    step: str
    attempt: str

    @property
    def name(self) -> str:
        return "/".join(filter(None, (self.namespace, self.step)))


def _at_work(log: EventLog, scope: Scope) -> tuple[_AtWork, ...]:
    """The steps that the log saw begin and not end since the run was last entered."""
    begun: list[_AtWork] = []
    for event in log.read(run_folder(scope.project, scope.label)):
        kind = event.get("kind")
        namespace, step = str(event.get("namespace") or ""), str(event.get("about"))
        same = [one for one in begun if (one.namespace, one.step) == (namespace, step)]
        if kind == "run_started":
            begun.clear()
        elif kind == "step_started":
            details = event.get("details")
            attempt = details.get("attempt") if isinstance(details, dict) else None
            begun.append(_AtWork(namespace, step, str(attempt or "")))
        elif kind in ("step_finished", "step_failed", "step_stopped") and same:
            begun.remove(same[0])
    return tuple(begun)
