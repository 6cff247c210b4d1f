"""The real `agl` at a pseudo terminal that it is the foreground of."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from adapters.rich_terminal.desk import Desk
from e2e.conftest import FLOW
from e2e.world import World, script, shell, write

# Makes the terminal on standard input the one that controls the new session.
TAKING_THE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
COLOUR = re.compile(rb"\x1b\[[0-9;]*[1-9][0-9;]*m")


@dataclass
class Visit:
    desk: Desk
    process: subprocess.Popen[bytes]

    async def end(self) -> int:
        await self.desk.until(lambda: self.process.poll() is not None)
        await asyncio.sleep(0.05)
        return self.process.returncode


@asynccontextmanager
async def visit(
    world: World, *words: str, columns: int = 80, env: Mapping[str, str] = {}
) -> AsyncIterator[Visit]:
    with Desk(columns, 24).watched() as desk:
        process = subprocess.Popen(
            [sys.executable, "-c", TAKING_THE_TERMINAL, *words],
            cwd=world.repo,
            env={**world.env, "TERM": "xterm-256color", **env},
            stdin=desk.stdin,
            stdout=desk.out,
            stderr=desk.out,
            start_new_session=True,
        )
        try:
            yield Visit(desk, process)
        finally:
            process.kill()
            process.wait()


def run(world: World, *more: str, seconds: float = 0.5) -> tuple[str, ...]:
    """A run whose agent is at work for so long, and which then asks."""
    file = world.folder / "script.json"
    work = [
        {"calls": [write("a.txt", "a\n")]},
        {"calls": [shell(f"sleep {seconds}")]},
        {"text": "done", "usage": {"input_tokens": 1200, "output_tokens": 34, "cost_usd": 0.5}},
    ]
    file.write_text(script({"work": work}))
    agl = (sys.executable, "-m", "agl")
    return (*agl, "run", str(FLOW), "-n", "x", "--script", f"scripted:{file}", "--ask", *more)


def without_times(rows: str) -> list[str]:
    return [re.sub(r"\d+:\d\d|[\d.]+s\b", "T", row) for row in rows.splitlines()]


async def test_a_run_is_watched_and_answered(world: World) -> None:
    async with visit(world, *run(world)) as one:
        await one.desk.until_seen("shell sleep 0.5")
        assert without_times(one.desk.rows)[-2:] == [
            "flow_of_one.py:one  working  work  script.json  T  shell sleep 0.5",
            "total  T",
        ]
        await one.desk.until_seen("1 to 2:")
        assert without_times(one.desk.rows)[-7:] == [
            "flow_of_one.py:one  asking you  1.2k tok  $0.50  1 done, last work in T",
            "total  T  1.2k tok  $0.50",
            "────────────────",
            "Go on?",
            "  1) yes",
            "  2) no",
            "1 to 2:",
        ]
        one.desk.resize(40, 24)
        await one.desk.until_seen("flow_of_one.py:one  asking you\n")
        one.desk.resize(80, 24)
        one.desk.types("yes\r")
        assert await one.end() == 0
        rows = without_times(one.desk.rows)
        assert "answered: Go on?: yes" in rows
        assert "flow_of_one.py:one  T  1.2k tok  $0.50  2 done, last look in T" in rows
        assert any(row.startswith("x       landed on agl/x") for row in rows)
        assert not any("asking you" in row for row in rows)


async def test_ctrl_c_at_a_question_stops_the_run_and_a_resume_asks_again(world: World) -> None:
    async with visit(world, *run(world, seconds=0)) as one:
        before = one.desk.modes
        await one.desk.until_seen("1 to 2:")
        one.desk.types("ye\x03")
        assert await one.end() == -signal.SIGINT
        assert "stopped by SIGINT; `agl resume x`" in one.desk.rows
        assert one.desk.modes == before
    async with visit(world, sys.executable, "-m", "agl", "resume", "x") as one:
        await one.desk.until_seen("1 to 2:")
        one.desk.types("2\r")
        assert await one.end() == 0


async def test_ctrl_c_while_an_agent_works_stops_the_run(world: World) -> None:
    async with visit(world, *run(world, seconds=30)) as one:
        before = one.desk.modes
        await one.desk.until_seen("shell sleep 30")
        one.desk.types("\x03")
        assert await one.end() == -signal.SIGINT
        assert one.desk.modes == before
        assert without_times(one.desk.rows)[-3:-1] == ["flow_of_one.py:one  stopped  T", "total  T"]


async def test_ctrl_d_ends_the_run_waiting_for_an_answer(world: World) -> None:
    async with visit(world, *run(world, seconds=0)) as one:
        await one.desk.until_seen("1 to 2:")
        one.desk.types("\x04")
        assert await one.end() == 6
        assert "'Go on?' needs an answer (yes, no)" in one.desk.rows.replace("\n", " ")


@pytest.mark.parametrize(
    ("more", "env"), [((), {"TERM": "dumb"}), ((), {"TERM": ""}), (("--json",), {})]
)
async def test_where_nothing_can_be_drawn_no_escape_is_written(
    world: World, more: tuple[str, ...], env: dict[str, str]
) -> None:
    async with visit(world, *run(world, *more, seconds=0), env=env) as one:
        await one.desk.until_seen("type a number from 1 to 2")
        one.desk.types("1\n")
        assert await one.end() == 0
        assert b"\x1b" not in one.desk.seen


async def test_no_color_is_heeded(world: World) -> None:
    for env in (dict[str, str](), {"NO_COLOR": "1"}):
        label = f"colour{len(env)}"
        async with visit(world, *run(world, "-n", label, seconds=0), env=env) as one:
            await one.desk.until_seen("1 to 2:")
            one.desk.types("1\r")
            assert await one.end() == 0
            assert (COLOUR.search(one.desk.seen) is None) == ("NO_COLOR" in env)


async def test_a_run_in_the_background_is_not_stopped(world: World) -> None:
    words = run(world, "--answers", str(world.folder / "answers.json"), seconds=0)
    (world.folder / "answers.json").write_text('{"Go on?": "yes"}')
    async with visit(world, "bash", "-c", 'set -m; "$@" & wait $!', "bash", *words) as one:
        assert await one.end() == 0
        assert b"\x1b" not in one.desk.seen
        assert "work: done in" in one.desk.rows


async def test_a_window_that_closes_leaves_a_run_to_resume(world: World) -> None:
    async with visit(world, *run(world, seconds=0)) as one:
        await one.desk.until_seen("1 to 2:")
        one.desk.hang_up()
        assert await one.end() == -signal.SIGHUP
    assert world.agl("list", "--json").json["runs"][0]["state"] == "interrupted"  # type: ignore[index]
    assert world.survivors() == []


async def test_one_column_raises_nothing(world: World) -> None:
    async with visit(world, *run(world, seconds=0), columns=1) as one:
        await one.desk.until(lambda: b"\x1b[?2004h" in one.desk.seen)
        await asyncio.sleep(0.2)
        one.desk.types("1\r")
        assert await one.end() == 0
        assert b"Traceback" not in one.desk.seen
