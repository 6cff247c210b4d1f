"""What the engine needs done, as ports."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agl.ports.agents import AgentRunner
from agl.ports.clock import Clock
from agl.ports.event_log import EventLog
from agl.ports.guards import Guards
from agl.ports.history import History
from agl.ports.ids import ProjectName
from agl.ports.integrator import Integrator
from agl.ports.kept import Kept
from agl.ports.locks import Locks
from agl.ports.processes import Processes
from agl.ports.store import Store
from agl.ports.terminal import Terminal
from agl.ports.verifier import Verifier
from agl.ports.workspace import WorkspaceProvider


@dataclass(frozen=True, slots=True)
class Services:
    """The ports of one project. `marker_root` begins the marker of its runs' processes: it tells
    this home apart from any other. `build` is the project's build command, None for no build.
    `checkout` is the working tree that AGL was called from, None in a bare repository."""

    project: ProjectName
    build: str | None
    build_timeout_s: float
    marker_root: str
    checkout: Path | None
    store: Store
    log: EventLog
    locks: Locks
    workspaces: WorkspaceProvider
    integrator: Integrator
    history: History
    kept: Kept
    guards: Guards
    verifier: Verifier
    processes: Processes
    terminal: Terminal
    clock: Clock
    agents: AgentRunner
