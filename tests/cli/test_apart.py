"""What an author's code prints never gets into the answer."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.conftest import Agl

AGL = [sys.executable, "-m", "agl"]
FLOW = '''
import os, subprocess, sys, time
from dataclasses import dataclass, field
from pathlib import Path

from agl.sdk import Run, workflow


def say(where):
    print("printed", where)
    sys.__stdout__.write(f"written {where}\\n")
    os.write(1, f"below {where}\\n".encode())
    subprocess.run(["echo", "child", where], check=True)


say("at import")


def lucky():
    say("in a default")
    return 7


@dataclass(frozen=True)
class Params:
    number: int = field(default_factory=lucky)
    waits: bool = False

    def __post_init__(self):
        say("in params")


@workflow(version="1")
async def talk(run: Run[Params]) -> None:
    """Talks."""
    say("in the workflow")
    if run.params.waits:
        Path("waiting").touch()
        time.sleep(0.3)
        await run.record("wait", lambda: __import__("asyncio").sleep(30))
'''


@pytest.fixture
def talk(tmp_path: Path, project: Path) -> str:
    (tmp_path / "talk.py").write_text(FLOW)
    return str(tmp_path / "talk.py")


def called(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*AGL, *words], capture_output=True, text=True, check=False)


def test_run_and_resume_answer_one_document(talk: str) -> None:
    for words in (["run", talk, "-n", "one", "--json"], ["resume", "one", "--json"]):
        done = called(*words)
        assert json.loads(done.stdout)["outcome"] == "finished", done.stdout
        assert "printed at import" in done.stderr
        assert "child at import" in done.stderr
    assert "printed in the workflow" in called("run", talk, "-n", "two").stderr


def test_it_is_told_in_order_and_not_at_the_end(talk: str, agl: Agl) -> None:
    said = agl("run", talk, "-n", "one", "--json")
    assert said.json["outcome"] == "finished"
    assert said.err.index("printed at import") < said.err.index(" started")


def test_help_and_workflows_answer_themselves_alone(talk: str) -> None:
    assert called("workflows", talk).stdout.startswith(f"{talk}:talk (version 1)")
    assert called("run", talk, "--help").stdout.startswith("usage: ")
    assert json.loads(called("workflows", talk, "--json").stdout)["name"] == f"{talk}:talk"


def test_a_signal_still_answers_on_standard_output(talk: str, project: Path) -> None:
    process = subprocess.Popen(
        [*AGL, "run", talk, "-n", "one", "--waits", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (project / "waiting").exists() and process.poll() is None:
        pass
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert json.loads(out)["error"]["exit_code"] == 143


def test_closed_streams_stay_closed(talk: str) -> None:
    for closed in (">&-", "2>&-", ">&- 2>&-"):
        label = f"closed{closed.count('2')}{closed.count('>')}"
        words = " ".join(f"'{word}'" for word in [*AGL, "run", talk, "-n", label])
        done = subprocess.run(["sh", "-c", f"exec {words} {closed}"], capture_output=True)
        assert done.returncode in (0, 1), (closed, done.stderr)
