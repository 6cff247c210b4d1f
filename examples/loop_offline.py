"""AGL's agent as a library, offline: a scripted model, two tools, and a gate.

python examples/loop_offline.py
"""

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Annotated

from agl.adapters.scripted import ScriptedLLM
from agl.adapters.system import SystemClock
from agl.loop import Agent, Approved, Checkpoint, Event, Limits, Refused, ToolReturned, tool
from agl.ports.llm import ToolUse

SCRIPT = {
    "format": 1,
    "steps": {
        "agent": [
            {
                "text": "I look it up, and tidy up.",
                "calls": [
                    {"tool": "temperature", "arguments": {"city": "Oslo"}},
                    {"tool": "delete", "arguments": {"path": "/"}},
                ],
            },
            {"text": "It is -3 °C in Oslo."},
        ]
    },
}


@tool
def temperature(city: Annotated[str, "its English name"]) -> float:
    """The temperature in a city now, in °C."""
    return {"Oslo": -3.0, "Rome": 12.5}[city]


@tool
async def delete(path: str) -> None:
    """Deletes a file or a folder."""
    raise AssertionError("the gate is there to refuse this")


async def gate(call: ToolUse) -> Approved | Refused:
    return Refused("nobody deletes here") if call.name == "delete" else Approved()


def show(event: Event) -> None:
    if isinstance(event, ToolReturned):
        sys.stdout.write(f"{event.call.name}: {event.answer.text}\n")


async def main(folder: Path) -> None:
    script = folder / "script.json"
    script.write_text(json.dumps(SCRIPT))
    agent = Agent(
        ScriptedLLM(SystemClock()),
        model=f"scripted:{script}",
        system="Be brief.",
        tools=[temperature, delete],
        gate=gate,
        limits=Limits(turns=10, time_s=60),
        checkpoint=Checkpoint(folder / "run.jsonl"),
    )
    outcome = await agent.run("How cold is it in Oslo?", show)
    sys.stdout.write(f"{outcome.text} ({outcome.turns} turns)\n")
    again = await agent.run("How cold is it in Oslo?")
    sys.stdout.write(f"from the checkpoint, asking nobody: {again.text}\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
