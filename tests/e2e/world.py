"""A person's machine for one test: a home, a repository, a workflow, and the real `agl`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "A Person"), ("EMAIL", "person@example.org"))
}

# Kills the caller of git, and git with it, at the n-th call of the program. The count is a file.
KILLING_GIT = """#!/bin/sh
n=$(($(cat "$KILL_COUNT" 2>/dev/null || echo 0) + 1))
echo "$n" > "$KILL_COUNT"
if [ "$n" = "$KILL_AT_GIT" ]; then
  kill -KILL "$PPID"
  exit 1
fi
exec "$REAL_GIT" "$@"
"""

# Loaded by every Python that starts; counts renames of the ledger in the one that is `agl`.
KILLING_RENAMES = """
import os, signal, sys
_at = int(os.environ.get("KILL_AT_RENAME", "0"))
_home = os.environ.get("AGL_HOME", "")
if _at and len(sys.orig_argv) > 1 and os.environ.get("KILL_ARMED") == "1":
    _real, _seen = os.replace, 0
    def _replace(source, target, **more):
        global _seen
        if str(target).startswith(_home):
            _seen += 1
            if _seen * 2 - 1 == _at:
                os.kill(os.getpid(), signal.SIGKILL)
            _real(source, target, **more)
            if _seen * 2 == _at:
                os.kill(os.getpid(), signal.SIGKILL)
        else:
            _real(source, target, **more)
    os.replace = _replace
"""


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.out)
        return found


@dataclass
class World:
    """`folder` holds everything; `env` is what every process gets, and nothing else."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.home.mkdir(parents=True)
        self.env = {
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.folder / "user"),
            "AGL_HOME": str(self.home),
            "LANG": "C.UTF-8",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            # What an agent did is told by its shell, outside of every tree.
            "COUNTER": str(self.counter),
            "AGL_SANDBOX": "off",
            **IDENTITY,
            **self.env,
        }
        (self.folder / "user").mkdir(exist_ok=True)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def repo(self) -> Path:
        return self.folder / "shop"

    @property
    def counter(self) -> Path:
        return self.folder / "counter"

    def git(self, *args: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *args],
            cwd=cwd or self.repo,
            env=self.env,
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
        return done.stdout.strip()

    def make_repository(self, files: Mapping[str, str]) -> None:
        self.repo.mkdir()
        self.git("init", "-q", "-b", "main")
        for name, text in files.items():
            (self.repo / name).parent.mkdir(parents=True, exist_ok=True)
            (self.repo / name).write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "first")

    def agl(
        self,
        *args: str,
        more: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: str | None = None,
        timeout_s: float = 300,
    ) -> Ended:
        """The real command, to its end. Without `stdin` it has none."""
        done = subprocess.run(
            [sys.executable, "-m", "agl", *args],
            cwd=cwd or self.repo,
            env={**self.env, **(more or {})},
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def start(self, *args: str, more: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "agl", *args],
            cwd=self.repo,
            env={**self.env, **(more or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def arm(self, *, git: int = 0, rename: int = 0) -> dict[str, str]:
        """The environment in which `agl` is killed at its n-th git process, or before (odd) or
        after (even) a rename of its ledger."""
        bin_ = self.folder / "bin"
        site = self.folder / "site"
        bin_.mkdir(exist_ok=True)
        site.mkdir(exist_ok=True)
        (bin_ / "git").write_text(KILLING_GIT)
        (bin_ / "git").chmod(0o755)
        (site / "sitecustomize.py").write_text(KILLING_RENAMES)
        count = self.folder / "git-count"
        count.unlink(missing_ok=True)
        armed = {"KILL_COUNT": str(count), "KILL_AT_GIT": str(git), "KILL_ARMED": "1"}
        if git:
            real = subprocess.run(
                ["which", "git"], env=self.env, capture_output=True, text=True, check=True
            ).stdout.strip()
            armed |= {"REAL_GIT": real, "PATH": f"{bin_}:{self.env['PATH']}"}
        if rename:
            armed |= {"KILL_AT_RENAME": str(rename), "PYTHONPATH": str(site)}
        return armed

    def counted(self) -> list[str]:
        """What the agents' shells wrote outside of every tree: one line for each step that ran."""
        return self.counter.read_text().split() if self.counter.exists() else []

    def entries(self, label: str) -> list[dict[str, object]]:
        """The recorded entries, read as files."""
        run = next(self.home.glob(f"projects/*/runs/{label}"), None)
        if run is None:
            return []
        found = [*run.glob("steps/*/*.json"), *run.glob("facts/*.json")]
        read = [json.loads(file.read_text()) for file in found]
        return sorted(read, key=lambda entry: entry["number"])

    def survivors(self) -> list[int]:
        """Processes that carry the mark of a run of this home, in the file system's own words."""
        mark = f"COUNTER={self.counter}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal() or int(entry.name) == os.getpid():
                continue
            try:
                environ = (entry / "environ").read_bytes()
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if mark in environ.split(b"\0") and b"AGL_RUN=" in environ and state != "Z":
                found.append(int(entry.name))
        return found

    def kill_survivors(self) -> None:
        for pid in self.survivors():
            os.kill(pid, signal.SIGKILL)


def takes_it_now(pid: int, number: signal.Signals) -> bool:
    """Whether the system would do with the signal what it does when nobody asked for it."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:"))
    return not caught >> (number - 1) & 1


def wait_for(what: object, seconds: float = 60) -> None:
    """Waits until the callable is true."""
    assert callable(what)
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.01)


def script(steps: Mapping[str, Sequence[object]]) -> str:
    """A scripted agent's file."""
    return json.dumps({"format": 1, "steps": dict(steps)})


def shell(command: str) -> dict[str, object]:
    return {"tool": "shell", "arguments": {"command": command}}


def write(path: str, content: str) -> dict[str, object]:
    return {"tool": "write", "arguments": {"path": path, "content": content}}
