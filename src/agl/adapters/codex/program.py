"""Which `codex` is run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import codex_cli_bin

from agl.ports.errors import UpstreamError
from agl.ports.processes import Command, NotStarted, Processes
from agl.ports.programs import PROBE_S, Program, Wanted

LEAST: Final = (0, 163, 0)
"""The one that all here was measured with."""

_HOW = "`codex update`, or `pip install -U 'agl[codex]'`, which brings its own"


def bundled() -> Path:
    """Where the package brings its program."""
    return Path(codex_cli_bin.__file__).parent / "bin" / "codex"


def wanted(own: Path) -> Wanted:
    """The user's own, or `own`."""
    return Wanted("codex", LEAST, own, "openai-codex-cli-bin", _HOW)


async def can_confine(processes: Processes, program: Program, env: Mapping[str, str]) -> bool:
    """Whether the program's sandbox works on this machine."""
    argv = (str(program.path), "sandbox", "-P", ":read-only", "true")
    try:
        done = await processes.run(Command(argv, Path("/"), env, timeout_s=PROBE_S))
    except NotStarted:
        return False
    if done.timed_out:
        raise UpstreamError(f"{program} said nothing of its sandbox for {PROBE_S:g} s; try again")
    return done.status == 0
