"""The bench runs, and what it counts is what it should be. No time is asserted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """The figures of a quick run that are numbers of processes, by name."""
    out = tmp_path_factory.mktemp("bench") / "results.json"
    subprocess.run(
        [sys.executable, "-m", "bench", "--quick", "--out", str(out)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        check=True,
        timeout=110,
    )
    figures = json.loads(out.read_text())["figures"]
    return {one["name"]: one["value"] for one in figures if one["unit"] == "processes"}


@pytest.mark.slow
def test_a_step_takes_as_few_git_processes_as_it_should(counted: dict[str, float]) -> None:
    assert counted["step that changes nothing, 5 files"] == 2
    assert counted["step that reports, 5 files"] == 2
    assert counted["step that commits, 5 files"] == 4


@pytest.mark.slow
def test_a_replayed_step_takes_none(counted: dict[str, float]) -> None:
    assert counted["replay of 20 entries, in all steps"] == 0


@pytest.mark.slow
def test_a_whole_run_takes_few(counted: dict[str, float]) -> None:
    # 10 steps that commit, 10 that do not, and what a run takes to begin and to end.
    assert counted["`agl run` of 20 steps"] <= 10 * 4 + 10 * 2 + 13
