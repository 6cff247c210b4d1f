"""Asking at a terminal how a project is checked."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from agl.ports.errors import InputError

if TYPE_CHECKING:
    from agl.api.builds import Detected

NONE = "none"


def is_possible() -> bool:
    """Whether a person sits at both ends."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def build_command(detected: Detected | None) -> str | None:
    """The command that the person types, Enter for the detected one, `none` for no build.

    Raises:
        InputError: the person typed nothing and nothing was detected, or went away.
    """
    default = f" [{detected.command}]" if detected else ""
    if detected:
        print(f"{detected.why}, so it may be checked with: {detected.command}", file=sys.stderr)
    prompt = f"Command that says whether a tree is good, or {NONE!r}{default}: "
    print(prompt, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    typed = line.strip()
    if typed == NONE:
        return None
    if typed:
        return typed
    if detected is None or not line:
        raise InputError("no command was typed; `agl init --no-build` does without one")
    return detected.command
