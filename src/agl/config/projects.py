"""Registered repositories: one small TOML file each, found by the repository's common folder."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agl.config.settings import Settings, absolute_path, read_toml
from agl.ports.errors import InputError, NotFoundError, UpstreamError
from agl.ports.history import Repository
from agl.ports.ids import ProjectName, collision_key

_KEYS = ("common_dir", "folder", "build", "setup", "copy", "trees_root")


@dataclass(frozen=True, slots=True)
class Project:
    """A registered repository. `common_dir` is its identity, resolved; `folder` its main tree or,
    when it is bare, the repository itself. `build` is the build command, None: landings are called
    ungated. `setup` is the command that is run in each new tree, `copy` are the patterns of ignored
    files that come along from the checkout. `trees_root` None: as the settings say."""

    name: ProjectName
    common_dir: Path
    folder: Path
    build: str | None = None
    trees_root: Path | None = None
    setup: str | None = None
    copy: tuple[str, ...] = ()

    def trees(self, settings: Settings) -> Path:
        """Where the worktrees of its runs go: by default `.agl-trees` beside `folder`."""
        return self.trees_root or settings.trees_root or self.folder.parent / ".agl-trees"


def find(settings: Settings, repository: Repository) -> Project:
    """The project that a repository was registered as.

    Raises:
        NotFoundError: it was not; the message names `agl init`.
        InputError: a project's file is wrong.
    """
    project = lookup(settings, repository)
    if project is None:
        raise NotFoundError(
            f"the repository {str(main_folder(repository))!r} is not registered; `agl init`"
            " registers it"
        )
    return project


def lookup(settings: Settings, repository: Repository) -> Project | None:
    """The project that a repository was registered as, or None."""
    common_dir = repository.common_dir.resolve()
    return next((p for p in registered(settings) if p.common_dir == common_dir), None)


def registered(settings: Settings) -> Iterator[Project]:
    """All projects of this home, by name.

    Raises:
        InputError: a project's file is wrong.
    """
    folder = settings.home / "projects"
    try:
        files = sorted(file for file in folder.iterdir() if file.suffix == ".toml")
    except FileNotFoundError:
        return
    except OSError as error:
        raise UpstreamError(f"{str(folder)!r} cannot be read: {error.strerror}") from error
    for file in files:
        yield _read(file)


def register(
    settings: Settings,
    repository: Repository,
    build: str | None,
    *,
    setup: str | None = None,
    copy: tuple[str, ...] | None = None,
) -> Project:
    """Registers a repository, or gives a registered one another build. Callers take turns. Where
    `setup` or `copy` is None it stays as it is; an empty one is none.

    Raises:
        UpstreamError: the disk refused; nothing is changed.
    """
    project = lookup(settings, repository)
    if project is None:
        folder = main_folder(repository)
        name = _free_name(folder, {collision_key(p.name) for p in registered(settings)})
        project = Project(name, repository.common_dir.resolve(), folder)
    project = replace(
        project,
        build=build,
        setup=project.setup if setup is None else setup.strip() or None,
        copy=project.copy if copy is None else copy,
    )
    _write(file_of(settings, project.name), project)
    return project


def file_of(settings: Settings, name: ProjectName) -> Path:
    """The file that holds a project."""
    return settings.home / "projects" / f"{name}.toml"


def main_folder(repository: Repository) -> Path:
    """The main tree, also seen from a linked one; of a bare repository, its own folder."""
    common_dir = repository.common_dir.resolve()
    if common_dir.name == ".git":
        return common_dir.parent
    # gitrepository-layout(5): the `.git` of a submodule or of `--separate-git-dir` is a file that
    # names the repository itself; that of a linked tree names a folder below it.
    if repository.top is not None:
        pointer = repository.top / ".git"
        if pointer.is_file():
            target = pointer.read_text(errors="replace").removeprefix("gitdir:").strip()
            if (repository.top / target).resolve() == common_dir:
                return repository.top.resolve()
    return common_dir


def _free_name(folder: Path, taken: set[str]) -> ProjectName:
    slug = _slug(folder.name.removesuffix(".git"))
    number = 1
    while True:
        name = slug if number == 1 else f"{slug}-{number}"
        if collision_key(name) not in taken:
            return ProjectName(name)
        number += 1


def _slug(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", plain).strip("-")[:80] or "project"
    try:
        return ProjectName(slug)
    except InputError:
        return f"{slug}-project"


def _read(file: Path) -> Project:
    values = read_toml(file)
    where = repr(str(file))
    for key in values:
        if key not in _KEYS:
            raise InputError(f"{where}: unknown key {key!r}; known are {', '.join(_KEYS)}")
    try:
        name = ProjectName(file.stem)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    return Project(
        name=name,
        common_dir=_path(values, "common_dir", where),
        folder=_path(values, "folder", where),
        build=_command(values, "build", where),
        setup=_command(values, "setup", where),
        copy=_patterns(values, where),
        trees_root=_path(values, "trees_root", where) if "trees_root" in values else None,
    )


def _path(values: Mapping[str, object], key: str, where: str) -> Path:
    if key not in values:
        raise InputError(f"{where}: {key!r} is missing; remove the file and run `agl init` again")
    return absolute_path(values[key], f"{where}: {key!r}")


def _command(values: Mapping[str, object], key: str, where: str) -> str | None:
    command = values.get(key)
    if command is None:
        return None
    if not isinstance(command, str) or not command.strip():
        raise InputError(f"{where}: {key!r} is {command!r}, not a command in quotes")
    return command


def _patterns(values: Mapping[str, object], where: str) -> tuple[str, ...]:
    patterns = values.get("copy", [])
    if not isinstance(patterns, list):
        raise InputError(f"{where}: 'copy' is {patterns!r}, not a list of patterns")
    for pattern in patterns:
        problem = problem_of_pattern(pattern)
        if problem:
            raise InputError(f"{where}: 'copy' holds {pattern!r}, {problem}")
    return tuple(patterns)


def problem_of_pattern(pattern: object) -> str | None:
    """What keeps a value from being a pattern of paths below the checkout, or None."""
    if not isinstance(pattern, str) or not pattern.strip() or "\0" in pattern:
        return "which is no pattern such as '.env'"
    if pattern.startswith("/") or ".." in pattern.split("/"):
        return "which does not lie in the checkout; write it as seen from the top"
    return None


def _write(file: Path, project: Project) -> None:
    import tomli_w

    values: dict[str, object] = {
        "common_dir": str(project.common_dir),
        "folder": str(project.folder),
    }
    if project.build is not None:
        values["build"] = project.build
    if project.setup is not None:
        values["setup"] = project.setup
    if project.copy:
        values["copy"] = list(project.copy)
    if project.trees_root is not None:
        values["trees_root"] = str(project.trees_root)
    temporary = file.with_name(f".{file.stem}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="utf-8") as stream:
            stream.write(tomli_w.dumps(values))
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(file)
    except UnicodeEncodeError as error:
        temporary.unlink(missing_ok=True)
        raise InputError(f"the path {str(project.folder)!r} is not UTF-8; rename it") from error
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UpstreamError(f"{str(file)!r} cannot be written: {error.strerror}") from error
