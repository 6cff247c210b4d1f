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
from agl.ports.locks import LockHeld


@dataclass(frozen=True, slots=True)
class Initialised:
    """A registered project. `created`: it was not before; `changed`: its build is another now."""

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
    wait_s: float = 5.0,
) -> Initialised:
    """Registers the repository around a folder, or changes the build of a registered one; waits
    `wait_s` seconds for another process that does the same.

    Raises:
        InputError: there is no repository or it has no commit.
        BuildNotSaid: it is a new one.
        StateError: another process still registers a project.
        UpstreamError: git is missing or too old, or the repository names no committer.
    """
    if build is not None and not build.strip():
        raise InputError("--build is empty; name a command, or use --no-build")
    if build is not None and len(build.splitlines()) > 1:
        raise InputError(
            "--build has several lines; write them into a script of the repository and name that"
        )
    repository = container.find_repository(start)
    await container.history(repository).check_ready()
    if build is None and not no_build:
        known = projects.lookup(settings, repository)
        if known is not None:
            return Initialised(known, known.trees(settings), created=False, changed=False)
        raise _build_not_said(repository)
    try:
        with container.locks(settings).hold(("projects",), wait_s=wait_s):
            return _registered(settings, repository, build)
    except LockHeld as error:
        raise StateError(f"{error.holder} is registering a project; try again") from error


def _build_not_said(repository: Repository) -> BuildNotSaid:
    detected = None if repository.top is None else detect(repository.top)
    flag = f"--build {shlex.quote(detected.command if detected else 'make test')}"
    why = f" ({detected.why})" if detected else ""
    return BuildNotSaid(
        f"say how the project is checked, as in `agl init {flag}`{why}, or `agl init --no-build`",
        detected,
    )


def _registered(settings: Settings, repository: Repository, build: str | None) -> Initialised:
    known = projects.lookup(settings, repository)
    project = projects.register(settings, repository, build)
    return Initialised(
        project,
        project.trees(settings),
        created=known is None,
        changed=known is not None and known.build != build,
    )
