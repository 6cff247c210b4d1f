"""Signals to the real `agl`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.conftest import Agl
from e2e.world import takes_it_now

AGL = [sys.executable, "-c", "from agl.cli.main import main; raise SystemExit(main())"]
IGNORING_HANGUPS = [
    sys.executable,
    "-c",
    "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN);"
    " os.execv(sys.argv[1], sys.argv[1:])",
]


@pytest.fixture
def slow_model(tmp_path: Path) -> str:
    """Its second step writes `at-work` and then takes its time, ignoring TERM for a moment."""
    file = tmp_path / "slow.json"
    command = f"touch {tmp_path}/at-work; exec sleep 30"
    turns = [{"calls": [{"tool": "shell", "arguments": {"command": command}}]}, {"text": "done"}]
    file.write_text(
        json.dumps({"format": 1, "steps": {"writer#1": [{"text": "done"}], "writer#2": turns}})
    )
    return f"scripted:{file}"


Begun = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def begun(project: Path, flow: str, slow_model: str, tmp_path: Path) -> Begun:
    """`agl run` in a process of its own, in the middle of its second step."""

    def begin(*more: str, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        words = ["run", flow, "-n", "one", "--model", slow_model, "--times", "2", *more]
        process = subprocess.Popen(
            [*before, *AGL, *words],
            env={**os.environ, MARK: str(tmp_path)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        until(lambda: (tmp_path / "at-work").exists() or process.poll() is not None)
        return process

    return begin


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


MARK = "OF_THIS_TEST"


def at_work(mark: Path) -> list[int]:
    """Processes of the test's runs: what an agent starts inherits what is no business of AGL."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_the_agents_and_says_how_to_go_on(
    begun: Begun, agl: Agl, tmp_path: Path, number: signal.Signals
) -> None:
    process = begun()
    assert len(at_work(tmp_path)) > 1
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == -number
    assert out == ""
    assert err.endswith(f"agl: stopped by {number.name}; `agl resume one` goes on from here\n")
    assert "Traceback" not in err
    assert at_work(tmp_path) == []
    (run,) = agl("list", "--json").json["runs"]
    assert run["state"] == "interrupted"
    assert [line["name"] for line in agl("show", "one", "--json").json["lines"]] == ["writer"]


def test_what_fails_while_a_signal_ends_the_work_is_no_outcome(
    project: Path, agl: Agl, tmp_path: Path
) -> None:
    flow = tmp_path / "stubborn.py"
    flow.write_text(
        "import asyncio\nfrom pathlib import Path\nfrom agl.sdk import Run, workflow\n\n\n"
        "async def wait(run):\n    try:\n"
        f"        Path({str(tmp_path / 'at-work')!r}).touch()\n"
        "        await asyncio.sleep(60)\n"
        "    finally:\n        raise ValueError('while it ended')\n\n\n"
        "@workflow(version='1')\nasync def stubborn(run: Run[None]) -> None:\n"
        "    async with asyncio.TaskGroup() as group:\n"
        "        group.create_task(wait(run))\n"
    )
    process = subprocess.Popen(
        [*AGL, "run", str(flow), "-n", "one"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: (tmp_path / "at-work").exists() or process.poll() is not None)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM
    assert "while it ended" in err
    assert "`agl resume one` goes on from here" in err
    assert "Traceback" not in err
    (run,) = agl("list", "--json").json["runs"]
    assert run["state"] == "interrupted"


@pytest.mark.parametrize("how", ["returns", "fails"])
def test_agl_dies_of_the_signal_whatever_the_work_makes_of_it(how: str) -> None:
    end = "return" if how == "returns" else "raise ValueError('x')"
    program = f"""
import asyncio, os, signal
from agl.cli import signals

async def work():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        {end}

signals.finish(work(), lambda number, error: print(number, error, flush=True))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (-15, f"15 {'x' if how == 'fails' else None}\n")


def test_a_signal_leaves_one_document(begun: Begun) -> None:
    process = begun("--json")
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert json.loads(out)["error"]["exit_code"] == 143


def test_a_second_signal_is_immediate(begun: Begun, tmp_path: Path, slow_model: str) -> None:
    script = json.loads((tmp_path / "slow.json").read_text())
    command = f"trap '' TERM; touch {tmp_path}/at-work; sleep 30; sleep 30"
    script["steps"]["writer#2"][0]["calls"][0]["arguments"]["command"] = command
    (tmp_path / "slow.json").write_text(json.dumps(script))
    process = begun()
    process.send_signal(signal.SIGINT)
    until(lambda: takes_it_now(process.pid, signal.SIGINT))
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == -signal.SIGINT
    assert at_work(tmp_path), "it waited for what was told to end"
    for pipe in (process.stdout, process.stderr):
        assert pipe is not None
        pipe.close()
    for pid in at_work(tmp_path):
        os.kill(pid, signal.SIGKILL)


def test_an_ignored_hangup_stays_ignored(begun: Begun) -> None:
    process = begun(before=(*IGNORING_HANGUPS,))
    process.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM


def test_a_reader_that_went_away_is_no_failure(project: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*AGL, "list", "--json"], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_under_stdout_is_said(project: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*AGL, "list", "--json"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 6
    assert done.stderr == "agl: the answer cannot be written: No space left on device\n"


def test_closed_streams_do_no_harm(project: Path) -> None:
    words = " ".join(f"'{word}'" for word in [*AGL, "list", "--json"])
    done = subprocess.run(["sh", "-c", f"exec {words} <&- >&- 2>&-"], check=False)
    assert done.returncode == 0
