"""A real repository in a temporary folder, its ports, and an agent's hands in its trees."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from agl.adapters.filesystem import FilesystemLocks
from agl.adapters.git.discovery import find_repository
from agl.adapters.git.guards import GitGuards
from agl.adapters.git.history import GitHistory
from agl.adapters.git.integrator import GitIntegrator
from agl.adapters.git.kept import GitKept
from agl.adapters.git.runner import Git
from agl.adapters.git.workspaces import GitWorkspaces
from agl.adapters.system import SystemClock, SystemProcesses
from agl.ports.guards import Guards
from agl.ports.history import History
from agl.ports.integrator import Integrator
from agl.ports.kept import Kept
from agl.ports.processes import Command, Finished, LineSink, Marker, Processes, Survivor
from agl.ports.workspace import WorkspaceProvider
from agl.testing.contracts.trees import BASE_FILES, SCOPE

IDENTITY = {"name": "A Person", "email": "person@example.org"}


def environment(home: Path) -> dict[str, str]:
    """An environment in which no configuration of the machine's counts."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "GIT_CONFIG_GLOBAL": str(home / "gitconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
    }


class CountedProcesses(Processes):
    """Starts real children and remembers their command lines."""

    def __init__(self) -> None:
        self._real = SystemProcesses()
        self.started: list[tuple[str, ...]] = []

    async def run(self, command: Command, on_line: LineSink | None = None) -> Finished:
        self.started.append(command.argv)
        return await self._real.run(command, on_line)

    async def end(self, marker: Marker) -> tuple[Survivor, ...]:
        return await self._real.end(marker)

    def standing_in(self, folder: Path) -> tuple[Survivor, ...]:
        return self._real.standing_in(folder)


class Killed(BaseException):
    """This process died here."""


class MortalProcesses(Processes):
    """Starts `left` more children, then dies and stays dead; None: lives on."""

    def __init__(self) -> None:
        self._real = SystemProcesses()
        self.left: int | None = None

    async def run(self, command: Command, on_line: LineSink | None = None) -> Finished:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Killed
        return await self._real.run(command, on_line)

    async def end(self, marker: Marker) -> tuple[Survivor, ...]:
        return await self._real.end(marker)

    def standing_in(self, folder: Path) -> tuple[Survivor, ...]:
        return self._real.standing_in(folder)


class GitTrees:
    """`TreesUnderTest` on real git: a checkout in `place/checkout`, trees in `place/trees`."""

    def __init__(self, place: Path, processes: Processes | None = None) -> None:
        self.place = place
        self.environ = environment(place)
        self.processes = processes or SystemProcesses()
        self.checkout = place / "checkout"
        self.trees_root = place / "trees"
        self.checkout.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        for key, value in IDENTITY.items():
            self.git("config", f"user.{key}", value)
        for name, content in BASE_FILES.items():
            file = self.checkout / name
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(content)
        (self.checkout / ".git" / "info").mkdir(exist_ok=True)
        (self.checkout / ".git" / "info" / "exclude").write_text("*.ignored\n")
        self.base = self.commit_in(self.checkout, "base")
        self.connect()

    def connect(self, start: Path | None = None) -> None:
        """Builds the ports as a new process does."""
        found = find_repository(start or self.checkout)
        assert found is not None
        self.repository = found
        self.runner = Git(self.processes, self.environ)
        self.provider: WorkspaceProvider = self.another_provider()
        self.integrator: Integrator = self.another_integrator()
        self.history: History = GitHistory(self.runner, found)
        self.kept: Kept = GitKept(self.runner, found, SCOPE.project, self.trees_root)
        self.guards: Guards = GitGuards(self.runner, found, found.top)

    def another_provider(self) -> WorkspaceProvider:
        return GitWorkspaces(
            self.runner,
            self.repository,
            SCOPE.project,
            self.trees_root,
            FilesystemLocks(self.repository.common_dir),
            SystemClock(),
        )

    def another_integrator(self) -> Integrator:
        return GitIntegrator(FilesystemLocks(self.repository.common_dir), SystemClock())

    def git(self, *args: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
        """Git as a person or an agent runs it; its stdout without trailing white space."""
        ended = subprocess.run(
            ["git", *args],
            cwd=cwd or self.checkout,
            env=self.environ | (env or {}),
            capture_output=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr.decode()
        return ended.stdout.decode("utf-8", "surrogateescape").rstrip()

    def stage_in(self, tree: Path, path: str) -> None:
        self.git("add", "--", f":(literal){path}", cwd=tree)

    def commit_in(self, tree: Path, message: str) -> str:
        self.git("add", "--all", cwd=tree)
        self.git("commit", "--quiet", "--allow-empty", "-m", message, cwd=tree)
        return self.git("rev-parse", "HEAD", cwd=tree)

    def commit_ignored_in(self, tree: Path, path: str, content: bytes, message: str) -> str:
        file = tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        self.git("add", "--force", path, cwd=tree)
        self.git("commit", "--quiet", "-m", message, cwd=tree)
        return self.git("rev-parse", "HEAD", cwd=tree)

    def amend_in(self, tree: Path, message: str) -> str:
        self.git("add", "--all", cwd=tree)
        self.git("commit", "--quiet", "--amend", "-m", message, cwd=tree)
        return self.git("rev-parse", "HEAD", cwd=tree)

    def reset_in(self, tree: Path, commit: str) -> None:
        self.git("reset", "--quiet", "--hard", commit, cwd=tree)

    def detach_in(self, tree: Path) -> None:
        self.git("checkout", "--quiet", "--detach", cwd=tree)

    def branch_in(self, tree: Path, branch: str) -> None:
        self.git("checkout", "--quiet", "-b", branch, cwd=tree)

    def switch_in(self, tree: Path, branch: str) -> None:
        self.git("checkout", "--quiet", branch, cwd=tree)

    def move_branch(self, branch: str, commit: str) -> None:
        self.git("update-ref", f"refs/heads/{branch}", commit)

    def stash_in(self, tree: Path) -> None:
        self.git("stash", "--quiet", "--include-untracked", cwd=tree)

    def nest_in(self, tree: Path, name: str, *, with_commit: bool) -> None:
        inner = tree / name
        inner.mkdir()
        (inner / "inside.txt").write_bytes(b"nested")
        self.git("init", "--quiet", cwd=inner)
        if with_commit:
            for key, value in IDENTITY.items():
                self.git("config", f"user.{key}", value, cwd=inner)
            self.commit_in(inner, "inner")

    def break_config(self) -> None:
        self.git("config", "core.bare", "true")
