"""What a resume costs that runs nothing: reading what is recorded, and replaying it."""

from __future__ import annotations

import asyncio
import dataclasses
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from agl.adapters.filesystem.store import encoded
from agl.api import runs
from agl.api.endings import Report
from agl.ports.ids import Label, Scope
from agl.ports.ledger import Entry, entry_address
from agl.ports.ledger_json import entry_to_json
from agl.sdk import Run, Workflow, workflow
from agl.sdk._engine.ledger import Ledger
from bench import processes
from bench.agent import BenchAgent, reporter, writer
from bench.figures import Figure
from bench.world import World

LABEL = Label("replay")
NOTE_CHARS = 1000
ROUNDS = 3
"""The quickest counts: nothing here waits for a disk, so the rest is other programs' doing."""


@dataclass(slots=True, order=True)
class Replay:
    """One resume, and of it the workflow's own loop over its steps."""

    total_s: float = 0.0
    total_cpu_s: float = 0.0
    loop_s: float = 0.0
    started: int = 0


def measure(folder: Path, entries: int, aim_s: float | None = None) -> list[Figure]:
    world = World.make(folder, files=50)
    with (folder / "progress").open("w") as out:
        _record(world, entries, out)
        best = min(_replayed(world, entries, out) for _ in range(ROUNDS))
        tracemalloc.start()
        _resume(world, entries, Replay(), out)
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    what = f"replay of {entries:,} entries"
    return [
        Figure(what, best.total_s, "s", aim_s),
        Figure(f"{what}, of it at work", best.total_cpu_s, "s of CPU"),
        Figure(f"{what}, per step", best.loop_s / entries * 1000, "ms", 0.2),
        Figure(f"{what}, in all steps", best.started, "processes", 0),
        Figure(f"{what}, memory at its peak per entry", peak_bytes / entries, "bytes"),
    ]


def _replayed(world: World, entries: int, out: TextIO) -> Replay:
    replay = Replay()
    began, cpu_began = time.perf_counter(), time.process_time()
    report = _resume(world, entries, replay, out)
    replay.total_s = time.perf_counter() - began
    replay.total_cpu_s = time.process_time() - cpu_began
    assert (report.exit_code, report.replayed, report.ran) == (0, entries, 0), report
    return replay


def _flow(steps: int, replay: Replay) -> Workflow[None]:
    """Half of the steps commit, half report."""

    @workflow(version="1")
    async def flow(run: Run[None]) -> None:
        before, began = processes.started(), time.perf_counter()
        for turn in range(steps):
            if turn % 2 == 0:
                await run.step(writer(), commit="write")
            else:
                await run.step(reporter())
        replay.loop_s = time.perf_counter() - began
        replay.started = processes.started() - before

    return flow


def _record(world: World, entries: int, out: TextIO) -> None:
    """Two steps that really ran, and copies of their entries on a branch of so many commits."""
    services = world.services(LABEL, BenchAgent(NOTE_CHARS), out)
    loaded = runs.Loaded("bench", _flow(2, Replay()))
    asyncio.run(runs.run(services, loaded, LABEL, params=None))
    scope = Scope(services.project, LABEL)
    first, second = Ledger(services.store, scope).entries(scope)
    commits = _commits(world, scope.branch, first.head_after, entries // 2 - 1)
    for entry in _copies(first, second, commits):
        address = entry_address(scope, entry)
        file = world.home.joinpath(*address[:-1], f"{address[-1]}.json")
        file.write_bytes(encoded(entry_to_json(entry)))


def _copies(commit: Entry, report: Entry, heads: list[str]) -> Iterator[Entry]:
    before = commit.head_after
    for ordinal, head in enumerate(heads, start=1):
        yield dataclasses.replace(
            commit,
            number=2 * ordinal + 1,
            ordinal=ordinal,
            head_before=before,
            head_after=head,
        )
        yield dataclasses.replace(
            report, number=2 * ordinal + 2, ordinal=ordinal, head_before=head, head_after=head
        )
        before = head


def _commits(world: World, branch: str, start: str, count: int) -> list[str]:
    """So many more commits on the branch, each with its own text in one file."""
    stream = [f"reset refs/heads/{branch}\nfrom {start}\n\n"]
    for number in range(count):
        stream.append(
            f"commit refs/heads/{branch}\ncommitter A Person <person@example.org> {number} +0000\n"
            f"data 1\nw\nM 644 inline written1.txt\ndata {len(str(number))}\n{number}\n\n"
        )
    world.git("fast-import", "--quiet", stdin="".join(stream).encode())
    return world.git("rev-list", "--reverse", f"{start}..{branch}").split()


def _resume(world: World, entries: int, replay: Replay, out: TextIO) -> Report:
    services = world.services(LABEL, BenchAgent(NOTE_CHARS), out)
    Ledger(services.store, Scope(services.project, LABEL)).remove_outcome()
    loaded = runs.Loaded("bench", _flow(entries, replay))
    return asyncio.run(runs.resume(services, lambda _: loaded, LABEL))
