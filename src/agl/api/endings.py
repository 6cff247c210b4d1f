"""How a workflow ended: the outcome that is written, and the report that is returned."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import agl
from agl.ports.errors import (
    AglError,
    InternalError,
    LimitReached,
    NeedsAnswer,
    Stop,
    WorkflowFailed,
    exit_code_of,
    leaves,
)
from agl.ports.ledger import Kind, Outcome, OutcomeKind, RunRecord
from agl.sdk._engine import fingerprints, landings
from agl.sdk._engine.scope import ScopeState
from agl.sdk._engine.state import RunState

LANDED = "landed"
NOT_LANDED = "not_landed"
PRODUCED_NOTHING = "produced_nothing"
NEEDED_NOTHING = "needed_nothing"


@dataclass(frozen=True, slots=True)
class Report:
    """How a run ended. `outcome` is a value of OutcomeKind, `result` one of the four outcomes of
    the work, `failure` the traceback of the author's own exception, `unlanded` the children with
    commits that their parent does not have."""

    label: str
    workflow: str
    branch: str
    base: str
    head: str
    outcome: str
    result: str
    message: str
    exit_code: int
    questions: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    replayed: int = 0
    ran: int = 0
    failure: str | None = None
    unlanded: tuple[str, ...] = ()


async def report_of(
    state: RunState, scope: ScopeState, record: RunRecord, failure: Exception | None
) -> Report:
    """Ends the run in its tree and in the ledger. The branch stands at the tip, and what stood in
    the way of that is kept; after an end on purpose the tree is clean and lets go of the branch. A
    tree in which a landing waits is left as it is for the resume."""
    on_purpose = failure is None or all(isinstance(leaf, Stop) for leaf in leaves(failure))
    try:
        await _settle(scope, on_purpose=on_purpose)
    except AglError as error:
        failure = error if failure is None else ExceptionGroup("", [failure, error])
    kind, message, trace = _said(failure, {id(error): step for error, step in state.failed_in})
    if failure is None and state.nothing_needed is not None:
        message = f"nothing was needed: {state.nothing_needed}"
    unlanded = _unlanded(state)
    result = _result(scope, record, kind, unlanded)
    head = await _branch_at(state, record) or scope.chain.tip
    code = 0 if failure is None else exit_code_of(_translated(failure))
    outcome = Outcome(
        kind=kind,
        exit_code=code,
        message=message,
        head=head,
        ended=state.services.clock.now(),
        result=result,
        questions=tuple(state.open_questions) if kind is OutcomeKind.NEEDS_ANSWER else (),
        failure=trace,
        unlanded=unlanded,
    )
    state.ledger.write_outcome(outcome)
    state.emit("run_ended", state.root, outcome=kind.value, message=message, head=head)
    return Report(
        label=record.label,
        workflow=record.workflow,
        branch=record.branch,
        base=record.base,
        head=head,
        outcome=kind.value,
        result=result,
        message=message,
        exit_code=code,
        questions=outcome.questions,
        kept=tuple(item.name for item in state.kept),
        replayed=state.replayed,
        ran=state.ran,
        failure=trace,
        unlanded=unlanded,
    )


def told(failure: Exception) -> AglError:
    """What is said of a failure of the workflow that is no outcome."""
    _, message, _ = _said(failure, {})
    return WorkflowFailed(message)


def _unlanded(state: RunState) -> tuple[str, ...]:
    """The children whose head did not land in their parent, as `a/b`."""
    found = []
    for scope, child in state.scopes.items():
        if not scope.path or child.chain.tip == child.base:
            continue
        parent = state.scopes[scope.parent]
        if not landings.has_landed(parent.chain, scope.path[-1], child.chain.tip):
            found.append("/".join(scope.path))
    return tuple(sorted(found))


async def _branch_at(state: RunState, record: RunRecord) -> str | None:
    try:
        return await state.services.history.tip(record.branch)
    except AglError:
        return None


async def _settle(scope: ScopeState, *, on_purpose: bool) -> None:
    if scope.has_no_tree or (not on_purpose and scope.lease.hold is not None):
        return
    async with scope.turn:
        tree = await scope.tree()
        state = await tree.state()
        if state.head != scope.chain.tip or (on_purpose and not state.clean):
            keeping = scope.run.keeping(scope.scope, "left in the tree when the run ended")
            await tree.restore(scope.chain.tip, keeping)
        if on_purpose:
            await tree.detach()


def _said(
    failure: Exception | None, failed_in: Mapping[int, str]
) -> tuple[OutcomeKind, str, str | None]:
    """The kind of the outcome, a sentence that names the step an agent failed in, and the traceback
    of an exception that is not AGL's."""
    if failure is None:
        return OutcomeKind.FINISHED, "finished", None
    found = [_translated(leaf) for leaf in leaves(failure)]
    said = (
        f"step {failed_in[id(leaf)]!r}: {leaf}" if id(leaf) in failed_in else str(leaf)
        for leaf in found
    )
    message = "; ".join(dict.fromkeys(said))
    trace = None
    if any(isinstance(leaf, WorkflowFailed | InternalError) for leaf in found):
        trace = "".join(traceback.format_exception(failure))
    for kind, classes in _KINDS.items():
        if all(isinstance(leaf, classes) for leaf in found):
            return kind, message, trace
    return OutcomeKind.FAILED, message, trace


_KINDS = {
    OutcomeKind.STOPPED: Stop,
    OutcomeKind.NEEDS_ANSWER: NeedsAnswer,
    OutcomeKind.LIMIT: LimitReached,
}


def _translated(failure: BaseException) -> BaseException:
    """The failure with every exception that is not AGL's named: the author's, or a bug of ours."""
    if isinstance(failure, BaseExceptionGroup):
        return BaseExceptionGroup("", [_translated(one) for one in failure.exceptions])
    if isinstance(failure, AglError):
        return failure
    said = f"{type(failure).__name__}: {failure}"
    if _was_raised_by_agl(failure):
        return InternalError(f"a bug in AGL, please report it: {said}")
    return WorkflowFailed(f"the workflow failed with {said}")


def _was_raised_by_agl(failure: BaseException) -> bool:
    home = Path(agl.__file__).parent
    frames = traceback.extract_tb(failure.__traceback__)
    if not frames:
        return False
    place = Path(frames[-1].filename)
    return place.is_relative_to(home) and not place.is_relative_to(home / "workflows")


def _result(
    scope: ScopeState, record: RunRecord, kind: OutcomeKind, unlanded: tuple[str, ...]
) -> str:
    """One of the four outcomes of the work. What a run that did not finish has committed is on its
    branch, and not landed; so is what lies in a child that did not land. A run that has nothing on
    its branch says whether anybody tried."""
    finished = kind is OutcomeKind.FINISHED
    if unlanded:
        return NOT_LANDED
    if scope.chain.tip != record.base:
        return LANDED if finished else NOT_LANDED
    if finished and scope.run.nothing_needed is not None:
        return NEEDED_NOTHING
    commits = fingerprints.digest("commit")
    if any(
        one.kind is Kind.STEP and one.terms.get("ending") == commits
        for state in scope.run.scopes.values()
        for one in state.chain.live
    ):
        return PRODUCED_NOTHING
    return NEEDED_NOTHING if finished else NOT_LANDED
