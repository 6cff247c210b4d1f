"""However it ends, nobody is left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.codex.bench import Bench, call
from agl.adapters.system import SystemClock, SystemProcesses
from agl.ports.agents import AgentTask, ToolAnswer
from agl.ports.errors import StreamDropped, UpstreamError
from agl.ports.models import ModelId, Usage
from agl.ports.processes import Marker

pytestmark = [
    pytest.mark.vendor,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]

SOON_S = 30
"""Long before a command at work would end."""

USE = {"input_tokens": 10, "output_tokens": 2}
SOL = ModelId("codex", "sol")
AT_WORK = "trap '' TERM INT HUP; touch a; while :; do sleep 0.1; done"


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
    return next(pid for pid, line in marked(marker).items() if line.endswith("app-server\0"))


async def test_after_a_run_nobody_is_left(bench: Bench) -> None:
    session = bench.script(call("shell", command="nohup sleep 60 & true"))
    task = bench.task()
    await bench.runner(session).run(task, bench.events.append)
    assert marked(task.marker.run) == {}


@pytest.mark.parametrize("sandbox", ["auto", "off"])
async def test_a_cancelled_run_is_over_soon_and_tells_what_it_used(
    bench: Bench, sandbox: str
) -> None:
    session = bench.script({**call("shell", command=AT_WORK), "usage": USE})
    task = bench.task()
    work = asyncio.create_task(
        bench.runner(session, sandbox=sandbox).run(task, bench.events.append)
    )
    await until_there(bench.tree / "a")
    assert len(marked(task.marker.run)) > 1
    work.cancel()
    await asyncio.wait({work}, timeout=SOON_S)
    assert work.cancelled()
    assert marked(task.marker.run) == {}
    assert bench.usage == Usage(10, 2)


async def test_a_cancelled_tool_of_the_task_is_over_too(bench: Bench) -> None:
    """It may wait for a person."""
    asked, ended = asyncio.Event(), asyncio.Event()

    async def handler(arguments: object) -> ToolAnswer:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ToolAnswer("never")

    (tool,) = bench.task().tools
    task = bench.task(tools=(replace(tool, handler=handler),))
    session = bench.script(call("report_findings", findings=[]))
    work = asyncio.create_task(
        bench.runner(session, idle_s=3.0, command_s=1.0).run(task, bench.events.append)
    )
    async with asyncio.timeout(60):
        await asked.wait()
    await asyncio.sleep(5)
    assert not work.done()
    work.cancel()
    await asyncio.wait({work}, timeout=SOON_S)
    assert work.cancelled()
    assert ended.is_set()
    assert marked(task.marker.run) == {}


@pytest.mark.parametrize("sandbox", ["auto", "off"])
async def test_a_program_that_was_killed_goes_on_in_its_thread(bench: Bench, sandbox: str) -> None:
    session = bench.script(
        {**call("shell", command=AT_WORK), "usage": USE},
        {**call("report_findings", findings=["x"]), "usage": USE},
    )
    waited: list[Exception] = []

    async def wait(error: Exception) -> None:
        waited.append(error)

    task = bench.task(wait=wait)
    work = asyncio.create_task(
        bench.runner(session, sandbox=sandbox).run(task, bench.events.append)
    )
    await until_there(bench.tree / "a")
    async with asyncio.timeout(SOON_S):
        while not any("touch a" in line for line in bench.lines):
            await asyncio.sleep(0.01)
    os.kill(program_of(task.marker.run), signal.SIGKILL)
    await work
    assert [type(error) for error in waited] == [StreamDropped]
    assert "-9" in str(waited[0])
    assert bench.desk.report == {"findings": ["x"]}
    assert "touch a" in session.asked[1].text
    assert marked(task.marker.run) == {}
    # What the first call used was not told yet.
    assert bench.usage == Usage(10, 2)


def a_codex(tmp_path: Path, line: str) -> dict[str, str]:
    """A PATH with a `codex` that does this."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "codex").write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo "codex-cli 0.999.0" && exit\n'
        f'[ "$1" = sandbox ] && exit\n{line}\n'
    )
    (folder / "codex").chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.mark.parametrize("first", ["", "read line\n"])
