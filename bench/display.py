"""What the display costs while all of its rows change ten times a second, as a share of a core's
time: on a real pseudo terminal, whose other end another process reads."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from agl.adapters.rich_terminal import RichTerminal
from agl.adapters.system import SystemClock
from agl.ports.events import Event
from agl.ports.terminal import Choice, Screen
from bench.figures import Figure

COLUMNS = 120
PER_SECOND = 10
AIM_PERCENT = 5.0
_SURE = Screen[object]("Sure?", responses=[Choice("yes", 1), Choice("no", 0)])


def measure(rows: int, seconds: float) -> list[Figure]:
    """Hearing the events that change the rows is counted with drawing them. Above a question
    prompt_toolkit draws, and less often."""
    what = f"display, {rows} rows {PER_SECOND} times a second"
    drawn = asyncio.run(_share(rows, seconds, asks=False))
    asked = asyncio.run(_share(rows, seconds, asks=True))
    return [
        Figure(what, drawn * 100, "% of a core", AIM_PERCENT),
        Figure(f"{what}, above a question", asked * 100, "% of a core", AIM_PERCENT),
    ]


async def _share(rows: int, seconds: float, *, asks: bool) -> float:
    clock = SystemClock()
    names = [f"chunk-{number}" for number in range(rows)]
    with _screen(rows + 20) as (keyboard, screen), os.fdopen(keyboard) as stdin:
        async with RichTerminal(stdin, screen, clock) as terminal:
            for name in names:
                begun = {"model": "claude_code:opus", "nth": 1}
                terminal.tell(Event("step_started", clock.now(), name, "implement", begun))
            question = asyncio.ensure_future(terminal.ask(lambda: _SURE)) if asks else None
            await asyncio.sleep(0.5)
            spent, began = time.process_time(), time.perf_counter()
            for number in range(int(seconds * PER_SECOND)):
                for name in names:
                    activity = f"Edit: src/{name}/{number}.py, and looked at 漢字 beside it"
                    details = {"activity": activity}
                    terminal.tell(Event("agent_acted", clock.now(), name, "implement", details))
                await asyncio.sleep(1 / PER_SECOND)
            spent, took = time.process_time() - spent, time.perf_counter() - began
            if question is not None:
                question.cancel()
    return spent / took


@contextmanager
def _screen(lines: int) -> Iterator[tuple[int, TextIO]]:
    """A pseudo terminal to type at and to write on, and somebody who reads it."""
    reader, writer = os.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", lines, COLUMNS, 0, 0))
    with (
        os.fdopen(os.dup(writer), "w", encoding="utf-8") as out,
        subprocess.Popen(["cat"], stdin=reader, stdout=subprocess.DEVNULL) as person,
    ):
        os.close(reader)
        yield writer, out
        person.kill()
