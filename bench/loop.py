"""The built-in loop beside glia 0.8.2, on the same scripted work in the same run. Each figure is
the quickest of some rounds, a process each, the two by turns. Turns are counted in processor time:
nothing in them waits, and other work on the machine does not show."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure

GLIA = "glia-agents==0.8.2"
AIM_US = 60.0
CALLS = 50
ROUNDS = 5

_HERE = Path(__file__).parent


def measure(folder: Path, *, quick: bool) -> Iterator[Figure]:
    """With `quick`, tiny sizes and AGL alone."""
    folder.mkdir()
    rounds = 1 if quick else ROUNDS
    sides = {"agl": (sys.executable, "loop_agl.py")}
    if not quick and (python := _glia(folder)) is not None:
        sides["glia"] = (python, "loop_glia.py")
    for turns in (20,) if quick else (1_000, 10_000):
        for side, seconds in _quickest(sides, "turns", turns, rounds).items():
            yield _per_turn(f"{side} loop, {turns} turns", seconds, turns)
        path = folder / "run.jsonl"
        aim = AIM_US if turns == 10_000 else None
        seconds = _quickest({"agl": sides["agl"]}, "turns", turns, rounds, path)["agl"]
        yield _per_turn(f"agl loop, {turns} turns, checkpoint", seconds, turns, aim)
        # Its checkpoint writes the whole run anew: 22 ms a turn at 300 turns, and more with each.
        if "glia" in sides and turns == 1_000:
            seconds = _quickest({"glia": sides["glia"]}, "turns", turns, 1, path)["glia"]
            yield _per_turn(f"glia loop, {turns} turns, checkpoint", seconds, turns)
    for side, seconds in _quickest(sides, "tools", CALLS, rounds).items():
        yield Figure(f"{side} loop, {CALLS} plain tools of 100 ms at once", seconds * 1e3, "ms")
    turns = 20 if quick else 1_000
    for side, size_bytes in _quickest(sides, "memory", turns, 1).items():
        yield Figure(f"{side} loop, memory a turn", size_bytes / turns, "bytes")


def _per_turn(name: str, seconds: float, turns: int, aim: float | None = None) -> Figure:
    return Figure(name, seconds / turns * 1e6, "µs a turn", aim)


def _quickest(
    sides: dict[str, tuple[str, str]], work: str, size: int, rounds: int, path: Path | None = None
) -> dict[str, float]:
    found: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side, (python, script) in sides.items():
            if path is not None:
                path.unlink(missing_ok=True)
            arguments = [python, str(_HERE / script), work, str(size), str(path or "")]
            done = subprocess.run(arguments, capture_output=True, text=True, check=True)
            found[side].append(float(done.stdout))
    return {side: min(values) for side, values in found.items()}


def _glia(folder: Path) -> str | None:
    """A Python that has glia, or None and a note."""
    home = folder / "glia"
    python = str(home / "bin/python")
    try:
        for command in (
            [sys.executable, "-m", "venv", str(home)],
            [python, "-m", "pip", "install", "--quiet", "--no-input", GLIA],
        ):
            subprocess.run(command, capture_output=True, check=True, timeout=300)
    except (subprocess.SubprocessError, OSError):
        sys.stderr.write(f"{GLIA} could not be installed here; its figures are left out\n")
        return None
    return python
