"""What a child costs: its tree, one commit, its landing; alone and many at once."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from agl.api import runs
from agl.ports.ids import Label
from agl.sdk import Run, workflow
from bench import processes
from bench.agent import BenchAgent, writer
from bench.figures import Figure
from bench.world import World

AIM = 14
"""The most git processes for a child's tree, its commit and its landing (no build)."""


def measure(folder: Path, files: int, counts: tuple[int, ...]) -> list[Figure]:
    world = World.make(folder, files)
    figures = []
    for count in counts:
        started, took_ms = _run_of(world, count)
        what = f"child + commit + landing, {count} at once, {files:,} files"
        figures += [
            Figure(f"{what}, each", started / count, "processes", AIM),
            Figure(f"{what}, each", took_ms / count, "ms"),
        ]
    return figures


def _run_of(world: World, count: int) -> tuple[int, float]:
    """Processes and milliseconds of all the children together."""

    async def one(run: Run[None], number: int) -> None:
        child = run.worktree(f"c{number}")
        await child.step(writer(), commit="write", number=number)
        landing = await child.integrate()
        assert landing.landed

    taken: list[tuple[int, float]] = []

    @workflow(version="1")
    async def flow(run: Run[None]) -> None:
        before, began = processes.started(), time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(one(run, number))
        taken.append((processes.started() - before, (time.perf_counter() - began) * 1000))

    label = Label(f"children-{count}")
    with (world.folder / "progress").open("w") as out:
        services = world.services(label, BenchAgent(by_namespace=True), out)
        report = asyncio.run(runs.run(services, runs.Loaded("bench", flow), label, params=None))
    assert report.exit_code == 0, report.message
    return taken[0]
