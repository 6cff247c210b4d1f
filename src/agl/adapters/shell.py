"""The project's build, as a shell command line."""

from __future__ import annotations

import secrets
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from agl.ports.errors import UpstreamError
from agl.ports.processes import (
    Command,
    Finished,
    Marker,
    NotStarted,
    Processes,
    without_git_location,
)
from agl.ports.verifier import Verdict, Verifier

_SHELL = "/bin/sh"
_TAIL_BYTES = 20_000
_TAIL_LINES = 200
_TIMED_OUT = 124  # as timeout(1) has it


class ShellVerifier(Verifier):
    """Runs the build with `environ`, less what would send its git elsewhere. Python leaves no
    caches in the tree, unless `environ` says something of it."""

    def __init__(self, processes: Processes, environ: Mapping[str, str]) -> None:
        self._processes = processes
        self._environ = {"PYTHONDONTWRITEBYTECODE": "1", **without_git_location(environ)}

    async def verify(self, tree: Path, command: str, timeout_s: float, marker: Marker) -> Verdict:
        # An attempt of its own, so that only what this build started is ended after it.
        own = replace(marker, attempt=marker.attempt or f"verify-{secrets.token_hex(8)}")
        try:
            finished = await self._processes.run(
                Command(
                    # One pipe for both streams keeps what was written in its order.
                    argv=(_SHELL, "-c", f'exec {_SHELL} -c "$0" 2>&1', command),
                    cwd=tree,
                    env=self._environ,
                    timeout_s=timeout_s,
                    keep_bytes=_TAIL_BYTES,
                    marker=own,
                    dies_with_agl=True,
                )
            )
        except NotStarted as error:
            raise UpstreamError(f"the build did not start in {str(tree)!r}: {error}") from error
        finally:
            await self._processes.end(own)
        return _verdict(finished, timeout_s)


def _verdict(finished: Finished, timeout_s: float) -> Verdict:
    lines = finished.stdout.decode(errors="replace").splitlines(keepends=True)
    tail = "".join(lines[-_TAIL_LINES:])
    if finished.timed_out:
        return Verdict(False, _TIMED_OUT, tail, f"ended after its time limit of {timeout_s:g} s")
    if finished.status < 0:
        return Verdict(False, finished.status, tail, f"killed by {_signal(-finished.status)}")
    return Verdict(finished.status == 0, finished.status, tail)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
