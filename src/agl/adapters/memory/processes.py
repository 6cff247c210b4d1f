"""Programs that are functions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
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


Program = Callable[[Command], Awaitable[Ended]]


class MemoryProcesses(Processes):
    """Runs `programs`, by the first word of a command. `ran` holds what was run, in order."""

    def __init__(self, programs: Mapping[str, Program]) -> None:
        self._programs = programs
        self.ran: list[Command] = []

    async def run(self, command: Command, on_line: LineSink | None = None) -> Finished:
        began = time.monotonic()
        program = self._programs.get(command.argv[0])
        if program is None:
            raise NotStarted(command.argv[0], "there is no such program", missing=True)
        self.ran.append(command)
        timed_out = False
        try:
            async with asyncio.timeout(command.timeout_s):
                ended = await program(command)
        except TimeoutError:
            timed_out = True
            ended = Ended(status=-9)
        if on_line is not None:
            for stream, output in ((Stream.STDERR, ended.stderr), (Stream.STDOUT, ended.stdout)):
                for line in output.removesuffix(b"\n").split(b"\n") if output else ():
                    on_line(stream, line.removesuffix(b"\r"))
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
        return ()

    def standing_in(self, folder: Path) -> tuple[Survivor, ...]:
        return ()


def _last(output: bytes, keep_bytes: int) -> bytes:
    return output[max(0, len(output) - keep_bytes) :]
