"""The setting `sandbox`, from the command line to an agent's shell."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from e2e.world import World, script, shell

FLOW = Path(__file__).parent / "flow_of_one.py"


def running(world: World, label: str) -> tuple[str, ...]:
    """A run whose step that may write no files tries to, in its tree and outside."""
    tries = shell("echo x > inside.txt; echo tried >> $COUNTER")
    file = world.folder / "script.json"
    file.write_text(script({"look": [{"calls": [tries]}, {"text": "done"}]}))
    return ("run", str(FLOW), "-n", label, "--script", f"scripted:{file}")


@pytest.mark.skipif(
    shutil.which("bwrap") is None, reason="needs bubblewrap: apt-get install bubblewrap"
)
def test_a_restriction_is_kept_by_the_system_unless_it_is_off(world: World) -> None:
    for mode in ("auto", "require", "off"):
        done = world.agl(*running(world, mode), more={"AGL_SANDBOX": mode})
        assert done.status == 0, done.err
        assert ("look: AGL's own loop, in bubblewrap" in done.err) is (mode != "off")
        assert ("work: AGL's own loop, in bubblewrap" in done.err) is (mode == "require")
        assert world.counted() == (["tried"] if mode == "off" else [])


def test_a_sandbox_that_is_required_and_not_there_is_told_before_a_run(world: World) -> None:
    bin_ = world.folder / "bin"
    bin_.mkdir()
    (bin_ / "bwrap").write_text("#!/bin/sh\nexit 1\n")
    (bin_ / "bwrap").chmod(0o755)
    (world.home / "config.toml").write_text('sandbox = "require"\n')
    more = {"PATH": f"{bin_}:{world.env['PATH']}", "AGL_SANDBOX": ""}
    done = world.agl(*running(world, "x"), more=more)
    assert done.status == 2
    assert (
        "--script: the sandbox is required, and bwrap does not work here: exit status 1" in done.err
    )
    assert world.git("branch", "--list", "agl/*") == ""


def test_one_that_is_not_there_is_told_once(world: World) -> None:
    bin_ = world.folder / "bin"
    bin_.mkdir()
    (bin_ / "bwrap").write_text("#!/bin/sh\nexit 1\n")
    (bin_ / "bwrap").chmod(0o755)
    more = {"PATH": f"{bin_}:{world.env['PATH']}", "AGL_SANDBOX": "auto"}
    done = world.agl(*running(world, "x"), more=more)
    assert done.status == 0, done.err
    told = [line for line in done.err.splitlines() if "nothing confines" in line]
    assert len(told) == 1, done.err
    assert "shell of step 'look'" in told[0]
    assert "bwrap does not work here: exit status 1; `agl doctor`" in told[0]
    shown = world.agl("doctor", more=more)
    assert "no sandbox, bwrap does not work here: exit status 1 (`apt-get install" in shown.out
    required = world.agl("doctor", more=more | {"AGL_SANDBOX": "require"})
    assert required.status == 6
    assert "sandbox" in required.err
