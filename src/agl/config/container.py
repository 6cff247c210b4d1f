"""The only place that builds adapters. Two doors, `real` and `in_memory`, and one light door each
for the ports of the commands that only look."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agl.config.projects import Project
from agl.config.settings import Settings
from agl.ports.errors import CorruptDocument, InputError
from agl.ports.event_log import EventLog
from agl.ports.history import History, Repository
from agl.ports.ids import Label, ProjectName
from agl.ports.ledger import run_folder
from agl.ports.locks import Locks
from agl.ports.store import Store

if TYPE_CHECKING:
    from agl.adapters.memory.agent import MemoryAgent
    from agl.adapters.memory.clock import HurryingClock
    from agl.adapters.memory.event_log import MemoryEventLog
    from agl.adapters.memory.repository import MemoryRepository
    from agl.adapters.memory.store import MemoryStore
    from agl.adapters.memory.terminal import MemoryTerminal
    from agl.adapters.memory.verifier import MemoryVerifier
    from agl.config.keys import Reached
    from agl.ports.agents import AgentRunner, Toolbox
    from agl.ports.clock import Clock
    from agl.ports.llm import LLM
    from agl.ports.processes import Processes
    from agl.ports.scripts import Plays
    from agl.ports.terminal import Answers, Terminal
    from agl.ports.verifier import Verdicts
    from agl.sdk._engine.services import Services


def find_repository(start: Path) -> Repository:
    """The repository around a folder.

    Raises:
        InputError: there is none.
    """
    from agl.adapters.git import discovery

    repository = discovery.find_repository(start)
    if repository is None:
        raise InputError(f"{str(start)!r} is not in a git repository; go to one, or `git init`")
    return repository


def store(settings: Settings) -> Store:
    """The ledger of this home."""
    from agl.adapters.filesystem import FilesystemStore

    return FilesystemStore(settings.home)


def event_log(settings: Settings) -> EventLog:
    """The log of this home."""
    from agl.adapters.filesystem import FilesystemEventLog

    return FilesystemEventLog(settings.home)


def locks(settings: Settings) -> Locks:
    """The locks of this home."""
    from agl.adapters.filesystem import FilesystemLocks

    return FilesystemLocks(settings.home / "locks")


def history(repository: Repository) -> History:
    """What the repository holds, before it is a project."""
    from agl.adapters.git.history import GitHistory
    from agl.adapters.git.runner import Git
    from agl.adapters.system import SystemProcesses

    return GitHistory(Git(SystemProcesses(), dict(os.environ), None), repository)


def processes() -> Processes:
    """Children of this process."""
    from agl.adapters.system import SystemProcesses

    return SystemProcesses()


def agents(settings: Settings) -> AgentRunner:
    """The agents of this machine, outside of any project."""
    from agl.adapters.system import SystemClock

    return _agents(settings, processes(), SystemClock(), dict(os.environ))


def plain_terminal() -> Terminal:
    """Progress on standard error, questions on standard input."""
    from agl.adapters.plain_terminal import PlainTerminal

    return PlainTerminal(sys.stdin, sys.stderr)


def drawn_terminal() -> Terminal:
    """The one for a person who watches; where nothing can be drawn, the plain one."""
    if not _can_be_drawn():
        return plain_terminal()
    from agl.adapters.rich_terminal import RichTerminal, is_in_front
    from agl.adapters.system import SystemClock

    if not is_in_front(sys.stderr.fileno()):
        return plain_terminal()
    colour = not os.environ.get("NO_COLOR")
    return RichTerminal(sys.stdin, sys.stderr, SystemClock(), colour=colour)


def _can_be_drawn() -> bool:
    """Whether a person sits at both ends, with a screen that knows more than lines."""
    if os.environ.get("TERM", "dumb") in ("", "dumb"):
        return False
    streams = (sys.stdin, sys.stderr)
    return all(one is not None and not one.closed and one.isatty() for one in streams)


def real(
    settings: Settings,
    project: Project,
    repository: Repository,
    terminal: Terminal,
    label: Label | None = None,
) -> Services:
    """The ports of one project on this machine, seen from the checkout in `repository`. With a
    label, git's own processes carry the mark of that run, and its trees are where they were made,
    whatever the settings say now."""
    from agl.adapters.filesystem import FilesystemLocks
    from agl.adapters.git.equipment import Equipment
    from agl.adapters.git.guards import GitGuards
    from agl.adapters.git.history import GitHistory
    from agl.adapters.git.integrator import GitIntegrator
    from agl.adapters.git.kept import GitKept
    from agl.adapters.git.runner import Git
    from agl.adapters.git.workspaces import GitWorkspaces
    from agl.adapters.shell import ShellVerifier
    from agl.adapters.system import SystemClock, SystemProcesses
    from agl.ports.processes import Marker
    from agl.sdk._engine.services import Services

    environ = dict(os.environ)
    processes = SystemProcesses()
    clock = SystemClock()
    marker_root = _marker_root(settings, project)
    ledger = store(settings)
    made = None if label is None else _trees_of(ledger, project.name, label)
    trees = made or project.trees(settings)
    tree_locks = FilesystemLocks(repository.common_dir / "agl")
    git = Git(processes, environ, None if label is None else Marker(f"{marker_root}/{label}"))
    verifier = ShellVerifier(processes, environ)
    equipment = Equipment(
        git,
        verifier,
        repository.top,
        marker_root,
        copy=project.copy,
        setup=project.setup,
        timeout_s=settings.build_timeout_s,
    )
    return Services(
        project=project.name,
        build=project.build,
        build_timeout_s=settings.build_timeout_s,
        marker_root=marker_root,
        checkout=repository.top,
        store=ledger,
        log=event_log(settings),
        locks=locks(settings),
        workspaces=GitWorkspaces(
            git, repository, project.name, trees, tree_locks, clock, equipment
        ),
        integrator=GitIntegrator(tree_locks, clock),
        history=GitHistory(git, repository),
        kept=GitKept(git, repository, project.name, trees),
        guards=GitGuards(git, repository, repository.top),
        verifier=verifier,
        processes=processes,
        terminal=terminal,
        clock=clock,
        agents=_agents(settings, processes, clock, environ),
    )


def _trees_of(ledger: Store, project: ProjectName, label: Label) -> Path | None:
    """The root of a recorded run's trees: its own lies at `<root>/<project>/<label>/_base`. Of a
    record that cannot be read the commands themselves tell."""
    try:
        record = ledger.read((*run_folder(project, label), "run")) or {}
    except CorruptDocument:
        return None
    tree = record.get("tree")
    return Path(tree).parents[2] if isinstance(tree, str) else None


@dataclass(frozen=True, slots=True)
class InMemory:
    """Services on fakes alone, with the fakes to script and to look into."""

    services: Services
    repository: MemoryRepository
    store: MemoryStore
    log: MemoryEventLog
    clock: HurryingClock
    agent: MemoryAgent
    terminal: MemoryTerminal
    verifier: MemoryVerifier


def in_memory(
    folder: Path,
    *,
    agent: Plays | None = None,
    answers: Answers = (),
    verdicts: Verdicts = (),
    files: Mapping[str, bytes] | None = None,
    build: str | None = "build",
    after: InMemory | None = None,
) -> InMemory:
    """The ports of a project in memory, its trees below `folder`; its first commit holds `files`.
    With `after`, a new process over the repository, ledger, log and clock of that one."""
    from agl.adapters.memory.agent import MemoryAgent
    from agl.adapters.memory.clock import HurryingClock
    from agl.adapters.memory.event_log import MemoryEventLog
    from agl.adapters.memory.integrator import MemoryIntegrator
    from agl.adapters.memory.locks import MemoryLocks
    from agl.adapters.memory.processes import MemoryProcesses
    from agl.adapters.memory.repository import MemoryRepository
    from agl.adapters.memory.store import MemoryStore
    from agl.adapters.memory.terminal import MemoryTerminal
    from agl.adapters.memory.trees_guards import MemoryGuards
    from agl.adapters.memory.trees_history import MemoryHistory
    from agl.adapters.memory.trees_kept import MemoryKept
    from agl.adapters.memory.trees_workspaces import MemoryWorkspaces
    from agl.adapters.memory.verifier import MemoryVerifier
    from agl.sdk._engine.services import Services

    if after is None:
        clock, ledger, log = HurryingClock(), MemoryStore(), MemoryEventLog()
        repository = MemoryRepository.with_files(folder, clock, files or {})
    else:
        clock, ledger, log = after.clock, after.store, after.log
        repository = after.repository
    project = ProjectName("memory")
    runner = MemoryAgent(agent)
    terminal = MemoryTerminal(answers)
    verifier = MemoryVerifier(verdicts)
    services = Services(
        project=project,
        build=build,
        build_timeout_s=Settings(folder).build_timeout_s,
        marker_root="memory",
        checkout=repository.checkout,
        store=ledger,
        log=log,
        locks=MemoryLocks(),
        workspaces=MemoryWorkspaces(repository, project),
        integrator=MemoryIntegrator(repository),
        history=MemoryHistory(repository),
        kept=MemoryKept(repository),
        guards=MemoryGuards(repository),
        verifier=verifier,
        processes=MemoryProcesses({}),
        terminal=terminal,
        clock=clock,
        agents=runner,
    )
    return InMemory(services, repository, ledger, log, clock, runner, terminal, verifier)


def _marker_root(settings: Settings, project: Project) -> str:
    import hashlib

    home = hashlib.sha256(os.fsencode(settings.home.resolve())).hexdigest()[:12]
    return f"{home}/{project.name}"


def toolbox(settings: Settings) -> Toolbox:
    """What AGL's own agents work with on this machine."""
    return _toolbox(settings, processes(), dict(os.environ))


