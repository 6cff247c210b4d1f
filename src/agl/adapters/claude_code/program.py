"""Which `claude` is run, and how it is started."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import claude_agent_sdk

from agl.ports.programs import Program, Wanted

LEAST: Final = (2, 1, 248)
"""The first that takes a prompt as it is (the SDK's `verbatim_prompts`)."""

_HOW = "`claude update`, or `pip install -U 'agl[claude-code]'`, which brings its own"


def bundled() -> Path:
    """Where the SDK brings its program."""
    return Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"


def wanted(own: Path) -> Wanted:
    """The user's own, or `own`."""
    return Wanted("claude", LEAST, own, "claude-agent-sdk", _HOW)


@contextmanager
def wrapped(program: Program, inherited: Collection[str]) -> Iterator[Path]:
    """A script in front of the program: a session of its own, no variable that the SDK would hand
    on beside those it was given, and an end with this process where the system can."""
    with tempfile.TemporaryDirectory(prefix="agl-claude-") as folder:
        script = Path(folder, "claude")
        words = ["env", *(word for name in sorted(inherited) for word in ("-u", name))]
        line = shlex.join([*program.tether, *words, str(program.path)])
        script.write_text(f'#!/bin/sh\nexec {line} "$@"\n')
        script.chmod(0o700)
        yield script
