"""What happened, told upward: frozen, JSON-able, in the past tense."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from agl.ports.store import Document


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened in a run. `kind` is one of KINDS, `namespace` the scope's path joined
    with `/` (empty for the run's own), `about` the step, command or title it concerns, `details`
    what else there is to know, as JSON."""

    kind: str
    when: datetime
    namespace: str = ""
    about: str = ""
    details: Mapping[str, object] = field(default_factory=dict)


Emit = Callable[[Event], None]
"""Takes an event. Synchronous, cheap, never raises."""

KINDS = {
    "run_started": "the workflow's function was entered; details: workflow, epoch, resumed",
    "source_changed": "a new epoch was opened; details: epoch, changed",
    "step_started": "an agent was started; details: model, nth, attempt",
    "step_replayed": "a recorded step was served; details: head",
    "step_finished": "an entry was written; details: head, changed, duration_s, usage",
    "step_failed": "an agent or its ending failed; details: error",
    "waiting": "a provider cannot answer now, and is waited for; details: why, seconds, until",
    "step_stopped": "an agent was stopped, by a signal or because a step beside it failed",
    "agent_equipped": "what an agent works with; details: program, sandbox (empty: none)",
    "agent_acted": "one line on what the agent is doing; details: activity",
    "agent_said": "text of the agent; details: text",
    "verify_started": "the build was started",
    "verify_finished": "a verdict was recorded; details: passed, status, note",
    "verify_replayed": "a recorded verdict was served; details: passed",
    "child_started": "a child was begun; details: start, replayed",
    "landing_started": "a child's head is being merged into its parent; details: child",
    "landed": "the merge passed the build and was recorded; details: head, status, note",
    "landed_nothing": "the parent had all that the child has; details: head",
    "landing_conflicted": "the landing waits for its conflicts to be resolved; details: paths",
    "landing_refused": "the landing waits, the build failed on it; details: status, note",
    "landing_released": "the landing that waited gave way to another, what was typed is kept",
    "landing_aborted": "the landing was given up; details: head",
    "landing_replayed": "a recorded state of a landing was served; details: result",
    "asked": "a question was put to the person",
    "answered": "an answer was recorded; details: answer",
    "recorded": "an outside fact was recorded",
    "kept": "something was set aside; details: name, why",
    "survivors_ended": "processes of this run were found and ended; details: processes",
    "entry_set_aside": "a recorded entry could not be used; details: file, why",
    "warned": "something a person should know; details: text",
    "run_ended": "the workflow returned or raised; details: outcome, message, head",
}


def event_to_json(event: Event) -> Document:
    return {
        "kind": event.kind,
        "when": event.when.isoformat(),
        "namespace": event.namespace,
        "about": event.about,
        "details": dict(event.details),
    }


def line_about(event: Event) -> str:
    """One line for a person; details that are missing are left out."""
    what = _what_happened(event.kind, event.about, _Details(event.details))
    return f"[{event.namespace}] {what}" if event.namespace else what


def _what_happened(kind: str, about: str, details: _Details) -> str:
    match kind:
        case "run_started":
            begun = "resumed" if details.get("resumed") is True else "started"
            return f"workflow {details.text('workflow') or about} {begun}"
        case "source_changed":
            return f"changed since: {details.text('changed')}; epoch {details.text('epoch')}"
        case "step_started":
            return f"{about}: started{details.nth()}{details.text('model', ' on {}')}"
        case "step_replayed":
            return f"{about}: recorded before, not run again"
        case "step_finished":
            return f"{about}: done{details.results()}"
        case "step_stopped":
            return f"{about}: stopped"
        case "waiting":
            return f"{about}: waiting until {details.text('until')}: {details.text('why')}"
        case "step_failed":
            return f"{about}: failed{details.text('error', ': {}')}"
        case "agent_equipped":
            return f"{about}: {details.text('program')}{details.text('sandbox', ', in {}')}"
        case "agent_acted":
            return f"{about}: {details.text('activity')}"
        case "agent_said":
            return f"{about}: “{details.text('text')}”"
        case "verify_started":
            return f"verify: {about}"
        case "verify_finished":
            return f"verify: {details.verdict()}{details.text('note', ' ({})')}"
        case "verify_replayed":
            return f"verify: {details.verdict()}, recorded before"
        case "child_started":
            return f"begun at {details.text('start')[:10]}"
        case "landing_started":
            return f"landing {about}"
        case "landed":
            return f"landed {about} at {details.text('head')[:10]}"
        case "landed_nothing":
            return f"landed {about}: there was nothing to land"
        case "landing_conflicted":
            return f"landing {about}: conflict in {details.text('paths')}"
        case "landing_refused":
            return f"landing {about}: the build failed{details.text('status', ' with status {}')}"
        case "landing_released":
            return f"landing {about}: gave way to another; what was in its tree is kept"
        case "landing_aborted":
            return f"landing {about}: given up"
        case "landing_replayed":
            return f"landing {about}: {details.text('result')}, recorded before"
        case "asked":
            return f"asked: {about}"
        case "answered":
            return f"answered: {about}{details.answer()}"
        case "recorded":
            return f"recorded: {about}"
        case "kept":
            return f"kept {details.text('name') or about}{details.text('why', ': {}')}"
        case "survivors_ended":
            return f"ended what was left running: {details.text('processes')}"
        case "entry_set_aside":
            return f"set aside {details.text('file') or about}{details.text('why', ': {}')}"
        case "warned":
            return f"warning: {details.text('text')}"
        case "run_ended":
            message = details.text("message")
            outcome = details.text("outcome").replace("_", " ")
            return f"run {outcome}: {message}" if message != outcome else f"run {outcome}"
    return f"{kind} {about}".rstrip()


class _Details:
    """Details of an event, read without trust: they may come from a log."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self.get = values.get

    def text(self, name: str, pattern: str = "{}") -> str:
        """The detail on one line, put into the pattern; nothing when it is not there."""
        value = self.get(name)
        if isinstance(value, list | tuple):
            value = ", ".join(map(str, value))
        line = "" if value is None else " ".join(str(value).split())
        return pattern.format(line) if line else ""

    def nth(self) -> str:
        nth = self.get("nth")
        return f" (nth {nth})" if isinstance(nth, int) and nth > 1 else ""

    def answer(self) -> str:
        answer = self.get("answer")
        if isinstance(answer, Mapping):
            answer = answer.get("typed", answer.get("picked"))
        return f": {' '.join(str(answer).split())}" if answer is not None else ""

    def results(self) -> str:
        parts = []
        duration = self.get("duration_s")
        if isinstance(duration, int | float):
            parts.append(f" in {duration:.1f} s")
        if self.get("changed") is False:
            parts.append(", nothing changed")
        usage = self.get("usage")
        if isinstance(usage, Mapping):
            tokens = [usage.get(name) for name in ("input_tokens", "output_tokens")]
            total = sum(count for count in tokens if isinstance(count, int))
            cost = usage.get("cost_usd")
            if total:
                price = f"${cost:.4f}" if isinstance(cost, int | float) else "price unknown"
                parts.append(f", {total} tokens, {price}")
        return "".join(parts)

    def verdict(self) -> str:
        if self.get("passed") is True:
            return "passed"
        return f"failed{self.text('status', ' with status {}')}"
