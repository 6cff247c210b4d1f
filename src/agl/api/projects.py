"""Registering a repository, and finding it again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agl.config import container, projects
from agl.config.projects import Project
from agl.config.settings import Settings
from agl.ports.errors import InputError, StateError
from agl.ports.history import Repository
from agl.ports.locks import LockHeld


@dataclass(frozen=True, slots=True)
class Initialised:
    """A registered project. `created`: it was not before; `changed`: its build is another now."""

    project: Project
    trees: Path
    created: bool
    changed: bool


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
    wait_s: float = 5.0,
) -> Initialised:
    """Registers the repository around a folder, or changes the build of a registered one; waits
    `wait_s` seconds for another process that does the same.

    Raises:
        InputError: there is no repository or it has no commit; or a new one and no build is said.
        StateError: another process still registers a project.
        UpstreamError: git is missing or too old, or the repository names no committer.
    """
    if build is not None and not build.strip():
        raise InputError("--build is empty; name a command, or use --no-build")
    repository = container.find_repository(start)
    await container.history(repository).check_ready()
    if build is None and not no_build:
        return _known(settings, repository)
    try:
        with container.locks(settings).hold(("projects",), wait_s=wait_s):
            return _registered(settings, repository, build)
    except LockHeld as error:
        raise StateError(f"{error.holder} is registering a project; try again") from error


def _known(settings: Settings, repository: Repository) -> Initialised:
    known = projects.lookup(settings, repository)
    if known is None:
        raise InputError(
            "say how the project is checked, as in `agl init --build 'make test'`, or"
            " `agl init --no-build`"
        )
    return Initialised(known, known.trees(settings), created=False, changed=False)


def _registered(settings: Settings, repository: Repository, build: str | None) -> Initialised:
    known = projects.lookup(settings, repository)
    project = projects.register(settings, repository, build)
    return Initialised(
        project,
        project.trees(settings),
        created=known is None,
        changed=known is not None and known.build != build,
    )
