"""Which `codex` is run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import codex_cli_bin

from agl.ports.errors import InputError
from agl.ports.processes import Command, NotStarted, Processes
from agl.ports.programs import PROBE_S, tether, version_of

LEAST: Final = (0, 163, 0)
"""The one that all here was measured with."""

_HOW = "`codex update`, or `pip install -U 'agl[codex]'`, which brings its own"


@dataclass(frozen=True, slots=True)
class Program:
    """A `codex` of this machine. `is_bundled`: it came with the package. `tether`: what to put
    before it so that it ends with this process."""

    path: Path
    version: tuple[int, ...]
    is_bundled: bool = False
    tether: tuple[str, ...] = ()

    def __str__(self) -> str:
        origin = "with openai-codex-cli-bin" if self.is_bundled else str(self.path)
        return f"codex {'.'.join(map(str, self.version))} ({origin})"


def bundled() -> Path:
    """Where the package brings its program."""
    return Path(codex_cli_bin.__file__).parent / "bin" / "codex"


async def find_program(processes: Processes, environ: Mapping[str, str], own: Path) -> Program:
    """The user's own, which has their login and their version, when it is new enough; else `own`,
    that of the package.

    Raises:
        InputError: there is none, or none that is new enough.
        UpstreamError: there is one, and it does not say what it is.
    """
    found: list[str] = []
    on_path = shutil.which("codex", path=environ.get("PATH", os.defpath))
    for path in ([Path(on_path)] if on_path else []) + ([own] if own.is_file() else []):
        version = await version_of(processes, path, environ)
        if version >= LEAST:
            return Program(path, version, path == own, await tether(processes, environ))
        found.append(f"{str(path)!r} is {'.'.join(map(str, version))}")
    least = ".".join(map(str, LEAST))
    if found:
        raise InputError(f"codex is too old: {', '.join(found)}, not {least} or newer; {_HOW}")
    raise InputError(f"there is no codex, {least} or newer, on PATH; install it, or {_HOW}")


async def can_confine(processes: Processes, program: Program, env: Mapping[str, str]) -> bool:
    """Whether the program's sandbox works on this machine."""
    argv = (str(program.path), "sandbox", "-P", ":read-only", "true")
    try:
        done = await processes.run(Command(argv, Path("/"), env, timeout_s=PROBE_S))
    except NotStarted:
        return False
    return done.status == 0