async def test_a_program_that_dies_at_once_is_told_with_its_last_words(
    bench: Bench, tmp_path: Path, first: str
) -> None:
    path = a_codex(tmp_path, f"{first}echo no more memory >&2\nexit 3")
    with pytest.raises(UpstreamError, match=r"did not start: .*status 3 no more memory"):
        await bench.ran(bench.script(), environ=path)


async def test_a_mute_program_is_given_up(bench: Bench, tmp_path: Path) -> None:
    path = a_codex(tmp_path, "exec sleep 60")
    task = bench.task()
    runner = bench.runner(bench.script(), environ=path, start_s=0.5)
    with pytest.raises(UpstreamError, match=r"did not start within 0.5 s"):
        async with asyncio.timeout(SOON_S):
            await runner.run(task, bench.events.append)
    assert marked(task.marker.run) == {}


async def test_a_program_that_speaks_another_language_is_given_up(
    bench: Bench, tmp_path: Path
) -> None:
    path = a_codex(tmp_path, 'echo "{"; echo 3; echo "[]"; echo hello; exec sleep 60')
    with pytest.raises(UpstreamError, match="did not start within"):
        await bench.ran(bench.script(), environ=path, start_s=0.5)


HEEDLESS = f"""#!{sys.executable}
import json, sys
if "--version" in sys.argv:
    print("codex-cli 0.999.0")
elif "sandbox" not in sys.argv:
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            result = {{"thread": {{"id": "1"}}, "model": "m"}}
            print(json.dumps({{"id": asked["id"], "result": result}}), flush=True)
"""


@pytest.mark.parametrize("is_confined", [True, False])
async def test_a_program_that_does_not_take_over_what_may_be_done_is_given_up(
    bench: Bench, tmp_path: Path, is_confined: bool
) -> None:
    """With no more than an answer to everything, it would be at work."""
    path = a_codex(tmp_path, "")
    (tmp_path / "bin" / "codex").write_text(HEEDLESS)
    words = "did not take over" if is_confined else "silent for"
    sandbox = "auto" if is_confined else "off"
    with pytest.raises(UpstreamError, match=words):
        await bench.ran(bench.script(), environ=path, sandbox=sandbox, idle_s=0.2)


STRANGE = """#!PYTHON
import json, sys
shape = SHAPE
if "--version" in sys.argv:
    print("codex-cli 0.999.0")
elif "sandbox" not in sys.argv:
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps({"id": [1], "result": shape}))
        if asked["method"] == "turn/start":
            items = [shape, {"type": "fileChange", "id": shape, "changes": shape}]
            items += [{"type": "fileChange", "changes": [shape, {"kind": shape, "path": shape}]}]
            items += [{"type": "commandExecution", "commandActions": shape, "status": "failed"}]
            items += [{"type": "commandExecution", "commandActions": [shape, {"command": shape}]}]
            items += [{"type": "mcpToolCall", "result": {"content": shape}, "status": "failed"}]
            for item in items:
                for method in ("item/started", "item/completed"):
                    print(json.dumps({"method": method, "params": {"item": item}}))
            for name in ("tokenUsage", "rateLimits"):
                for told in (shape, {"total": shape}, {"primary": {"usedPercent": shape}}):
                    for method in ("thread/tokenUsage/updated", "account/rateLimits/updated"):
                        print(json.dumps({"method": method, "params": {name: told}}))
            error = {"message": shape, "codexErrorInfo": {"x": shape}}
            question = {"itemId": shape}
            ask = "item/fileChange/requestApproval"
            print(json.dumps({"id": shape, "method": ask, "params": question}))
            print(json.dumps({"method": "turn/completed", "params": shape}))
            print(json.dumps({"method": "turn/completed", "params": {"turn": {"error": error}}}))
        if "id" in asked:
            names = ("config", "account", "data", "turn")
            result = {name: shape for name in names} | {"thread": {"id": "1"}, "model": shape}
            print(json.dumps({"id": asked["id"], "result": result}), flush=True)
"""


