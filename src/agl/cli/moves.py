"""What to type next."""

from __future__ import annotations

import shlex

from agl.ports.errors import InputError, NotFoundError


def switch_to(branch: str, *, bare: bool) -> str:
    """How to look at a branch; a bare repository has no working tree of its own."""
    if not bare:
        return f"git switch {shlex.quote(branch)}"
    folder = f"../{branch.rpartition('/')[2]}"
    return f"git worktree add {shlex.quote(folder)} {shlex.quote(branch)}"


def is_in_vain(exit_code: int | None, *, has_work: bool) -> bool:
    """Whether a run met what a resume meets again, before a step was recorded: its parameters
    cannot be changed any more, and there is no work to lose."""
    return exit_code in (InputError.exit_code, NotFoundError.exit_code) and not has_work


def next_of(state: str, result: str, label: str, branch: str, *, bare: bool) -> str:
    """The next command for a run in that state; `bare`: no working tree is here to switch."""
    match state:
        case "running":
            return ""
        case "finished" if result == "not_landed":
            return f"agl diff {label}"
        case "finished" if result != "landed":
            return f"agl clear {label}"
        case "finished":
            return switch_to(branch, bare=bare)
        case "needs_answer":
            return f"agl resume {label} at a terminal, or with --answers FILE"
        case "stopped":
            return f"agl resume {label} --again STEP runs again from a step on"
    return f"agl resume {label}"
