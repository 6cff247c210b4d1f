"""The scripts make their environment whole, or again, with a Python of the test's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from test_readme import ROOT

# Makes an environment whose python does nothing but to write `agl` down as installed.
PYTHON = """#!/bin/sh
case "$1 $2" in
  "-m venv") echo made >> "$LOG"; mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; eval "$IN_VENV" ;;
  "-m pip") eval "$IN_PIP"; printf '#!/bin/sh\\necho "agl $*"\\n' > "${0%/*}/agl"
    chmod +x "${0%/*}/agl" ;;
esac
"""


@dataclass(frozen=True)
class Checkout:
    """A checkout with nothing but its scripts."""

    folder: Path

    def agl(self, *, by: str = "checkout/scripts/agl", **more: str) -> tuple[int, str]:
        """The status of `scripts/agl x`, and what was said."""
        env = {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "LOG": str(self.folder / "log"),
            "IN_VENV": "",
            "IN_PIP": "",
        }
        done = subprocess.run(
            ["bash", str(self.folder / by), "x"],
            env=env | more,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    @property
    def made(self) -> int:
        """How often an environment was begun."""
        return (self.folder / "log").read_text().count("made")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    (tmp_path / "checkout" / "scripts").mkdir(parents=True)
    for name in ("scripts/agl", "scripts/venv", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / "checkout" / name)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").write_text(PYTHON)
    (tmp_path / "bin" / "python3").chmod(0o755)
    return Checkout(tmp_path)


def test_the_environment_is_made_once(checkout: Checkout) -> None:
    status, said = checkout.agl()
    assert status == 0
    assert said.endswith("agl x\n")
    assert checkout.agl() == (0, "agl x\n")
    assert checkout.made == 1


@pytest.mark.parametrize("step", ["IN_VENV", "IN_PIP"])
def test_an_interrupted_environment_is_made_again(checkout: Checkout, step: str) -> None:
    assert checkout.agl(**{step: "kill -9 $PPID; exit 1"})[0] != 0
    left = checkout.folder / "checkout" / ".venv" / "left"
    left.write_text("by the first")
    assert checkout.agl()[0] == 0
    assert checkout.made == 2
    assert not left.exists()
    assert checkout.agl() == (0, "agl x\n")


def test_an_environment_that_was_whole_is_kept(checkout: Checkout) -> None:
    checkout.agl()
    with (checkout.folder / "checkout" / "pyproject.toml").open("a") as file:
        file.write("# changed\n")
    assert checkout.agl(IN_PIP="exit 1")[0] == 1
    assert checkout.agl() == (0, "agl x\n")
    assert checkout.made == 1


def test_pip_without_a_network_is_told_in_a_sentence(checkout: Checkout) -> None:
    status, said = checkout.agl(IN_PIP="echo no route >&2; exit 1")
    assert status == 1
    assert "no route\nscripts/venv: pip could not install what AGL needs; is there a net" in said


def test_agl_is_found_through_a_link(checkout: Checkout) -> None:
    (checkout.folder / "links").mkdir()
    (checkout.folder / "links" / "second").symlink_to("../checkout/scripts/agl")
    (checkout.folder / "links" / "agl").symlink_to("second")
    assert checkout.agl(by="links/agl")[1].endswith("agl x\n")


def may_be_apart() -> bool:
    try:
        done = subprocess.run(["unshare", "--net", "--mount", "true"], check=False)
    except OSError:
        return False
    return done.returncode == 0


apart = pytest.mark.skipif(not may_be_apart(), reason="needs to be allowed a network namespace")


def offline(*words: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [ROOT / "scripts" / "offline", *words], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@apart
def test_offline_fails_what_looks_up_another_machine() -> None:
    look = "import socket; socket.getaddrinfo('{}', 80)"
    assert offline(sys.executable, "-c", look.format("localhost")) == (0, "", "")
    status, _, said = offline("sh", "-c", f'{sys.executable} -c "{look.format("a.example")}"; true')
    assert (status, said.splitlines()[-1]) == (1, "scripts/offline: looked up a.example")


@apart
def test_offline_reaches_loopback_alone_and_hands_the_status_on() -> None:
    serve = (
        "import socket; s = socket.create_server(('127.0.0.1', 0));"
        "socket.create_connection(s.getsockname()); print('reached')"
    )
    assert offline(sys.executable, "-c", serve) == (0, "reached\n", "")
    away = "import socket; socket.create_connection(('192.0.2.1', 9), 5)"
    status, _, said = offline(sys.executable, "-c", away)
    assert status == 1
    assert "unreachable" in said
    assert offline("sh", "-c", "exit 7")[0] == 7


@pytest.mark.parametrize("wanted", [False, True])
def test_what_is_left_out_fails_where_nothing_may_be(tmp_path: Path, wanted: bool) -> None:
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_one.py").write_text(
        "import pytest\n\ndef test_one():\n    pytest.skip('no such program here')\n"
    )
    options = ["--nothing-left-out"] if wanted else []
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (1 if wanted else 0)
    assert ("no such program here" in done.stdout) is wanted
