"""The example of a workflow package: installed, listed, tested and run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.world import World, script, write

EXAMPLE = Path(__file__).parent.parent / "examples" / "changelog"


@pytest.mark.network
@pytest.mark.long
def test_a_workflow_package_is_installed_tested_and_run(tmp_path: Path) -> None:
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(site)]
    subprocess.run([*pip, str(EXAMPLE)], check=True, timeout=240)
    world = World(tmp_path / "world", {"PYTHONPATH": str(site)})
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLE / "tests")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (tests.returncode, tests.stdout[:5]) == (0, ".... "), tests.stdout
    world.make_repository({"README.md": "shop\n"})
    assert world.agl("init", "--no-build").status == 0
    assert "changelog" in world.agl("workflows").out
    draft = {"tool": "hand_in_draft", "arguments": {"lines": ["It is faster."]}}
    written = write("CHANGELOG.md", "- It is faster.\n")
    agent = script({"draft": [{"calls": [draft]}], "write": [{"calls": [written]}]})
    (world.folder / "agent.json").write_text(agent)
    (world.folder / "answers.json").write_text('{"take": "yes"}')
    flags = ("--version-name", "1.2", "--writer", f"scripted:{world.folder}/agent.json")
    answers = ("--answers", str(world.folder / "answers.json"))
    done = world.agl("run", "changelog", "-n", "x", *flags, *answers)
    assert done.status == 0, done.err
    assert world.git("show", "agl/x:CHANGELOG.md") == "- It is faster."
