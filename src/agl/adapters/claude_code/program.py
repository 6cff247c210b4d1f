"""Which `claude` is run, and how it is started."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import claude_agent_sdk

from agl.ports.errors import InputError
from agl.ports.processes import Processes
from agl.ports.programs import tether, version_of

LEAST: Final = (2, 1, 248)
"""The first that takes a prompt as it is (the SDK's `verbatim_prompts`)."""

_HOW = "`claude update`, or `pip install -U 'agl[claude-code]'`, which brings its own"


@dataclass(frozen=True, slots=True)
class Program:
    """A `claude` of this machine. `is_bundled`: it came with the SDK. `tether`: what to put before
    it so that it ends with this process."""

    path: Path
    version: tuple[int, ...]
    is_bundled: bool = False
    tether: tuple[str, ...] = ()

    def __str__(self) -> str:
        origin = "with claude-agent-sdk" if self.is_bundled else str(self.path)
        return f"claude {'.'.join(map(str, self.version))} ({origin})"


def bundled() -> Path:
    """Where the SDK brings its program."""
    return Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"


async def find_program(processes: Processes, environ: Mapping[str, str], own: Path) -> Program:
    """The user's own, which has their login and their version, when it is new enough; else `own`,
    that of the SDK.

    Raises:
        InputError: there is none, or none that is new enough.
        UpstreamError: there is one, and it does not say what it is.
    """
    found: list[str] = []
    on_path = shutil.which("claude", path=environ.get("PATH", os.defpath))
    for path in ([Path(on_path)] if on_path else []) + ([own] if own.is_file() else []):
        version = await version_of(processes, path, environ)
        if version >= LEAST:
            return Program(path, version, path == own, await tether(processes, environ))
        found.append(f"{str(path)!r} is {'.'.join(map(str, version))}")
    least = ".".join(map(str, LEAST))
    if found:
        raise InputError(f"claude is too old: {', '.join(found)}, not {least} or newer; {_HOW}")
    raise InputError(f"there is no claude, {least} or newer, on PATH; install it, or {_HOW}")


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
