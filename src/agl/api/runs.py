"""Run a workflow, and resume it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agl.api import checkout, checks
from agl.api.endings import Report, report_of, told
from agl.api.locking import held
from agl.ports.errors import NotFoundError, StateError, WorkflowFailed
from agl.ports.events import Emit
from agl.ports.ids import Label, Scope
from agl.ports.ledger import Outcome, OutcomeKind, RunRecord
from agl.ports.shielding import finish
from agl.ports.stopping import is_asked_to_stop
from agl.sdk._engine import preflight
from agl.sdk._engine.again import find_cuts, write_cut
from agl.sdk._engine.chain import Chain, heads_of
from agl.sdk._engine.ledger import Ledger
from agl.sdk._engine.places import Place
from agl.sdk._engine.scope import ScopeState
from agl.sdk._engine.services import Services
from agl.sdk._engine.source import source_of
from agl.sdk._engine.state import RunState, next_epoch, run_marker
from agl.sdk.params import params_from_json, params_to_json
from agl.sdk.run import Run
from agl.sdk.workflows import Workflow


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
    max_wait_s: float = 0.0,
) -> Report:
    """Begins a run and goes to the end of its workflow. A provider that cannot answer now is waited
    for, for `max_wait_s` seconds in a row.

    Raises:
        AglError: refused, and nothing was made. How the workflow itself ended, also when the tree
            could not be made, is in the report.
    """
    root = Scope(services.project, label)
    with held(services, root):
        ledger = Ledger(services.store, root)
        checks.refuse_taken(services, label)
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
        state = RunState(services, root, ledger, epoch, answers or {}, emit, max_wait_s)
        scope = ScopeState(state, root, base, Chain(base, epoch.number))
        state.emit("run_started", root, loaded.name, epoch=epoch.number, resumed=False)
        dirty = tuple(await checkout.look(services))
        if dirty:
            text = f"uncommitted changes are not part of this run: {checkout.shown(dirty)}"
            state.emit("warned", root, text=text)
        return await _walk(state, scope, record, loaded.workflow, params, makes_tree=True)


async def resume(
    services: Services,
    load: Callable[[str], Loaded],
    label: Label,
    *,
    again: str | None = None,
    answers: Mapping[str, str] | None = None,
    emit: Emit | None = None,
    max_wait_s: float = 0.0,
) -> Report:
    """Goes on with a run: replays what is recorded, and runs the rest.

    `again` is a step or a verdict, as NAME or NAME#n, from which on nothing recorded is used; or a
    question or record, which is then asked again.

    Raises:
        AglError: refused; what is recorded stays as it was.
    """
    root = Scope(services.project, label)
    checks.refuse_unknown(services, label)
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
        epoch, changed = next_epoch(ledger, source_of(workflow.module), services)
        broken: list[tuple[str, str]] = []

        def set_aside(file: str, why: str) -> None:
            broken.append((file, why))

        outcome = ledger.outcome(set_aside)
        if outcome and outcome.kind is OutcomeKind.FINISHED and not changed and again is None:
            return _already_finished(record, outcome)
        await preflight.check(services, workflow.module, params)
        recorded = ledger.all_entries(root, set_aside)
        entries = recorded[root]
        needed = {head for found in recorded.values() for one in found for head in heads_of(one)}
        gone = await services.history.missing({record.base, *needed})
        if record.base in gone:
            raise StateError(
                f"run {label!r} began at {record.base}, which the repository no longer holds; fetch"
                f" it again, or `agl clear {label}`"
            )
        if not checks.was_at_work(ledger, entries, was_cut_off=outcome is None):
            ours = {record.base, *needed, *((outcome.head,) if outcome else ())}
            last = [one.head_after for one in entries if one.head_after not in gone]
            await checks.refuse_foreign_commits(
                services, root, ours, last[-1] if last else record.base
            )
        await checks.refuse_elsewhere(services, root)
        state = RunState(services, root, ledger, epoch, answers or {}, emit, max_wait_s)
        state.recorded, state.gone = recorded, gone
        state.load_spendings(
            ledger.spendings(), (one for found in recorded.values() for one in found)
        )
        cuts = find_cuts(state, record.base, again) if again is not None else ()

        ledger.remove_outcome()
        if changed:
            ledger.write_epoch(epoch)
        state.emit("run_started", root, loaded.name, epoch=epoch.number, resumed=True)
        if survivors:
            state.emit("survivors_ended", root, processes=[one.command for one in survivors])
        for file, why in broken:
            state.emit("entry_set_aside", root, file=file, why=why)
        for scope in recorded:
            for one in services.processes.standing_in(services.workspaces.folder(scope)):
                text = f"process {one.pid} ({one.command}) stands in the tree {scope.tree!r}"
                state.emit("warned", root, text=text)
        if changed and epoch.number > 1:
            state.emit("source_changed", root, loaded.name, epoch=epoch.number, changed=changed)
        for cut in cuts:
            write_cut(state, cut)
        chain = Chain(record.base, epoch.number, state.recorded[root], gone)
        return await _walk(
            state, ScopeState(state, root, record.base, chain), record, workflow, params
        )


async def _walk(
    state: RunState,
    scope: ScopeState,
    record: RunRecord,
    workflow: Workflow[Any],
    params: object,
    *,
    makes_tree: bool = False,
) -> Report:
    """Runs the workflow's function and writes how it ended. A cancellation writes nothing, and
    neither does what fails while it ends the work."""
    failure: Exception | None = None
    before = await checkout.look(state.services)
    try:
        if makes_tree:
            await scope.tree()
        async with state.services.terminal:
            await workflow.function(Run(Place.of(scope), params))
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
    except Exception as error:
        # Whatever the author's code raises is its outcome, unless it was being stopped.
        if is_asked_to_stop():
            await finish(state.end_calls())
            raise told(error) from error
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
        unlanded=outcome.unlanded,
    )
