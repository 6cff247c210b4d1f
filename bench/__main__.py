"""`python -m bench`: measures, prints a table, writes JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench import (
    cold_starts,
    display,
    landing,
    loop,
    processes,
    replay,
    steps,
    vendors,
    whole_run,
    writes,
)
from bench.figures import Figure, table
from bench.world import World


def main() -> None:
    parser = argparse.ArgumentParser("bench", description="Measures AGL against its aims.")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: the counts hold, no time")
    parser.add_argument("--out", type=Path, default=Path("bench-results.json"), metavar="FILE")
    args = parser.parse_args()

    os.environ |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    processes.count()
    with tempfile.TemporaryDirectory(prefix="agl-bench-") as folder:
        figures = list(_measured(Path(folder), quick=args.quick))
    machine = _machine()
    told = ", ".join(f"{name} {value}" for name, value in machine.items())
    sys.stdout.write(f"{table(figures)}\n\n{told}\n")
    result = {
        "quick": args.quick,
        "machine": machine,
        "figures": [figure.json for figure in figures],
    }
    args.out.write_text(json.dumps(result, ensure_ascii=False, indent=2) + "\n")


def _measured(folder: Path, *, quick: bool) -> Iterator[Figure]:
    agl = str(Path(sys.executable).with_name("agl"))
    world = World.make(folder / "commands", files=50)
    whole = whole_run.measure(world, agl, rounds=1 if quick else 5)
    yield from cold_starts.measure(world, agl, rounds=1 if quick else 20)
    for files in (5,) if quick else (50, 5000):
        yield from steps.measure(folder / f"steps{files}", files, steps=3 if quick else 20)
    for files in (5,) if quick else (50, 5000):
        counts = (1, 2) if quick else (1, 4, 24)
        yield from landing.measure(folder / f"children{files}", files, counts)
    for entries, aim_s in ((20, None),) if quick else ((200, None), (10_000, 3.0)):
        yield from replay.measure(folder / f"replay{entries}", entries, aim_s)
    yield from writes.measure(folder / "writes", *((20, 5) if quick else (10_000, 100)))
    yield from loop.measure(folder / "loop", quick=quick)
    yield from display.measure(*((20, 0.3) if quick else (200, 5.0)))
    yield from whole
    rounds, agents = (1, 2) if quick else (7, 8)
    yield from vendors.measure(folder / "vendors", agl, rounds=rounds, agents=agents)


def _machine() -> dict[str, object]:
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True)
    return {
        "python": platform.python_version(),
        "git": git.stdout.strip().removeprefix("git version "),
        "system": platform.platform(),
        "cpus": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }


main()
