from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from agl.adapters.memory.processes import Ended, MemoryProcesses
from agl.ports.processes import Command
from agl.testing.contracts.processes import PROGRAMS, ProcessesContract


async def greet(command: Command) -> Ended:
    return Ended(0, b"out\n\r\nno end", b"err\n")


async def fail(command: Command) -> Ended:
    return Ended(3)


async def echo(command: Command) -> Ended:
    return Ended(stdout=command.stdin)


async def talk(command: Command) -> Ended:
    return Ended(stdout=b"".join(b"%d\n" % n for n in range(1, 100001)))


async def hang(command: Command) -> Ended:
    await asyncio.Event().wait()
    return Ended()


class TestMemoryProcesses(ProcessesContract):
    @pytest.fixture
    def processes(self) -> MemoryProcesses:
        return MemoryProcesses(
            {"greet": greet, "fail": fail, "echo": echo, "talk": talk, "hang": hang}
        )

    @pytest.fixture
    def programs(self, tmp_path: Path) -> Mapping[str, Command]:
        return {name: Command((name,), tmp_path, {}) for name in PROGRAMS}


async def test_what_was_run_can_be_looked_up(tmp_path: Path) -> None:
    processes = MemoryProcesses({"fail": fail})
    commands = [Command(("fail", str(n)), tmp_path, {"A": "b"}) for n in range(3)]
    for command in commands:
        await processes.run(command)
    assert processes.ran == commands


async def test_a_program_that_puts_things_in_order_at_the_limit_has_timed_out(
    tmp_path: Path,
) -> None:
    async def tidy(command: Command) -> Ended:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return Ended(7, b"bye")
        return Ended()

    processes = MemoryProcesses({"tidy": tidy})
    finished = await processes.run(Command(("tidy",), tmp_path, {}, timeout_s=0.01))
    assert finished.timed_out
    assert (finished.status, finished.stdout) == (7, b"bye")


async def test_a_program_that_fails_is_the_tests_mistake(tmp_path: Path) -> None:
    async def fails(command: Command) -> Ended:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        await MemoryProcesses({"fails": fails}).run(Command(("fails",), tmp_path, {}))
