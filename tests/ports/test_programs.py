"""Which program of a vendor is run, and with what around it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agl.adapters.system import SystemProcesses
from agl.ports.errors import InputError, UpstreamError
from agl.ports.processes import Marker
from agl.ports.programs import Wanted, environment_for, find_program, tether, version_of

OURS = "1.5.0"


def program(folder: Path, name: str, does: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{does}\n")
    path.chmod(0o755)
    return path


def wanted(own: Path) -> Wanted:
    return Wanted("tool", (1, 2, 3), own, "some-package", "`pip install some-package`")


@pytest.mark.parametrize(
    ("theirs", "used"),
    [("1.2.3", "1.2.3"), ("1.2.2", OURS), ("0.99.99", OURS), ("1.10.0", "1.10.0")],
    ids=["just new enough", "a little too old", "too old", "as numbers"],
)
async def test_ones_own_is_used_when_it_is_new_enough(
    tmp_path: Path, theirs: str, used: str
) -> None:
    program(tmp_path / "bin", "tool", f"echo tool {theirs}")
    own = program(tmp_path / "package", "tool", f"echo {OURS}")
    environ = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    found = await find_program(SystemProcesses(), environ, wanted(own))
    assert ".".join(map(str, found.version)) == used
    assert found.package == ("some-package" if used == OURS else "")
    assert found.line("login") == (f"{own} login" if used == OURS else "tool login")


async def test_all_that_are_too_old_are_named(tmp_path: Path) -> None:
    theirs = program(tmp_path / "bin", "tool", "echo 1.0.0")
    own = program(tmp_path / "package", "tool", "echo 1.1.0")
    environ = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    with pytest.raises(InputError) as told:
        await find_program(SystemProcesses(), environ, wanted(own))
    for part in (f"'{theirs}' is 1.0.0", f"'{own}' is 1.1.0", "not 1.2.3", "`pip install"):
        assert part in str(told.value)


@pytest.mark.parametrize(
    "does",
    ["echo tool 1.2.3; exit 1", "echo hello", "echo 1.2.3 >&2", "kill -9 $$"],
    ids=["a failure", "no number", "no output", "a death"],
)
async def test_what_does_not_tell_its_version_is_broken(tmp_path: Path, does: str) -> None:
    path = program(tmp_path, "tool", does)
    with pytest.raises(UpstreamError, match="does not tell its version; run it"):
        await version_of(SystemProcesses(), path, os.environ)


async def test_what_cannot_be_started_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "tool"
    path.write_text("#!/no/such/interpreter\n")
    path.chmod(0o755)
    with pytest.raises(UpstreamError, match=r"cannot start .*; reinstall it"):
        await version_of(SystemProcesses(), path, os.environ)


async def test_a_tether_is_what_works_here(tmp_path: Path) -> None:
    """busybox's `setpriv` knows no `--pdeathsig`; elsewhere there is no `setsid`."""
    processes = SystemProcesses()
    for name in ("setsid", "setpriv"):
        program(tmp_path / "refuses", name, "exit 1")
        program(tmp_path / "works", name, "exit 0")
    assert await tether(processes, {"PATH": str(tmp_path / "works")}) != ()
    assert await tether(processes, {"PATH": str(tmp_path / "refuses")}) == ()
    assert await tether(processes, {"PATH": str(tmp_path / "nothing")}) == ()


def test_a_program_has_its_own_vendors_keys_alone() -> None:
    theirs = {
        "OPENAI_API_KEY": "1",
        "OPENAI_CUSTOM_HEADERS": "authorization: 2",
        "ANTHROPIC_CUSTOM_HEADERS": "authorization: 3",
        "AWS_PROFILE": "mine",
        "AGL_HOME": "/agl",
        "GIT_DIR": "/elsewhere/.git",
    }
    given = environment_for(theirs, Marker("run"), own="ANTHROPIC_.*")
    assert given == {
        "ANTHROPIC_CUSTOM_HEADERS": "authorization: 3",
        "AWS_PROFILE": "mine",
        "PYTHONDONTWRITEBYTECODE": "1",
        "AGL_RUN": "run",
    }
    assert environment_for({}, Marker("run", "try"), own="x")["AGL_ATTEMPT"] == "try"


def test_a_person_says_whether_python_writes_bytecode() -> None:
    given = environment_for({"PYTHONDONTWRITEBYTECODE": ""}, Marker("run"), own="x")
    assert given["PYTHONDONTWRITEBYTECODE"] == ""
