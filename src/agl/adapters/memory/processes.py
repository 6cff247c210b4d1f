"""Programs that are functions."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agl.ports.processes import (
    Command,
    Finished,
    LineSink,
    Marker,
    NotStarted,
    Processes,
    Stream,
    Survivor,
)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended, and all that it wrote."""

    status: int = 0
    stdout: bytes = b""
    stderr: bytes = b""


Program = Callable[[Command], Coroutine[object, object, Ended]]
"""What a program does. TERM cancels it; one that then returns has put things in order first."""


class MemoryProcesses(Processes):
    """Runs `programs`, by the first word of a command. `ran` holds what was run, in order. A pid is
    the place in it."""

    def __init__(self, programs: Mapping[str, Program]) -> None:
        self._programs = programs
        self._running: dict[asyncio.Task[Ended], Survivor] = {}
        self.ran: list[Command] = []

    async def run(self, command: Command, on_line: LineSink | None = None) -> Finished:
        began = time.monotonic()
        running = self._start(command)
        try:
            await asyncio.wait({running}, timeout=command.timeout_s)
        finally:
            timed_out = not running.done()
            running.cancel()
            await asyncio.wait({running})
        ended = Ended(-signal.SIGTERM) if running.cancelled() else running.result()
        if on_line is not None:
            for stream, output in ((Stream.STDERR, ended.stderr), (Stream.STDOUT, ended.stdout)):
                for line in _lines(output):
                    on_line(stream, line)
        return Finished(
            status=ended.status,
            stdout=_last(ended.stdout, command.keep_bytes),
            stderr=_last(ended.stderr, command.keep_bytes),
            stdout_bytes=len(ended.stdout),
            stderr_bytes=len(ended.stderr),
            timed_out=timed_out,
            duration_s=time.monotonic() - began,
        )

    async def end(self, marker: Marker) -> tuple[Survivor, ...]:
        found = {
            running: survivor
            for running, survivor in self._running.items()
            if _carries(self.ran[survivor.pid].marker, marker)
        }
        for running in found:
            running.cancel()
        if found:
            await asyncio.wait(found)
        return tuple(found.values())

    def standing_in(self, folder: Path) -> tuple[Survivor, ...]:
        resolved = folder.resolve()
        return tuple(
            survivor
            for survivor in self._running.values()
            if self.ran[survivor.pid].cwd.resolve().is_relative_to(resolved)
        )

    def _start(self, command: Command) -> asyncio.Task[Ended]:
        name = command.argv[0]
        if not command.cwd.is_dir():
            raise NotStarted(name, f"there is no folder {str(command.cwd)!r}")
        program = self._programs.get(name)
        if program is None:
            raise NotStarted(name, "there is no such program", missing=True)
        running = asyncio.create_task(program(command))
        self._running[running] = Survivor(len(self.ran), " ".join(command.argv))
        running.add_done_callback(self._running.pop)
        self.ran.append(command)
        return running


def _carries(carried: Marker | None, marker: Marker) -> bool:
    return carried is not None and marker in (carried, Marker(carried.run))


def _lines(output: bytes) -> Iterator[bytes]:
    """Without their ends; what came of the last line is a line."""
    *whole, rest = output.split(b"\n")
    for line in whole:
        yield line.removesuffix(b"\r")
    if rest:
        yield rest


def _last(output: bytes, keep_bytes: int) -> bytes:
    return output[max(0, len(output) - keep_bytes) :]
