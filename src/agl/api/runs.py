"""Run a workflow, and resume it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from agl.api import checkout
from agl.api.endings import Report, report_of
from agl.ports.errors import InputError, NotFoundError, RunIsLive, StateError, WorkflowFailed
from agl.ports.events import Emit
from agl.ports.ids import Label, Scope, collision_key
from agl.ports.ledger import Entry, Kind, Outcome, OutcomeKind, RunRecord
from agl.ports.locks import LockHeld
from agl.sdk._engine import fingerprints, preflight
from agl.sdk._engine.chain import ON_CHAIN, Chain
from agl.sdk._engine.ledger import Ledger, labels_of
from agl.sdk._engine.scope import ScopeState
from agl.sdk._engine.services import Services
from agl.sdk._engine.shielding import finish
from agl.sdk._engine.source import source_of
from agl.sdk._engine.state import RunState, next_epoch, run_marker
from agl.sdk.params import params_from_json, params_to_json
from agl.sdk.run import Run
from agl.sdk.workflows import Workflow

LOCK_WAIT_S = 1.0


@dataclass(frozen=True, slots=True)
class Loaded:
    """A workflow with the name under which it was found and will be found again."""

    name: str
    workflow: Workflow[Any]


async def run(
    services: Services,
    loaded: Loaded,
    label: Label,
    params: object,
    *,
    base_ref: str = "HEAD",
    answers: Mapping[str, str] | None = None,
    emit: Emit | None = None,
) -> Report:
    """Begins a run and goes to the end of its workflow.

    Raises:
        AglError: refused, and nothing was made; or the tree could not be made, and `resume` goes on
            from there. How the workflow itself ended is in the report.
    """
    root = Scope(services.project, label)
    with held(services, root):
        ledger = Ledger(services.store, root)
        _refuse_taken(services, label)
        await preflight.check(services, loaded.workflow.module, params)
        base = await services.history.resolve(base_ref)
        await services.workspaces.check(label)
        source = source_of(loaded.workflow.module)
        record = RunRecord(
            workflow=loaded.name,
            version=loaded.workflow.version,
            source=source,
            label=label,
            base_ref=base_ref,
            base=base,
            branch=root.branch,
            tree=str(services.workspaces.folder(root)),
            params=params_to_json(params),
            created=services.clock.now(),
        )
        ledger.write_record(record)
        epoch, _ = next_epoch(ledger, source, services)
        ledger.write_epoch(epoch)
        state = RunState(services, root, ledger, epoch, answers or {}, emit)
        scope = ScopeState(state, root, base, Chain(base, epoch.number))
        state.emit("run_started", root, loaded.name, epoch=epoch.number, resumed=False)
        dirty = tuple(await checkout.look(services))
        if dirty:
            text = f"uncommitted changes are not part of this run: {checkout.shown(dirty)}"
            state.emit("warned", root, text=text)
        await scope.tree()
        return await _walk(state, scope, record, loaded.workflow, params)


async def resume(
    services: Services,
    load: Callable[[str], Loaded],
    label: Label,
    *,
    again: str | None = None,
    answers: Mapping[str, str] | None = None,
    emit: Emit | None = None,
) -> Report:
    """Goes on with a run: replays what is recorded, and runs the rest.

    `again` is a step or a verdict, as NAME or NAME#n, from which on nothing recorded is used; or a
    question or record, which is then asked again.

    Raises:
        AglError: refused; what is recorded stays as it was.
    """
    root = Scope(services.project, label)
    _existing(services, label)
    with held(services, root):
        ledger = Ledger(services.store, root)
        record = ledger.record()
        if record is None:
            raise NotFoundError(f"no run {label!r}; `agl list` shows the runs there are")
        loaded = load(record.workflow)
        workflow = loaded.workflow
        if workflow.version != record.version:
            raise StateError(
                f"run {label!r} was begun with version {record.version!r} of {record.workflow!r},"
                f" and {workflow.version!r} is here now; go back to it, or `agl clear {label}`"
            )
        params: object = params_from_json(workflow.params, record.params)
        survivors = await services.processes.end(run_marker(services, root))
        await preflight.check(services, workflow.module, params)

        epoch, changed = next_epoch(ledger, source_of(workflow.module), services)
        broken: list[tuple[str, str]] = []

        def set_aside(file: str, why: str) -> None:
            broken.append((file, why))

        outcome = ledger.outcome(set_aside)
        if outcome and outcome.kind is OutcomeKind.FINISHED and not changed and again is None:
            return _already_finished(record, outcome)
        entries = ledger.entries(root, set_aside)
        heads = {head for entry in entries for head in (entry.head_before, entry.head_after)}
        gone = await services.history.missing({record.base, *heads})
        if record.base in gone:
            raise StateError(
                f"run {label!r} began at {record.base}, which the repository no longer holds; fetch"
                f" it again, or `agl clear {label}`"
            )
        if not (outcome is None and _was_in_a_step(ledger, entries)):
            ours = {record.base, *heads, *((outcome.head,) if outcome else ())}
            last = [one.head_after for one in entries if one.head_after not in gone]
            await _refuse_foreign_commits(services, root, ours, last[-1] if last else record.base)
        await _refuse_elsewhere(services, root)
        chain = Chain(record.base, epoch.number, entries, gone)
        state = RunState(services, root, ledger, epoch, answers or {}, emit)
        state.load_spendings(ledger.spendings(), entries)
        scope = ScopeState(state, root, record.base, chain)
        cut = _cut_for(scope, again) if again is not None else None

        ledger.remove_outcome()
        if changed:
            ledger.write_epoch(epoch)
        state.emit("run_started", root, loaded.name, epoch=epoch.number, resumed=True)
        if survivors:
            state.emit("survivors_ended", root, processes=[one.command for one in survivors])
        for file, why in broken:
            state.emit("entry_set_aside", root, file=file, why=why)
        for one in services.processes.standing_in(services.workspaces.folder(root)):
            text = f"process {one.pid} ({one.command}) stands in the tree of this run"
            state.emit("warned", root, text=text)
        if changed and epoch.number > 1:
            state.emit("source_changed", root, loaded.name, epoch=epoch.number, changed=changed)
        if cut is not None:
            _write_cut(scope, *cut)
        return await _walk(state, scope, record, workflow, params)


@contextmanager
def held(services: Services, root: Scope, *, wait_s: float = LOCK_WAIT_S) -> Iterator[None]:
    """Holds the run's lock.

    Raises:
        RunIsLive: another process is at work on the run.
    """
    try:
        lock = services.locks.hold(lock_of(root), wait_s=wait_s)
        with lock:
            yield
    except LockHeld as error:
        raise RunIsLive(
            f"run {root.label!r} is at work in {error.holder}; wait for it, or stop it there with"
            " Ctrl-C"
        ) from error


def lock_of(root: Scope) -> tuple[str, ...]:
    """The name of a run's lock; labels that are one name share it."""
    return (root.project, collision_key(root.label))


