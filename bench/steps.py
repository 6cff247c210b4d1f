"""What a step costs besides its agent, in git processes and in time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

from agl.api import runs
from agl.ports.ids import Label
from agl.sdk import Run, workflow
from bench import processes
from bench.agent import BenchAgent, looker, reporter, writer
from bench.figures import Figure
from bench.world import World

Step = Callable[[Run[None]], Awaitable[object]]

KINDS: dict[str, tuple[Step, int]] = {
    "changes nothing": (lambda run: run.step(looker()), 2),
    "reports": (lambda run: run.step(reporter()), 2),
    "commits": (lambda run: run.step(writer(), commit="write"), 4),
}
"""Each kind of step with the most git processes it should take."""


def measure(folder: Path, files: int, steps: int) -> list[Figure]:
    world = World.make(folder, files)
    figures = []
    for kind, (step, aim) in KINDS.items():
        started, took_ms = _run_of(world, kind.replace(" ", "-"), step, steps)
        what = f"step that {kind}, {files:,} files"
        figures += [Figure(what, started, "processes", aim), Figure(what, took_ms, "ms")]
    figures.append(Figure(f"bare `git status`, {files:,} files", _bare_ms(world, steps), "ms"))
    return figures


def _run_of(world: World, label: str, step: Step, steps: int) -> tuple[float, float]:
    """A run of so many steps: the medians of processes and milliseconds for each of them."""
    started: list[int] = []
    took_s: list[float] = []

    @workflow(version="1")
    async def flow(run: Run[None]) -> None:
        for _ in range(steps):
            before, began = processes.started(), time.perf_counter()
            await step(run)
            took_s.append(time.perf_counter() - began)
            started.append(processes.started() - before)

    with (world.folder / "progress").open("w") as out:
        services = world.services(Label(label), BenchAgent(), out)
        report = asyncio.run(
            runs.run(services, runs.Loaded("bench", flow), Label(label), params=None)
        )
    assert report.exit_code == 0, report.message
    return median(started), median(took_s) * 1000


def _bare_ms(world: World, rounds: int) -> float:
    """The peer: one git process that looks for changes, started as simply as can be."""
    took_s = []
    for _ in range(rounds):
        began = time.perf_counter()
        world.git("status", "--porcelain")
        took_s.append(time.perf_counter() - began)
    return median(took_s) * 1000
