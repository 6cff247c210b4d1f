"""The main job on any machine, offline: a failing test, `fix`, a kill, a resume."""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agl.ports.errors import UpstreamError
from agl.ports.ids import Label, ProjectName
from agl.ports.ledger import run_folder
from agl.ports.processes import (
    Command,
    Finished,
    NotStarted,
    Processes,
    Stream,
    without_git_location,
)

LABEL = Label("demo")
PROJECT = ProjectName("calc")

_CALC = "def add(a, b):\n    return a - b\n"
_TEST = """import unittest

from calc import add


class Adding(unittest.TestCase):
    def test_two_and_three(self):
        self.assertEqual(add(2, 3), 5)
"""


@dataclass(frozen=True, slots=True)
class DemoReport:
    """What the demo did. `worked` are the steps in the order in which agents worked on them, as
    they wrote it down outside of AGL; `replayed` are those that the resume took from the ledger."""

    folder: Path
    repository: Path
    branch: str
    diff: str
    ledger: Path
    entries: tuple[str, ...]
    killed_in: str
    worked: tuple[str, ...]
    replayed: int
    environment: str


async def demo(
    processes: Processes, environ: Mapping[str, str], tell: Callable[[str], None]
) -> DemoReport:
    """Makes a repository with a failing test in a temporary folder and lets `fix` repair it, with a
    scripted model, real git and a real build; AGL is killed in the middle and resumed. `tell` gets
    each command and each line that it says.

    Raises:
        UpstreamError: there is no git, or a command did not do what the demo shows.
    """
    await _require_git(processes, environ)
    folder = Path(tempfile.mkdtemp(prefix="agl-demo-"))
    stage = _Stage(folder, processes, environ, tell)
    await stage.prepare()
    python = shlex.quote(sys.executable)
    await stage.agl("init", "--build", f"{python} -m unittest -q")
    model = f"scripted:{folder / 'agent.json'}"
    flags = ("--request", "make the tests pass", "--implementer", model, "--reviewer", model)
    tell("\nThe agent's first idea is wrong, its second is right; then AGL is killed with kill -9:")
    await stage.agl("run", "fix", "-n", LABEL, *flags, ends=-9)
    tell("\nA resume takes from the ledger what was recorded, and goes on:")
    resumed = await stage.agl("resume", LABEL, "--json")
    report = json.loads(resumed.stdout)
    if report["result"] != "landed":
        raise UpstreamError(f"the demo ended with {report['message']!r}; look into {str(folder)!r}")
    diff = await stage.run("git", "diff", f"main...agl/{LABEL}", "--", "calc.py")
    ledger = stage.home.joinpath(*run_folder(PROJECT, LABEL))
    entries = sorted((*ledger.glob("steps/*/*.json"), *ledger.glob("facts/*.json")), key=_number)
    return DemoReport(
        folder=folder,
        repository=stage.repository,
        branch=f"agl/{LABEL}",
        diff=diff.stdout.decode(errors="replace"),
        ledger=ledger,
        entries=tuple(_described(entry) for entry in entries),
        killed_in="review",
        worked=tuple((folder / "worked").read_text().split()),
        replayed=report["replayed"],
        environment=f"AGL_HOME={shlex.quote(str(stage.home))}",
    )


async def _require_git(processes: Processes, environ: Mapping[str, str]) -> None:
    try:
        await processes.run(Command(("git", "version"), Path.cwd(), environ, timeout_s=60))
    except NotStarted as error:
        if not error.missing:
            raise UpstreamError(f"git could not be started: {error}") from error
        raise UpstreamError(
            "git is not installed, or not on PATH; install git 2.34 or newer"
        ) from error


