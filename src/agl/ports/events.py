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
    "source_changed": "a new epoch was opened; details: epoch",
    "step_started": "an agent was started; details: model, nth, attempt",
    "step_replayed": "a recorded step was served; details: head",
    "step_finished": "an entry was written; details: head, changed, duration_s, usage",
    "step_failed": "an agent or its ending failed; details: error",
    "agent_acted": "one line on what the agent is doing; details: activity",
    "agent_said": "text of the agent; details: text",
    "verify_started": "the build was started",
    "verify_finished": "a verdict was recorded; details: passed, status, note",
    "verify_replayed": "a recorded verdict was served; details: passed",
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
