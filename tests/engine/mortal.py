"""A process that dies at a chosen git process or write of the ledger, on real git."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from agl.adapters.filesystem import FilesystemLocks, FilesystemStore
from agl.adapters.git.equipment import Equipment
from agl.adapters.git.guards import GitGuards
from agl.adapters.git.history import GitHistory
from agl.adapters.git.integrator import GitIntegrator
from agl.adapters.git.kept import GitKept
from agl.adapters.git.runner import Git
from agl.adapters.git.workspaces import GitWorkspaces
from agl.adapters.memory.event_log import MemoryEventLog
from agl.adapters.system import SystemClock, SystemProcesses
from agl.config.container import find_repository
from agl.ports.agents import AgentRunner
from agl.ports.ids import ProjectName
from agl.ports.processes import Command, Finished, LineSink, Marker
from agl.ports.store import Address, Document
from agl.ports.terminal import Terminal
from agl.ports.verifier import Verifier
from agl.sdk._engine.services import Services


class Killed(BaseException):
    """Stands for SIGKILL: nothing of the process acts after it."""


@dataclass
class Life:
    """`moments` are the points that a process lives through; None: it does not die."""

    moments: int | None = None
    passed: int = 0
    is_dead: bool = field(default=False)

    def burn(self) -> None:
        self.passed += 1
        if self.is_dead or (self.moments is not None and self.passed > self.moments):
            self.is_dead = True
            raise Killed


class MortalProcesses(SystemProcesses):
    """May die before each child process is started, and after it has ended."""

    def __init__(self, life: Life) -> None:
        super().__init__()
        self._life = life

    async def run(self, command: Command, on_line: LineSink | None = None) -> Finished:
        self._life.burn()
        done = await super().run(command, on_line)
        self._life.burn()
        return done


class MortalStore(FilesystemStore):
    """May die before each write, and after it."""

    def __init__(self, home: Path, life: Life) -> None:
        super().__init__(home)
        self._life = life

    def write(self, address: Address, document: Document) -> None:
        self._life.burn()
        super().write(address, document)
        self._life.burn()

    def remove(self, address: Address) -> None:
        self._life.burn()
        super().remove(address)


def services(
    home: Path, repo: Path, life: Life, agents: AgentRunner, terminal: Terminal, verifier: Verifier
) -> Services:
    """The container's wiring, on processes and a ledger that may die."""
    processes, clock, environ = MortalProcesses(life), SystemClock(), dict(os.environ)
    repository, project = find_repository(repo), ProjectName("shop")
    # As in the container, one for each home: whoever else runs the same test is left alone.
    marker_root = f"{hashlib.sha256(bytes(home)).hexdigest()[:12]}/shop"
    git = Git(processes, environ, Marker(f"{marker_root}/x"))
    locks = FilesystemLocks(repository.common_dir / "agl")
    trees = home.parent / "trees"
    return Services(
        project=project,
        build="gate",
        build_timeout_s=60,
        marker_root=marker_root,
        checkout=repository.top,
        store=MortalStore(home, life),
        log=MemoryEventLog(),
        locks=FilesystemLocks(home / "locks"),
        workspaces=GitWorkspaces(
            git,
            repository,
            project,
            trees,
            locks,
            clock,
            Equipment(git, verifier, repository.top, marker_root),
        ),
        integrator=GitIntegrator(locks, clock),
        history=GitHistory(git, repository),
        kept=GitKept(git, repository, project, trees),
        guards=GitGuards(git, repository, repository.top),
        verifier=verifier,
        processes=processes,
        terminal=terminal,
        clock=clock,
        agents=agents,
    )