def _toolbox(settings: Settings, processes: Processes, environ: Mapping[str, str]) -> Toolbox:
    from agl.adapters.worktools import WorkTools
    from agl.config.keys import without_keys

    return WorkTools(processes, without_keys(environ, settings.models), settings.sandbox)


def _agents(
    settings: Settings, processes: Processes, clock: Clock, environ: Mapping[str, str]
) -> AgentRunner:
    from agl.adapters.routing import RoutingRunner

    def looping(llm: LLM) -> AgentRunner:
        from agl.loop.runner import LoopRunner

        return LoopRunner(llm, _toolbox(settings, processes, environ))

    def scripted() -> AgentRunner:
        from agl.adapters.scripted import ScriptedLLM

        return looping(ScriptedLLM(clock))

    def anthropic() -> AgentRunner:
        with needs("anthropic", extra="anthropic"):
            from agl.adapters.anthropic import AnthropicLLM

        return looping(AnthropicLLM(clock, **reach("anthropic")))

    def openai_compatible() -> AgentRunner:
        with needs("openai", extra="openai"):
            from agl.adapters.openai_compatible import OpenAICompatibleLLM

        return looping(OpenAICompatibleLLM(clock, **reach("openai_compatible")))

    def claude_code() -> AgentRunner:
        with needs("claude_agent_sdk", extra="claude-code"):
            from agl.adapters.claude_code import OWN_KEYS, ClaudeCodeRunner

        return ClaudeCodeRunner(
            processes,
            clock,
            with_own_keys(OWN_KEYS),
            sandbox=settings.sandbox,
            idle_s=settings.idle_s,
            wall_s=settings.wall_s,
        )

    def codex() -> AgentRunner:
        with needs("codex_cli_bin", "mcp", "uvicorn", extra="codex"):
            from agl.adapters.codex import OWN_KEYS, CodexRunner

        return CodexRunner(
            processes,
            clock,
            with_own_keys(OWN_KEYS),
            sandbox=settings.sandbox,
            idle_s=settings.idle_s,
            wall_s=settings.wall_s,
        )

    def with_own_keys(names: Collection[str]) -> dict[str, str]:
        from agl.config.keys import without_keys

        own = {name: value for name, value in environ.items() if name in names}
        return without_keys(environ, settings.models) | own

    def reach(provider: str) -> Reached:
        from agl.config.keys import reached

        return reached(provider, settings.models, environ, processes, clock)

    return RoutingRunner(
        {
            "scripted": scripted,
            "anthropic": anthropic,
            "openai_compatible": openai_compatible,
            "claude_code": claude_code,
            "codex": codex,
        }
    )


@contextmanager
def needs(*packages: str, extra: str) -> Iterator[None]:
    """Around the import of an adapter whose vendor's packages may not be there.

    Raises:
        InputError: it is not; with what to type.
    """
    try:
        yield
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package not in packages:
            raise
        name = package.replace("_", "-")
        how = f"`{shlex.quote(sys.executable)} -m pip install 'agl[{extra}]'`"
        raise InputError(f"{name} is not installed; {how}") from error
