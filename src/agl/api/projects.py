"""Registering a repository, and finding it again."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from agl.api.builds import Detected, detect
from agl.config import container, projects
from agl.config.projects import Project
from agl.config.settings import Settings
from agl.ports.errors import InputError, StateError
from agl.ports.history import Repository
from agl.ports.ledger import runs_folder
from agl.ports.locks import LockHeld


@dataclass(frozen=True, slots=True)
class Initialised:
    """A registered project. `created`: it was not before; `changed`: what was said of it is another
    now."""

    project: Project
    trees: Path
    created: bool
    changed: bool


class BuildNotSaid(InputError):
    """A repository is new, and nobody said how it is checked. `detected` is what its files speak
    for."""

    def __init__(self, message: str, detected: Detected | None) -> None:
        super().__init__(message)
        self.detected = detected


def find(settings: Settings, start: Path) -> tuple[Project, Repository]:
    """The project around a folder, and the repository as it is seen from there.

    Raises:
        InputError: the folder is in no repository.
        NotFoundError: the repository is not registered; the message names `agl init`.
    """
    repository = container.find_repository(start)
    return projects.find(settings, repository), repository


async def init(
    settings: Settings,
    start: Path,
    build: str | None = None,
    *,
    no_build: bool = False,
    setup: str | None = None,
    copy: tuple[str, ...] | None = None,
    wait_s: float = 5.0,
) -> Initialised:
    """Registers the repository around a folder, or changes what was said of a registered one: its
    build, and what new trees are given, the command `setup` and the patterns `copy`, empty ones for
    none. Waits `wait_s` seconds for another process that does the same.

    Raises:
        InputError: there is no repository or it has no commit.
        BuildNotSaid: it is a new one.
        StateError: another process still registers a project; or the repository was moved.
        UpstreamError: git is missing or too old, or the repository names no committer.
    """
    if build is not None and not build.strip():
        raise InputError("--build is empty; name a command, or use --no-build")
    for flag, command in (("--build", build), ("--setup", setup)):
        if command is not None and len(command.splitlines()) > 1:
            raise InputError(
                f"{flag} has several lines; write them into a script of the repository and name"
                " that"
            )
    for pattern in copy or ():
        problem = projects.problem_of_pattern(pattern)
        if problem is not None:
            raise InputError(f"--copy is {pattern!r}, {problem}")
    repository = container.find_repository(start)
    await container.history(repository).check_ready()
    known = projects.lookup(settings, repository)
    if known is None:
        await _refuse_moved(settings, repository)
    if build is None and not no_build:
        if known is None:
            raise _build_not_said(repository)
        if setup is None and copy is None:
            return Initialised(known, known.trees(settings), created=False, changed=False)
        build = known.build
    try:
        with container.locks(settings).hold(("projects",), wait_s=wait_s):
            known = projects.lookup(settings, repository)
            project = projects.register(settings, repository, build, setup=setup, copy=copy)
    except LockHeld as error:
        raise StateError(f"{error.holder} is registering a project; try again") from error
    return Initialised(
        project,
        project.trees(settings),
        created=known is None,
        changed=known not in (None, project),
    )


async def _refuse_moved(settings: Settings, repository: Repository) -> None:
    """Refuses a repository that was registered where it is no longer, as its runs' branches tell.

    Raises:
        StateError
    """
    history, store = container.history(repository), container.store(settings)
    for project in projects.registered(settings):
        if project.common_dir.exists():
            continue
        labels = store.folders(runs_folder(project.name))
        here = [label for label in labels if await history.tip(f"agl/{label}") is not None]
        if here:
            common_dir, folder = repository.common_dir.resolve(), projects.main_folder(repository)
            file = projects.file_of(settings, project.name)
            trees = shlex.quote(str(project.trees(settings) / project.name))
            raise StateError(
                f"{str(project.folder)!r} is gone, and runs of its project {str(project.name)!r}"
                f" ({', '.join(here[:3])}) are on branches here; if the repository was moved, set"
                f" common_dir to {str(common_dir)!r} and folder to {str(folder)!r} in"
                f" {str(file)!r} and type `git worktree repair {trees}/*/*`; if not, remove that"
                " file"
            )


def _build_not_said(repository: Repository) -> BuildNotSaid:
    detected = None if repository.top is None else detect(repository.top)
    flag = f"--build {shlex.quote(detected.command if detected else 'make test')}"
    why = f" ({detected.why})" if detected else ""
    return BuildNotSaid(
        f"say how the project is checked, as in `agl init {flag}`{why}, or `agl init --no-build`",
        detected,
    )
