"""What is known of a run from its events: the tree of scopes, each with the step at work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from agl.adapters.rich_terminal.lines import one_line
from agl.ports.events import Event
from agl.ports.models import Usage


class Stand(Enum):
    """How a scope stands; the values are what a person reads."""

    IDLE = ""
    WORKING = "working"
    BUILDING = "building"
    ASKING = "asking you"
    FAILED = "failed"
    STOPPED = "stopped"
    LANDING = "landing"
    CONFLICTED = "conflict"
    REFUSED = "build red"
    RELEASED = "gave way"
    LANDED = "landed"
    NOTHING = "nothing to land"
    ABORTED = "given up"


DONE = frozenset({Stand.LANDED, Stand.NOTHING, Stand.ABORTED})
HELD = frozenset({Stand.CONFLICTED, Stand.REFUSED})
_LANDINGS = {
    "landing_started": Stand.LANDING,
    "landing_conflicted": Stand.CONFLICTED,
    "landing_refused": Stand.REFUSED,
    "landing_released": Stand.RELEASED,
    "landed": Stand.LANDED,
    "landed_nothing": Stand.NOTHING,
    "landing_aborted": Stand.ABORTED,
}
_REPLAYED = {
    "landed": Stand.LANDED,
    "nothing": Stand.NOTHING,
    "conflicted": Stand.CONFLICTED,
    "refused": Stand.REFUSED,
    "released": Stand.RELEASED,
    "aborted": Stand.ABORTED,
}


@dataclass(slots=True)
class Work:
    """A step or a build that goes on."""

    name: str
    model: str
    since: datetime
    activity: str = ""


@dataclass(slots=True)
class ScopeOnBoard:
    """One scope. `finished` counts its steps and builds, `last` is the last of them."""

    name: str
    begun: datetime
    ended: datetime | None = None
    work: Work | None = None
    finished: int = 0
    last: str = ""
    usage: Usage = field(default_factory=Usage)
    questions: list[str] = field(default_factory=list)
    outcome: Stand = Stand.IDLE
    children: dict[str, ScopeOnBoard] = field(default_factory=dict)

    @property
    def stand(self) -> Stand:
        if self.questions:
            return Stand.ASKING
        if self.work is not None:
            return Stand.WORKING if self.work.model else Stand.BUILDING
        return self.outcome

    @property
    def is_done(self) -> bool:
        return self.stand in DONE

    def elapsed_s(self, now: datetime) -> float | None:
        """How long the work goes on; of what has ended, how long it took."""
        if self.work is not None:
            return (now - self.work.since).total_seconds()
        return None if self.ended is None else (self.ended - self.begun).total_seconds()


class Board:
    """Fed with events, and read by what draws it. Kinds that it does not know change nothing."""

    def __init__(self, now: datetime) -> None:
        self.root = ScopeOnBoard("run", now)
        self.is_empty = True

    @property
    def usage(self) -> Usage:
        return sum((scope.usage for _, scope in self._all(self.root, 0)), Usage())

    def shown(self) -> Iterator[tuple[int, ScopeOnBoard]]:
        """The scopes from the root down, each with its depth; nothing below one that is done."""
        return self._all(self.root, 0, below_done=False)

    def hear(self, event: Event) -> None:
        self.is_empty = False
        about, details = one_line(event.about), event.details
        if event.kind in _LANDINGS or event.kind == "landing_replayed":
            self._land(event, about)
            return
        scope = self._scope(event)
        match event.kind:
            case "run_started":
                name = _word(details, "workflow") or about
                scope.name = name.rpartition("/")[2] or scope.name
                scope.begun = event.when
            case "step_started":
                model = _model(_word(details, "model"))
                scope.work = Work(about, model or "agent", event.when)
                scope.ended = None
                if scope.outcome not in HELD:
                    scope.outcome = Stand.IDLE
            case "agent_acted" if scope.work is not None:
                scope.work.activity = _word(details, "activity")
            case "agent_equipped" if scope.work is not None:
                scope.work.activity = _word(details, "program")
            case "waiting" if scope.work is not None:
                scope.work.activity = f"waits until {_word(details, 'until')}"
            case "step_finished":
                self._finish(scope, _with_time(about, details))
                scope.usage += _usage(details)
            case "step_replayed":
                self._finish(scope, f"{about}, recorded before")
            case "step_failed":
                scope.work, scope.outcome = None, Stand.FAILED
            case "step_stopped":
                scope.work, scope.outcome = None, Stand.STOPPED
            case "verify_started":
                scope.work = Work(about, "", event.when)
            case "verify_finished" | "verify_replayed":
                passed = "passed" if details.get("passed") is True else "failed"
                self._finish(scope, f"build {passed}")
            case "asked":
                scope.questions.append(about)
            case "answered" if about in scope.questions:
                scope.questions.remove(about)

    def end(self, now: datetime) -> None:
        """Nothing goes on any more."""
        for _, scope in self._all(self.root, 0):
            if scope.work is not None:
                scope.work, scope.outcome = None, Stand.STOPPED
            scope.questions.clear()
        self.root.ended = now

    def _finish(self, scope: ScopeOnBoard, last: str) -> None:
        scope.work = None
        scope.finished += 1
        scope.last = last

    def _land(self, event: Event, child: str) -> None:
        """A landing is told of the parent, about its child."""
        scope = self._child(self._scope(event), child, event.when)
        stand = _LANDINGS.get(event.kind)
        scope.outcome = stand or _REPLAYED.get(_word(event.details, "result"), Stand.IDLE)
        scope.ended = event.when if scope.outcome in DONE else None

    def _scope(self, event: Event) -> ScopeOnBoard:
        return self._at(event.namespace, event.when)

    def _at(self, path: str, when: datetime) -> ScopeOnBoard:
        scope = self.root
        for name in filter(None, path.split("/")):
            scope = self._child(scope, one_line(name), when)
        return scope

    def _child(self, parent: ScopeOnBoard, name: str, when: datetime) -> ScopeOnBoard:
        return parent.children.setdefault(name, ScopeOnBoard(name, when))

    def _all(
        self, scope: ScopeOnBoard, depth: int, *, below_done: bool = True
    ) -> Iterator[tuple[int, ScopeOnBoard]]:
        yield depth, scope
        if below_done or not scope.is_done:
            for child in scope.children.values():
                yield from self._all(child, depth + 1, below_done=below_done)


def _word(details: Mapping[str, object], name: str) -> str:
    value = details.get(name)
    return "" if value is None else one_line(str(value))


def _model(text: str) -> str:
    """A model's name without its provider; of a script without its folders."""
    return text.partition(":")[2].rpartition("/")[2] or text


def _with_time(about: str, details: Mapping[str, object]) -> str:
    duration = details.get("duration_s")
    return f"{about} in {duration:.1f}s" if isinstance(duration, int | float) else about


def _usage(details: Mapping[str, object]) -> Usage:
    usage = details.get("usage")
    if not isinstance(usage, Mapping):
        return Usage()
    cost = usage.get("cost_usd")
    return Usage(
        _count(usage.get("input_tokens")),
        _count(usage.get("output_tokens")),
        _count(usage.get("cached_tokens")),
        cost if isinstance(cost, int | float) else None,
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
