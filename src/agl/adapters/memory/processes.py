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
            del self._running[running]
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
        return await self._end_all(lambda command: _carries(command.marker, marker))

    def standing_in(self, folder: Path) -> tuple[Survivor, ...]:
        resolved = folder.resolve()
        return tuple(self._found(lambda one: one.cwd.resolve().is_relative_to(resolved)).values())


def _last(output: bytes, keep_bytes: int) -> bytes:
    return output[max(0, len(output) - keep_bytes) :]