class _Stage:
    """The demo's folder, and the commands that run in it."""

    def __init__(
        self,
        folder: Path,
        processes: Processes,
        environ: Mapping[str, str],
        tell: Callable[[str], None],
    ) -> None:
        self.folder = folder
        self.repository = folder / "calc"
        self.home = folder / "home"
        own = {name: value for name, value in environ.items() if not name.startswith("AGL_")}
        # Its agents leave their words outside of the tree, and one of them ends AGL.
        settings = {"AGL_HOME": str(self.home), "AGL_SANDBOX": "off"}
        self._environ = {**without_git_location(own), **settings}
        self._processes = processes
        self._tell = tell

    async def prepare(self) -> None:
        """The repository, with an identity of its own, and the agent's script."""
        self.repository.mkdir()
        (self.repository / "calc.py").write_text(_CALC)
        (self.repository / "test_calc.py").write_text(_TEST)
        (self.folder / "agent.json").write_text(json.dumps(_script(self.folder), indent=2))
        self._tell(f"A repository with a failing test: {self.repository}")
        git = ("git", "-c", "core.hooksPath=/dev/null", "-c", "commit.gpgsign=false")
        await self.run(*git, "init", "-q", "-b", "main")
        await self.run(*git, "config", "user.name", "AGL demo")
        await self.run(*git, "config", "user.email", "demo@localhost")
        await self.run(*git, "add", "-A")
        await self.run(*git, "commit", "-q", "-m", "A calculator that cannot add")

    async def agl(self, *args: str, ends: int = 0) -> Finished:
        """One `agl` command, told with what it says."""
        as_json = "--json" in args
        self._tell(f"\n$ agl {shlex.join(word for word in args if word != '--json')}")

        def line(stream: Stream, text: bytes) -> None:
            if stream is Stream.STDERR or not as_json:
                self._tell(f"  {text.decode(errors='replace').rstrip()}")

        return await self.run(sys.executable, "-m", "agl", *args, ends=ends, line=line)

    async def run(
        self,
        *argv: str,
        ends: int = 0,
        line: Callable[[Stream, bytes], None] | None = None,
    ) -> Finished:
        command = Command(argv, self.repository, self._environ, timeout_s=120)
        done = await self._processes.run(command, line)
        if done.status != ends:
            said = done.stderr.decode(errors="replace").strip()
            raise UpstreamError(
                f"the demo's {shlex.join(argv[:4])!r} ended with {done.status} instead of {ends}:"
                f" {said or 'it said nothing'}; look into {str(self.folder)!r}"
            )
        return done


def _script(folder: Path) -> Mapping[str, object]:
    """What the scripted model does in each step. Each step leaves a word outside of every tree, so
    that how often it ran is not AGL's own claim; the first review kills AGL."""

    def shell(command: str) -> dict[str, object]:
        return {"tool": "shell", "arguments": {"command": command}}

    def edit(old: str, new: str) -> dict[str, object]:
        return {"tool": "edit", "arguments": {"path": "calc.py", "old": old, "new": new}}

    def hand_in(summary: str) -> dict[str, object]:
        return {"tool": "hand_in", "arguments": {"summary": summary}}

    worked, killed = (shlex.quote(str(folder / name)) for name in ("worked", "killed"))
    kill = f"test -e {killed} || {{ touch {killed}; kill -9 $PPID; }}"
    read = {"tool": "read", "arguments": {"path": "calc.py"}}
    findings = {"tool": "report_findings", "arguments": {"findings": []}}
    return {
        "format": 1,
        "steps": {
            "implement": [
                {"text": "I look at the code first.", "calls": [read]},
                {"calls": [edit("a - b", "a * b"), shell(f"echo implement >> {worked}")]},
                {"calls": [hand_in("It multiplies now.")]},
                {"text": "Done."},
            ],
            "implement#2": [
                {
                    "text": "The build says 6 is not 5: it has to be a plus.",
                    "calls": [edit("a * b", "a + b"), shell(f"echo repair >> {worked}")],
                },
                {"calls": [hand_in("It adds now.")]},
                {"text": "Done."},
            ],
            "review": [
                {"calls": [shell(f"echo review >> {worked}; {kill}")]},
                {"calls": [findings]},
                {"text": "Nothing to object."},
            ],
        },
    }


def _number(file: Path) -> str:
    return file.name


def _described(file: Path) -> str:
    entry = json.loads(file.read_text())
    return f"{entry['number']} {entry['kind']} {entry['name']}"
