"""What a step changed that was not its own to change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agl.ports.errors import StateError
from agl.ports.guards import Reading


@dataclass(frozen=True, slots=True)
class Findings:
    """`breach` stops the run; `remarks` are told, because they may be the person's own doing."""

    breach: StateError | None
    remarks: tuple[str, ...]


def compare(
    before: Reading, after: Reading, idle: Mapping[str, str], at_work: tuple[str, ...]
) -> Findings:
    """Compares two readings around a step. `idle` are the branches of this run that no step or
    landing worked on meanwhile, each with the head it must have; `at_work` are the steps running
    meanwhile."""
    return Findings(_breach(before, after, idle, named(at_work)), _remarks(before, after))


def named(steps: Iterable[str]) -> str:
    """The steps that may have done something."""
    return "step " + " or ".join(repr(step) for step in sorted(set(steps)))


def _breach(
    before: Reading, after: Reading, idle: Mapping[str, str], suspects: str
) -> StateError | None:
    if after.broken_config is not None and before.broken_config is None:
        return StateError(f"{suspects} broke the repository: {after.broken_config}")
    for branch, head in idle.items():
        now = after.branches.get(branch)
        # One that was elsewhere before is brought back when its own scope next runs.
        if now != head and now != before.branches.get(branch):
            where = "is gone" if now is None else f"moved to {now}"
            return StateError(
                f"branch {branch!r} {where} while only {suspects} was at work;"
                f" `git update-ref refs/heads/{branch} {head}` puts it back"
            )
    return None


def _remarks(before: Reading, after: Reading) -> tuple[str, ...]:
    told = {
        "the repository's shared configuration changed": (before.config, after.config),
        "the repository's shallow file changed": (before.shallow, after.shallow),
        "the stash changed; it is one stack for all trees (`git stash list`)": (
            before.stash,
            after.stash,
        ),
        "your checkout's HEAD moved": (before.checkout, after.checkout),
    }
    return tuple(text for text, (then, now) in told.items() if then != now)
