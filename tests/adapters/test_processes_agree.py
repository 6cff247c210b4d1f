"""Programs in memory and on the system: whatever is done with them in whatever order, both answer
the same."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from agl.adapters.memory.processes import Ended, MemoryProcesses
from agl.adapters.system import SystemProcesses
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

FOLDERS = ("tree", "tree/below", "tree-2", "gone")
HANGS = ("sleep", "60")
ENV = {"PATH": os.environ.get("PATH", os.defpath)}
# A shell would have to start others to wait, and they would be seen.
PYTHON = (sys.executable, "-I", "-S", "-c")
TIDY = """import os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b"bye"), os._exit(7)))
open(sys.argv[1], "x").close()
while True: signal.pause()"""

folders = st.sampled_from([*FOLDERS[:-1] * 3, "gone"])
runs = st.sampled_from(["a", "a", "b"])
attempts = st.sampled_from([None, None, "1", "1", "2"])


@dataclass(frozen=True)
class Says:
    """A program that writes and ends."""

    program: str
    folder: str
    writes: Sequence[tuple[Stream, bytes]]
    stdin: bytes | None
    status: int
    keep_bytes: int
    dies_with_agl: bool


@dataclass(frozen=True)
class Starts:
    """A program that never ends by itself; a tidy one puts things in order when it is told to."""

    folder: str
    run: str
    attempt: str | None
    marked: bool
    limited: bool
    tidy: bool

    def is_ended_by(self, ends: Ends) -> bool:
        return self.marked and self.run == ends.run and ends.attempt in (None, self.attempt)


@dataclass(frozen=True)
class Ends:
    run: str
    attempt: str | None


@dataclass(frozen=True)
class Cancels:
    nth: int


Call = Says | Starts | Ends | Cancels

pieces = st.lists(st.sampled_from([b"a", b"\r", b"\n", b"\r\n", b"\0\xff%\\", b"x" * 300]))
says = st.builds(
    Says,
    program=st.sampled_from(["/bin/sh"] * 7 + ["agl-no-such-program"]),
    folder=folders,
    writes=st.lists(st.tuples(st.sampled_from(Stream), pieces.map(b"".join)), max_size=4),
    stdin=st.none() | pieces.map(b"".join),
    status=st.sampled_from([0, 1, 3, 255, -9, -15]),
    keep_bytes=st.sampled_from([0, 1, 5, 1_000_000]),
    dies_with_agl=st.booleans(),
)
starts = st.builds(
    Starts,
    folder=folders,
    run=runs,
    attempt=attempts,
    marked=st.integers(0, 3).map(bool),
    limited=st.integers(0, 3).map(lambda n: n == 0),
    tidy=st.booleans(),
)
ends = st.builds(Ends, runs, attempts)
cancels = st.builds(Cancels, st.integers(0, 9))
often: list[st.SearchStrategy[Call]] = [says, says, starts, starts, starts, ends, ends, cancels]
calls = st.sampled_from(often).flatmap(lambda strategy: strategy)


def script_of(says: Says) -> str:
    """What it does, for a shell."""
    lines = [
        f"printf '{''.join(f'{chr(92)}{byte:03o}' for byte in data)}'"
        + (" >&2" if stream is Stream.STDERR else "")
        for stream, data in says.writes
    ]
    if says.stdin is not None:
        lines.append("cat")
    lines.append(f"exit {says.status}" if says.status >= 0 else f"kill {says.status} $$")
    return "\n".join(lines)


def ended_of(says: Says) -> Ended:
    """What it does, for the memory."""
    written = {
        stream: b"".join(data for to, data in says.writes if to is stream) for stream in Stream
    }
    out = written[Stream.STDOUT] + (says.stdin or b"")
    return Ended(says.status, out, written[Stream.STDERR])


def memory_processes(called: Sequence[Call]) -> MemoryProcesses:
    spoken = {script_of(says): says for says in called if isinstance(says, Says)}

    async def shell(command: Command) -> Ended:
        return ended_of(replace(spoken[command.argv[2]], stdin=command.stdin or None))

    async def tidy(command: Command) -> Ended:
        try:
            Path(command.cwd, command.argv[-1]).touch(exist_ok=False)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return Ended(7, b"bye")
        return Ended()

    async def sleep(command: Command) -> Ended:
        await asyncio.Event().wait()
        return Ended()

    return MemoryProcesses({"/bin/sh": shell, sys.executable: tidy, "sleep": sleep})


class Hand:
    """Does the calls on one side and notes what came of them."""

    def __init__(self, processes: Processes, place: Path) -> None:
        self.processes = processes
        self.place = place
        self.name = secrets.token_hex(8)
        self.running: list[tuple[Starts, asyncio.Task[Finished]]] = []
        self.tidied = 0
        for folder in FOLDERS[:-1]:
            (place / folder).mkdir(parents=True, exist_ok=True)

    async def all_of(self, called: Sequence[Call]) -> list[object]:
        came: list[object] = []
        try:
            for call in called:
                came.append(await self.one(call))
                came.append([self.look(folder) for folder in FOLDERS])
        finally:
            for _, run in self.running:
                run.cancel()
            await asyncio.gather(*(run for _, run in self.running), return_exceptions=True)
        return [*came, [self.look(folder) for folder in FOLDERS]]

    async def one(self, call: Call) -> object:
        match call:
            case Says():
                command = self.command(
                    (call.program, "-c", script_of(call)),
                    call.folder,
                    stdin=call.stdin or b"",
                    keep_bytes=call.keep_bytes,
                    dies_with_agl=call.dies_with_agl,
                )
                lines: list[tuple[Stream, bytes]] = []
                came = await self.came(self.run(command, lambda *line: lines.append(line)))
                return came, [[line for to, line in lines if to is stream] for stream in Stream]
            case Starts():
                return await self.start(call)
            case Ends(run, attempt):
                ended = await self.processes.end(self.marker(run, attempt))
                over = [one for one in self.running if one[0].is_ended_by(call)]
                self.running = [one for one in self.running if one not in over]
                return names(ended), [await self.came(task) for _, task in over]
            case Cancels(nth):
                if not self.running:
                    return None
                _, task = self.running.pop(nth % len(self.running))
                task.cancel()
                return await self.came(task)

    async def start(self, call: Starts) -> object:
        """One without a time limit is left running, and is past its beginning."""
        tidy = call.tidy and not call.limited
        ready = f"ready-{self.tidied}"
        argv = (*PYTHON, TIDY, ready) if tidy else HANGS
        marker = self.marker(call.run, call.attempt) if call.marked else None
        command = self.command(
            argv, call.folder, marker=marker, timeout_s=0.02 if call.limited else None
        )
        run = self.run(command)
        if call.limited:
            return await self.came(run)
        await asyncio.sleep(0)
        if run.done():
            return await self.came(run)
        self.running.append((call, run))
        if tidy:
            self.tidied += 1
            async with asyncio.timeout(30):
                while not (command.cwd / ready).exists():
                    await asyncio.sleep(0.001)
        return "runs"

    def marker(self, run: str, attempt: str | None) -> Marker:
        return Marker(f"{self.name}-{run}", attempt)

    def look(self, folder: str) -> list[str]:
        return names(self.processes.standing_in(self.place / folder))

    def command(
        self,
        argv: tuple[str, ...],
        folder: str,
        *,
        stdin: bytes = b"",
        timeout_s: float | None = None,
        keep_bytes: int = 1000,
        marker: Marker | None = None,
        dies_with_agl: bool = False,
    ) -> Command:
        return Command(
            argv, self.place / folder, ENV, stdin, timeout_s, keep_bytes, marker, dies_with_agl
        )

    def run(self, command: Command, on_line: LineSink | None = None) -> asyncio.Task[Finished]:
        return asyncio.create_task(self.processes.run(command, on_line))

    async def came(self, run: asyncio.Task[Finished]) -> object:
        """What it came to; how long it took is left out."""
        try:
            async with asyncio.timeout(30):
                return replace(await run, duration_s=0)
        except asyncio.CancelledError:
            return "cancelled"
        except NotStarted as error:
            return error.program, error.missing


def names(survivors: Sequence[Survivor]) -> list[str]:
    return sorted(survivor.command[:60] for survivor in survivors)


@pytest.mark.slow
@pytest.mark.parametrize("examples", [25, pytest.param(200, marks=pytest.mark.long)])
def test_both_processes_answer_the_same(examples: int) -> None:
    # Shrinking would take minutes of processes; a dozen calls can be read as they are.
    @settings(max_examples=examples, deadline=None, phases=[Phase.generate])
    @given(st.lists(calls, min_size=8, max_size=12))
    def check(called: list[Call]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            memory, system = (
                asyncio.run(Hand(processes, Path(folder, name)).all_of(called))
                for name, processes in (
                    ("memory", memory_processes(called)),
                    ("system", SystemProcesses(grace_s=5)),
                )
            )
            assert memory == system

    check()
