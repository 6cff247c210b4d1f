"""How long a command takes that only looks, against a Python that does nothing."""

from __future__ import annotations

import sys
import time
from statistics import median

from bench.figures import Figure
from bench.world import World

WORDS = ("--help", "list", "workflows")
AIM = 6


def measure(world: World, agl: str, rounds: int) -> list[Figure]:
    """All in turn, so that each meets the same machine; once before for the compiled files."""
    bare = "python -c pass"
    commands: dict[str, tuple[str, ...]] = {bare: (sys.executable, "-c", "pass")}
    commands |= {f"agl {word}": (agl, word) for word in WORDS}
    took_ms: dict[str, list[float]] = {name: [] for name in commands}
    for argv in commands.values():
        world.run(argv)
    for _ in range(rounds):
        for name, argv in commands.items():
            began = time.perf_counter()
            world.run(argv)
            took_ms[name].append((time.perf_counter() - began) * 1000)
    base_ms = median(took_ms[bare])
    ratios = [
        Figure(f"{name} : {bare}", median(took_ms[name]) / base_ms, "×", AIM)
        for name in commands
        if name != bare
    ]
    return [Figure(bare, base_ms, "ms"), *ratios]
