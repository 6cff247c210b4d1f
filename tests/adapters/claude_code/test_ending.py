"""However it ends, nobody is left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from adapters.claude_code.bench import Bench, call
from agl.adapters.system import SystemProcesses
from agl.ports.agents import AgentTask
from agl.ports.errors import StreamDropped, UpstreamError
from agl.ports.models import Usage
from agl.ports.processes import Marker

pytestmark = [
    pytest.mark.vendor,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]

SOON_S = 30
"""Long before a command at work would end."""


def marked(marker: str) -> dict[int, str]:
    """The processes that carry the run's marker, with what they run."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                variables = (folder / "environ").read_bytes().split(b"\0")
                if f"AGL_RUN={marker}".encode() in variables:
                    found[int(folder.name)] = (folder / "cmdline").read_bytes().decode()
            except OSError:
                continue
    return found


async def until_gone(marker: str) -> dict[int, str]:
    deadline = time.monotonic() + SOON_S
    while (left := marked(marker)) and time.monotonic() < deadline:
        await asyncio.sleep(0.02)
    return left


async def until_there(path: Path) -> None:
    async with asyncio.timeout(60):
        while not path.exists():
            await asyncio.sleep(0.01)


def program_of(marker: str) -> int:
    return next(pid for pid, line in marked(marker).items() if "stream-json" in line)


async def test_after_a_run_nobody_is_left(bench: Bench) -> None:
    session = bench.script(call("shell", command="true"))
    task = bench.task()
    await bench.runner(session).run(task, bench.events.append)
    assert marked(task.marker.run) == {}


async def test_a_cancelled_run_is_over_soon_and_tells_what_it_cost(bench: Bench) -> None:
    use = {"input_tokens": 10, "output_tokens": 2}
    session = bench.script({**call("shell", command="touch a; sleep 60"), "usage": use})
    task = bench.task()
    work = asyncio.create_task(bench.runner(session).run(task, bench.events.append))
    await until_there(bench.tree / "a")
    work.cancel()
    await asyncio.wait({work}, timeout=SOON_S)
    assert work.cancelled()
    assert marked(task.marker.run) == {}
    assert bench.usage.cost_usd


