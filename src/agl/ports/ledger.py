"""The ledger's documents: what each holds, and where it lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from agl.ports.ids import Label, ProjectName, Scope
from agl.ports.models import Usage
from agl.ports.store import Address


class Kind(Enum):
    """What an entry records. The values are stored text: never renamed."""

    STEP = "step"
    VERIFY = "verify"
    ASK = "ask"
    RECORD = "record"
    CHILD = "child"
    LANDING = "landing"
    CUT = "cut"


class OutcomeKind(Enum):
    """How a workflow came to an end. The values are stored text: never renamed."""

    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"
    LIMIT = "limit"
    NEEDS_ANSWER = "needs_answer"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What was asked for, written before anything is made. `base` is the pinned commit, `tree` the
    folder of the run's own worktree, which a changed setting does not move."""

    workflow: str
    version: str
    source: str
    label: str
    base_ref: str
    base: str
    branch: str
    tree: str
    params: Mapping[str, object]
    created: datetime


@dataclass(frozen=True, slots=True)
class Epoch:
    """The time from one change of the workflow's source to the next. `files` are the outside files
    that roles took in, each with its digest."""

    number: int
    source: str
    files: Mapping[str, str]
    started: datetime


@dataclass(frozen=True, slots=True)
class Entry:
    """One recorded fact of a scope. `value` is JSON; `terms` are the digests of the parts of the
    fingerprint; `given` is the head that a verdict's task had last been handed; `copy_of` is the
    number of the older entry that this one repeats in a new epoch; `cut_from` is, for a cut, the
    first number that is out of use; its name and ordinal are those of the step that runs again;
    `merged` is, for a step that merged its parent's head in first, that head.

    Written once and never again, but for a landing, which is rewritten as it goes."""

    kind: Kind
    name: str
    epoch: int
    number: int
    fingerprint: str
    ordinal: int
    value: object
    head_before: str
    head_after: str
    started: datetime
    finished: datetime
    attempts: tuple[str, ...] = ()
    model: str | None = None
    usage: Usage = field(default_factory=Usage)
    terms: Mapping[str, str] = field(default_factory=dict)
    given: str | None = None
    copy_of: int | None = None
    cut_from: int | None = None
    merged: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the workflow ended, never written by a signal. `head` is where the run's branch stood;
    `result` is one of the four outcomes of the work (landed, not_landed, produced_nothing,
    needed_nothing); `questions` are the titles of open ones; `failure` is the traceback of the
    author's own exception; `unlanded` are the children, as `a/b`, with commits that their parent
    does not have."""

    kind: OutcomeKind
    exit_code: int
    message: str
    head: str
    ended: datetime
    result: str
    questions: tuple[str, ...] = ()
    failure: str | None = None
    unlanded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Spending:
    """What one attempt of a step used so far, so that a killed attempt still counts. `nth`: which
    step of that name in its scope. `begun`: the scope's next number when it began. `program`: what
    the agent worked with, `sandbox`: what confined its shell, as it said; empty until it did."""

    attempt: str
    namespace: str
    step: str
    nth: int
    begun: int
    model: str
    usage: Usage
    started: datetime
    updated: datetime
    program: str = ""
    sandbox: str = ""


def runs_folder(project: ProjectName) -> Address:
    return ("projects", project, "runs")


def run_folder(project: ProjectName, label: Label) -> Address:
    return (*runs_folder(project), label)


def scope_folder(scope: Scope) -> Address:
    """The folder of a run's own documents, or of a child's below it."""
    inner = tuple(part for name in scope.path for part in ("worktrees", name))
    return (*run_folder(scope.project, scope.label), *inner)


def entry_address(scope: Scope, entry: Entry) -> Address:
    name = f"{entry.number:06d}-{entry.fingerprint}"
    if entry.kind is Kind.STEP:
        return (*scope_folder(scope), "steps", entry.name, name)
    if entry.kind is Kind.LANDING:
        return (*scope_folder(scope), "landings", entry.name, f"{entry.number:06d}")
    return (*scope_folder(scope), "facts", name)
