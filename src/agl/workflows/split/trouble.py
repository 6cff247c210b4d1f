"""Why a landing waits, in words for a person and for an agent."""

from __future__ import annotations

from dataclasses import dataclass

from agl.sdk import Landing, Verdict

_NOT_RUN = (126, 127)  # POSIX sh: the command cannot be executed, or was not found
_LAST_LINES = 5


@dataclass(frozen=True)
class Trouble:
    """What is wrong: `name` in two words, `problems` for the agent that is to repair it, `lines`
    for a person, `brief` on one line. `is_repairable`: an agent can do something about it."""

    name: str
    problems: tuple[str, ...]
    lines: tuple[str, ...]
    brief: str
    is_conflict: bool = False
    is_repairable: bool = True


def trouble_with(landing: Landing) -> Trouble:
    """Why a landing is held: a conflict, or else a red build."""
    if landing.verdict is not None:
        return red_build(landing.verdict)
    paths = tuple(f"{one.path}: {one.kind}" for one in landing.conflict.paths)
    problems = tuple(f"conflict in {path}" for path in paths)
    return Trouble("conflict", problems, paths, "; ".join(paths), is_conflict=True)


def red_build(verdict: Verdict) -> Trouble:
    note = f" ({verdict.note})" if verdict.note else ""
    said = f"the build failed with status {verdict.status}{note}"
    last = [line for line in verdict.tail.splitlines() if line.strip()][-_LAST_LINES:]
    problem = f"{said}:\n{verdict.tail}" if last else said
    could_run = not verdict.note and verdict.status not in _NOT_RUN
    brief = ": ".join((said, *last[-1:]))
    if not could_run:
        brief += "; `agl init --build CMD` changes the build"
    return Trouble("red build", (problem,), (said, *last), brief, is_repairable=could_run)