async def test_a_program_that_was_killed_goes_on_in_its_session(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    use = {"input_tokens": 10, "output_tokens": 2}
    session = bench.script(
        {**call("shell", command="touch a; sleep 60"), "usage": use},
        {**call("report_findings", findings=["x"]), "usage": use},
    )
    waited: list[Exception] = []

    async def wait(error: Exception) -> None:
        waited.append(error)

    task = bench.task(wait=wait)
    work = asyncio.create_task(bench.runner(session).run(task, bench.events.append))
    await until_there(bench.tree / "a")
    os.kill(program_of(task.marker.run), signal.SIGKILL)
    await work
    assert caplog.messages == [], "what the SDK says stands between AGL's own lines"
    assert [type(error) for error in waited] == [StreamDropped]
    assert "-9" in str(waited[0])
    assert bench.desk.report == {"findings": ["x"]}
    assert marked(task.marker.run) == {}
    # It took the price of the first call with it.
    assert bench.usage == Usage(20, 4, 0, None)


def a_claude(tmp_path: Path, line: str) -> dict[str, str]:
    """A PATH with a `claude` that does this."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "claude").write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo "2.1.999 (Claude Code)" && exit\n{line}\n'
    )
    (folder / "claude").chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


async def test_a_program_that_dies_at_once_is_told_with_its_last_words(
    bench: Bench, tmp_path: Path
) -> None:
    path = a_claude(tmp_path, "echo no more memory >&2\nexit 3")
    with pytest.raises(UpstreamError, match=r"did not start: .*no more memory"):
        await bench.ran(bench.script(), environ=path)


async def test_a_mute_program_is_given_up(bench: Bench, tmp_path: Path) -> None:
    path = a_claude(tmp_path, "exec sleep 60")
    task = bench.task()
    runner = bench.runner(bench.script(), environ=path, start_s=0.5)
    with pytest.raises(UpstreamError, match=r"did not start within 0.5 s"):
        async with asyncio.timeout(SOON_S):
            await runner.run(task, bench.events.append)
    assert marked(task.marker.run) == {}


async def test_a_listener_that_fails_ends_the_run(bench: Bench) -> None:
    session = bench.script({"text": "hello"}, call("write", path="a.txt", content="x"))
    task = bench.task()

    def emit(event: object) -> None:
        if "hello" in str(event):
            raise UpstreamError("no space")

    with pytest.raises(UpstreamError, match="no space"):
        await bench.runner(session).run(task, emit)
    assert marked(task.marker.run) == {}
    assert not (bench.tree / "a.txt").exists()


async def test_huge_output_is_heard_and_does_not_grow(bench: Bench) -> None:
    flood = "head -c 50000000 /dev/zero | tr '\\0' x"
    long = {"text": "y" * 3_000_000, "piece": 100_000}
    session = bench.script(call("shell", command=flood), long)
    await bench.ran(session, task={"follow_up": lambda: None})
    assert max(len(text) for text in bench.said) == 3_000_000
    assert all(len(line) <= 120 for line in bench.lines)


def agl_with(bench: Bench, task: AgentTask, environ: dict[str, str]) -> subprocess.Popen[bytes]:
    """Another process that runs the task."""
    script = f"""
import asyncio
from dataclasses import replace
from pathlib import Path
from agl.adapters.claude_code import ClaudeCodeRunner
from agl.adapters.system import SystemClock, SystemProcesses
from agl.ports.models import ModelId
from agl.ports.processes import Marker
from agl.testing.contracts.agent_runner import Desk
runner = ClaudeCodeRunner(SystemProcesses(), SystemClock(), {environ!r})
task = Desk().task(Path({str(bench.tree)!r}), ModelId("claude_code", "claude-sonnet-5"))
task = replace(task, marker=Marker({task.marker.run!r}, "1"))
asyncio.run(runner.run(task, lambda event: None))
"""
    return subprocess.Popen([sys.executable, "-c", script])


async def test_when_agl_is_killed_the_program_and_its_tool_die_too(bench: Bench) -> None:
    session = bench.script(call("shell", command="touch a; sleep 60"))
    task = bench.task()
    agl = agl_with(bench, task, bench.environ(session))
    try:
        await until_there(bench.tree / "a")
        assert program_of(task.marker.run)
    finally:
        agl.kill()
        agl.wait()
    left = await until_gone(task.marker.run)
    await bench.processes.end(task.marker)
    assert left == {}


async def test_when_agl_is_killed_a_program_that_does_not_listen_dies_too(
    bench: Bench, tmp_path: Path
) -> None:
    path = a_claude(tmp_path, f"touch {bench.tree}/a; exec sleep 60")
    task = bench.task()
    agl = agl_with(bench, task, bench.environ(bench.script(), **path))
    try:
        await until_there(bench.tree / "a")
    finally:
        agl.kill()
        agl.wait()
    left = await until_gone(task.marker.run)
    await bench.processes.end(task.marker)
    assert left == {}


async def test_work_that_kills_its_program_again_and_again_ends(bench: Bench) -> None:
    deadly = call("shell", command="kill -9 $PPID; sleep 60")
    session = bench.script(*[deadly] * 9)

    async def wait(error: Exception) -> None:
        return

    with pytest.raises(UpstreamError, match="died"):
        await bench.runner(session, sandbox="off").run(bench.task(wait=wait), bench.events.append)
    assert len(session.asked) == 5


async def test_a_cancellation_that_comes_with_a_message_is_not_lost() -> None:
    pytest.importorskip("claude_agent_sdk", reason="needs claude-agent-sdk of agl[claude-code]")
    from claude_agent_sdk import ClaudeAgentOptions

    from agl.adapters.claude_code.conversation import Conversation, Ended

    conversation = Conversation(ClaudeAgentOptions(), SystemProcesses(), Marker("x"))
    work = asyncio.create_task(conversation.next(5))
    await asyncio.sleep(0)
    conversation._messages.put_nowait(Ended("x"))
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