async def _walk(
    state: RunState,
    scope: ScopeState,
    record: RunRecord,
    workflow: Workflow[Any],
    params: object,
) -> Report:
    """Runs the workflow's function and writes how it ended. A cancellation writes nothing."""
    failure: Exception | None = None
    before = await checkout.look(state.services)
    try:
        async with state.services.terminal:
            await workflow.function(Run(scope, params))
    except asyncio.CancelledError as error:
        if _is_being_stopped():
            await finish(state.end_calls())
            raise
        failure = WorkflowFailed("the workflow awaited a task that was cancelled")
        failure.__cause__ = error
    except SystemExit as error:
        failure = WorkflowFailed(
            f"the workflow called sys.exit({error.code!r}); raise Stop instead"
        )
        failure.__cause__ = error
    except Exception as error:  # noqa: BLE001 - whatever the author's code raises is its outcome
        failure = error
    if await finish(state.end_calls()) and failure is None:
        failure = WorkflowFailed(
            "the workflow returned while a task of its own was still at work; await every task"
        )
    paths = checkout.changed(before, await checkout.look(state.services))
    if paths:
        text = f"files of your checkout changed meanwhile: {checkout.shown(paths)}"
        hint = "if that was not you, an agent wrote outside of its tree"
        state.emit("warned", state.root, text=f"{text}; {hint}")
    unused = sorted(state.answers.keys() - state.answers_taken)
    if unused:
        text = f"no question took the answer to {', '.join(map(repr, unused))}"
        state.emit("warned", state.root, text=text)
    return await finish(report_of(state, scope, record, failure))


def _is_being_stopped() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _existing(services: Services, label: Label) -> None:
    if label not in labels_of(services.store, services.project):
        raise NotFoundError(f"no run {label!r}; `agl list` shows the runs there are")


def _refuse_taken(services: Services, label: Label) -> None:
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


async def _refuse_elsewhere(services: Services, root: Scope) -> None:
    elsewhere = await services.history.checked_out_at(root.branch)
    if elsewhere is not None and elsewhere != services.workspaces.folder(root):
        raise StateError(
            f"branch {root.branch!r} is checked out at {str(elsewhere)!r}; switch that tree to"
            f" another branch, then `agl resume {root.label}`"
        )


async def _refuse_foreign_commits(
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


def _was_in_a_step(ledger: Ledger, entries: tuple[Entry, ...]) -> bool:
    """Whether an attempt was cut off after the last entry that took the tree's turn. Answers and
    records take none, so they say nothing about the tree."""
    recorded = {attempt for entry in entries for attempt in entry.attempts}
    last = max((entry.number for entry in entries if entry.kind in ON_CHAIN), default=0)
    return any(one.attempt not in recorded and one.begun > last for one in ledger.spendings())


def _already_finished(record: RunRecord, outcome: Outcome) -> Report:
    return Report(
        label=record.label,
        workflow=record.workflow,
        branch=record.branch,
        base=record.base,
        head=outcome.head,
        outcome=outcome.kind.value,
        result=outcome.result,
        message="finished already; nothing was left to do",
        exit_code=0,
    )


def _cut_for(scope: ScopeState, again: str) -> tuple[str, int, int, bool]:
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


def _write_cut(scope: ScopeState, name: str, nth: int, cut_from: int, forgets: bool) -> None:
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