@pytest.mark.parametrize("shape", [[], {}, "x", 7, ["x"], {"x": ["x"]}])
async def test_what_has_another_shape_is_no_fault_of_agl(
    bench: Bench, tmp_path: Path, shape: object
) -> None:
    path = a_codex(tmp_path, "")
    (tmp_path / "bin" / "codex").write_text(
        STRANGE.replace("PYTHON", sys.executable).replace("SHAPE", repr(shape))
    )
    with pytest.raises(UpstreamError, match="Codex: "):
        await bench.ran(bench.script(), environ=path, sandbox="off", task={"model": SOL})


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ('"error":"out of luck"', "out of luck"),
        ('"error":{}', "did not start"),
        ('"error":[1]', "did not start"),
        ('"result":7', "it named no thread"),
        ('"result":{"thread":[]}', "it named no thread"),
    ],
)
async def test_an_answer_of_another_shape_is_the_programs_fault(
    bench: Bench, tmp_path: Path, answer: str, words: str
) -> None:
    told = [f"read line; echo '{{\"id\":{n},{answer}}}'" for n in range(1, 6)]
    told.insert(1, "read initialized")
    path = a_codex(tmp_path, "\n".join([*told, "exec sleep 60"]))
    with pytest.raises(UpstreamError, match=words):
        await bench.ran(bench.script(), environ=path, sandbox="off", start_s=10.0)


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


def agl_with(
    bench: Bench, task: AgentTask, environ: dict[str, str], sandbox: str = "auto"
) -> subprocess.Popen[bytes]:
    """Another process that runs the task."""
    script = f"""
import asyncio
from dataclasses import replace
from pathlib import Path
from agl.adapters.codex import CodexRunner
from agl.adapters.system import SystemClock, SystemProcesses
from agl.ports.models import ModelId
from agl.ports.processes import Marker
from agl.testing.contracts.agent_runner import Desk
runner = CodexRunner(SystemProcesses(), SystemClock(), {environ!r}, sandbox={sandbox!r})
task = Desk().task(Path({str(bench.tree)!r}), ModelId("codex", "gpt-5.5"))
task = replace(task, marker=Marker({task.marker.run!r}, "1"))
asyncio.run(runner.run(task, lambda event: None))
"""
    return subprocess.Popen([sys.executable, "-c", script])


@pytest.mark.parametrize("sandbox", ["auto", "off"])
async def test_when_agl_is_killed_the_program_and_its_tool_die_too(
    bench: Bench, sandbox: str
) -> None:
    session = bench.script(call("shell", command=AT_WORK))
    task = bench.task()
    agl = agl_with(bench, task, bench.environ(session), sandbox)
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
    path = a_codex(tmp_path, f"touch {bench.tree}/a; exec sleep 60")
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
    pytest.importorskip("codex_cli_bin", reason="needs openai-codex-cli-bin of agl[codex]")
    from agl.adapters.codex.conversation import Conversation, Ended, Opening

    conversation = Conversation(SystemProcesses(), Marker("x"), Opening())
    work = asyncio.create_task(conversation.next(5))
    await asyncio.sleep(0)
    conversation._messages.put_nowait(Ended("x"))
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


@pytest.mark.parametrize("status", ["interrupted", "failed"])
def test_a_turn_that_did_not_complete_is_none_that_did(status: str) -> None:
    pytest.importorskip("codex_cli_bin", reason="needs openai-codex-cli-bin of agl[codex]")
    from agl.adapters.codex.conversation import Message
    from agl.adapters.codex.hearing import Hearing

    heard = Hearing(lambda event: None, SystemClock()).hear(
        Message("turn/completed", {"turn": {"status": status}})
    )
    assert not isinstance(heard, bool)
    assert status in heard.said
