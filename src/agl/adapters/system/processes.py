"""Child processes, and the certainty that they are gone."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO

from agl.adapters.system.ending import Brood, end_all, group_is_empty
from agl.adapters.system.output import Output
from agl.adapters.system.table import Process, lineage, this_table
from agl.ports.processes import (
    ATTEMPT_VARIABLE,
    RUN_VARIABLE,
    Command,
    Finished,
    LineSink,
    Marker,
    NotStarted,
    Processes,
    Stream,
    Survivor,
)
from agl.ports.shielding import finish


class SystemProcesses(Processes):
    """Children of this process. `grace_s` lies between TERM and KILL; `drain_s` is how long a pipe
    that outlives its child is read on."""

    def __init__(self, *, grace_s: float = 2.0, drain_s: float = 0.25) -> None:
        self._grace_s = grace_s
        self._drain_s = drain_s
        self._table = this_table()
        self._tether: tuple[str, ...] | None = None
        # Where SIGCHLD was inherited as ignored, the kernel keeps no exit status (waitpid(2)) and
        # Python takes it to be 0.
        if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    async def run(self, command: Command, on_line: LineSink | None = None) -> Finished:
        began = time.monotonic()
        child = _Child(self._start(command), command.keep_bytes, on_line)
        timed_out = False
        try:
            await asyncio.wait({child.exited}, timeout=command.timeout_s)
            timed_out = not child.exited.done()
        finally:
            await finish(self._finish(child))
        return Finished(
            status=child.exited.result(),
            stdout=child.stdout.tail,
            stderr=child.stderr.tail,
            stdout_bytes=child.stdout.total_bytes,
            stderr_bytes=child.stderr.total_bytes,
            timed_out=timed_out,
            duration_s=time.monotonic() - began,
        )

    async def end(self, marker: Marker) -> tuple[Survivor, ...]:
        wanted = {os.fsencode(f"{name}={value}") for name, value in _variables(marker).items()}
        brood = Brood()
        names: dict[int, str] = {}

        def find() -> list[Process]:
            snapshot = self._table.look()
            spared = lineage(snapshot, os.getpid())
            marked = {
                pid for pid in snapshot.keys() - spared if wanted <= self._table.environment(pid)
            }
            found = brood.alive(snapshot, marked, spared)
            for process in found:
                names.setdefault(process.pid, self._table.command(process.pid))
            return found

        ended = await finish(end_all(find, self._grace_s))
        return tuple(Survivor(process.pid, names[process.pid]) for process in ended)

    def standing_in(self, folder: Path) -> tuple[Survivor, ...]:
        resolved = folder.resolve()
        found = []
        for pid in sorted(self._table.look().keys() - {os.getpid()}):
            stands = self._table.folder(pid)
            if stands is not None and Path(stands).is_relative_to(resolved):
                found.append(Survivor(pid, self._table.command(pid)))
        return tuple(found)

    async def _finish(self, child: _Child) -> None:
        try:
            if child.exited.done():
                await child.drained(self._drain_s)
            if not (child.exited.done() and group_is_empty(child.pid)):
                await self._end_family(child)
                await child.exited
                await child.drained(self._drain_s)
        finally:
            child.close()

    async def _end_family(self, child: _Child) -> None:
        """Ends the child with its session, and what descends from it as long as it lives."""
        brood = Brood()

        def find() -> list[Process]:
            snapshot = self._table.look()
            session = {pid for pid, each in snapshot.items() if each.session == child.pid}
            return brood.alive(snapshot, session, spared=set())

        await end_all(find, self._grace_s, group=child.pid)

    def _start(self, command: Command) -> subprocess.Popen[bytes]:
        try:
            with _stdin(command) as stdin:
                return subprocess.Popen(
                    self._argv(command),
                    cwd=command.cwd,
                    env=_environment(command),
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            program = command.argv[0]
            if not command.cwd.is_dir():
                raise NotStarted(program, f"there is no folder {str(command.cwd)!r}") from error
            reason = getattr(error, "strerror", None) or str(error)
            missing = isinstance(error, FileNotFoundError)
            raise NotStarted(program, reason, missing=missing) from error

    def _argv(self, command: Command) -> tuple[str, ...]:
        if not (command.dies_with_agl and (tether := self._pdeathsig())):
            return command.argv
        _check_program(command)
        return (*tether, *command.argv)

    def _pdeathsig(self) -> tuple[str, ...]:
        """What to put before a command so that the kernel kills it when this process dies."""
        if self._tether is None:
            self._tether = ()
            setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
            if setpriv is not None:
                tether = (setpriv, "--pdeathsig", "KILL", "--")
                # busybox's setpriv, and util-linux before 2.33, do not know the option.
                probe = subprocess.run((*tether, "true"), capture_output=True, check=False)
                if probe.returncode == 0:
                    self._tether = tether
        return self._tether


class _Child:
    """A started process with its pipes and its exit."""

    def __init__(
        self, process: subprocess.Popen[bytes], keep_bytes: int, on_line: LineSink | None
    ) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self.pid = process.pid
        self.exited = _exit_of(process)
        self.stdout, self.stderr = (
            Output(pipe, keep_bytes, on_line and partial(on_line, stream))
            for stream, pipe in ((Stream.STDOUT, process.stdout), (Stream.STDERR, process.stderr))
        )

    async def drained(self, within_s: float) -> None:
        """Both pipes at their end, or the time over."""
        open_ones = {out.ended for out in (self.stdout, self.stderr) if not out.ended.done()}
        if open_ones:
            await asyncio.wait(open_ones, timeout=within_s)

    def close(self) -> None:
        self.stdout.close()
        self.stderr.close()


def _exit_of(process: subprocess.Popen[bytes]) -> asyncio.Future[int]:
    loop = asyncio.get_running_loop()
    exited: asyncio.Future[int] = loop.create_future()
    try:
        handle = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # macOS; Linux before 5.3
        threading.Thread(
            target=lambda: loop.call_soon_threadsafe(exited.set_result, process.wait()),
            daemon=True,
        ).start()
        return exited

    def reap() -> None:
        loop.remove_reader(handle)
        os.close(handle)
        exited.set_result(process.wait())

    loop.add_reader(handle, reap)
    return exited


def _variables(marker: Marker) -> dict[str, str]:
    variables = {RUN_VARIABLE: marker.run}
    if marker.attempt is not None:
        variables[ATTEMPT_VARIABLE] = marker.attempt
    return variables


def _environment(command: Command) -> Mapping[str, str]:
    if command.marker is None:
        return command.env
    inherited = {
        name: value
        for name, value in command.env.items()
        if name not in (RUN_VARIABLE, ATTEMPT_VARIABLE)
    }
    return inherited | _variables(command.marker)


@contextmanager
def _stdin(command: Command) -> Iterator[IO[bytes] | int]:
    """What the child reads, as a file without a name: it cannot block, and may be left unread."""
    if not command.stdin:
        yield subprocess.DEVNULL
        return
    with ExitStack() as stack:
        try:
            file = stack.enter_context(tempfile.TemporaryFile())
            file.write(command.stdin)
            file.seek(0)
        except OSError as error:
            raise NotStarted(command.argv[0], f"its input cannot be stored: {error}") from error
        yield file


def _check_program(command: Command) -> None:
    """Raises what starting the program itself would."""
    program = command.argv[0]
    if "/" not in program:
        program = shutil.which(program, path=command.env.get("PATH", os.defpath)) or ""
    path = command.cwd / program
    if not program or not path.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    if not os.access(path, os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
