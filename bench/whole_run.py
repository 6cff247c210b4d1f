"""What `agl run` of twenty steps costs as a command, from its start to its end."""

from __future__ import annotations

import json
import time
from pathlib import Path
from statistics import median

from bench.figures import Figure
from bench.world import World

FLOW = Path(__file__).with_name("flow_of_twenty.py")


def measure(world: World, agl: str, rounds: int) -> list[Figure]:
    """The run once with git counting itself, then timed; its runs stay in `world`."""
    script = world.folder / "script.json"
    script.write_text(json.dumps(_script()))
    command = (agl, "run", str(FLOW), "--script", f"scripted:{script}", "-n")
    trace = world.folder / "trace"
    # GIT_TRACE2_EVENT: every git process appends to the file; the id of one that another git
    # started holds a slash (api-trace2, git 2.22).
    world.run((*command, "counted"), {"GIT_TRACE2_EVENT": str(trace)})
    started = [json.loads(line) for line in trace.read_text().splitlines()]
    processes = sum(one["event"] == "start" and "/" not in one["sid"] for one in started)
    took_s = []
    for number in range(rounds):
        began = time.perf_counter()
        world.run((*command, f"timed{number}"))
        took_s.append(time.perf_counter() - began)
    return [
        Figure("`agl run` of 20 steps", median(took_s), "s"),
        Figure("`agl run` of 20 steps", processes, "processes"),
    ]


def _script() -> dict[str, object]:
    steps = {
        f"write#{nth}": [
            {"calls": [{"tool": "write", "arguments": {"path": f"w{nth}.txt", "content": "new\n"}}]}
        ]
        for nth in range(1, 11)
    }
    return {"format": 1, "steps": steps}
