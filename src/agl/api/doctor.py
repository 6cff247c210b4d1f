"""What is missing on this machine, and what to type for it."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from agl.api import models, projects
from agl.config import container
from agl.config.settings import resolve
from agl.ports.errors import AglError, leaves
from agl.ports.models import ModelId
from agl.ports.processes import Command


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. `said` is what was found, or what is wrong and what to type.
    `doubtful`: it is not in order, and who does not need it misses nothing."""

    name: str
    ok: bool
    said: str
    doubtful: bool = False


async def doctor(
    environ: Mapping[str, str], home: str | None, here: Path, asked: Sequence[ModelId] = ()
) -> tuple[Check, ...]:
    """Looks at all that a run needs here, and goes on after what is missing; what several looks
    meet is said by the first. Each model that is `asked` does one turn, which is paid for. Makes
    nothing that stays."""

    async def settings() -> str:
        found = resolve(environ, home)
        _write_once(found.home)
        return str(found.home)

    async def git() -> str:
        repository = container.find_repository(here)
        problems = await container.history(repository).problems()
        if problems:
            raise ExceptionGroup("git", problems)
        return f"ready in {str(repository.top or repository.common_dir)!r}"

    async def project() -> str:
        known, _ = projects.find(resolve(environ, home), here)
        found = f"{known.name}, checked with {known.build or 'no build'}"
        if known.setup is not None:
            found += f"; new trees are set up with {known.setup}"
        if known.copy:
            found += f"; {', '.join(known.copy)} comes along into new trees"
        return found

    async def trees() -> str:
        found = resolve(environ, home)
        known, _ = projects.find(found, here)
        folder = known.trees(found)
        _write_once(folder)
        return str(folder)

    version = ".".join(map(str, sys.version_info[:3]))
    checks = [Check("Python", True, version)]
    looks: dict[str, Callable[[], Awaitable[str]]] = {
        "home": settings,
        "git": git,
        "project": project,
        "trees": trees,
        "sandbox": partial(models.own_loop, environ, home),
    }
    for name, look in looks.items():
        looked = await _checks(name, look)
        checks += [one for one in looked if one.said not in _problems(checks)]
    for provider in models.PROGRAMS:
        looked = await _checks(provider, partial(models.program, environ, home, provider))
        checks += [_of_program(one) for one in looked if one.said not in _problems(checks)]
    for model in asked:
        checks += await _checks(str(model), partial(models.turn, environ, home, model))
    doubt = await _doubt_of_the_build(environ, home, here)
    if doubt is not None:
        checks.append(Check("build", False, doubt, doubtful=True))
    return tuple(checks)


def _problems(checks: Sequence[Check]) -> set[str]:
    return {one.said for one in checks if not one.ok}


def _of_program(check: Check) -> Check:
    """A vendor's program is there, or it is not; who does not use it misses nothing."""
    return check if check.ok else replace(check, doubtful=True)


async def _doubt_of_the_build(
    environ: Mapping[str, str], home: str | None, here: Path
) -> str | None:
    """What a person should know of a build whose program a shell does not find here. A shell may
    find it in a tree all the same, after what comes before it on the line."""
    try:
        project, repository = projects.find(resolve(environ, home), here)
    except AglError:
        return None
    program = _program_of(project.build or "")
    folder = repository.top
    if program is None or folder is None:
        return None
    look = Command(("/bin/sh", "-c", 'command -v "$0"', program), folder, environ, timeout_s=60)
    if (await container.processes().run(look)).status == 0:
        return None
    return f"a shell finds no {program!r} in {str(folder)!r}; `agl init --build CMD` changes it"


def _program_of(build: str) -> str | None:
    """The first word of a command line, if it is plainly the name of a program."""
    words = (word for word in build.split() if not re.match(r"\w+=", word))
    first = next(words, "")
    return first if re.fullmatch(r"[\w./+-]+", first) else None


async def _checks(name: str, look: Callable[[], Awaitable[str]]) -> list[Check]:
    """What was found, or one check for each problem."""
    try:
        return [Check(name, True, await look())]
    except OSError as error:
        where = f"{error.filename!r}: " if error.filename else ""
        how = f"{where}{error.strerror}; `chmod u+rwx` it, or choose another"
        return [Check(name, False, how)]
    except (AglError, ExceptionGroup) as error:
        return [Check(name, False, str(problem)) for problem in leaves(error)]


def _write_once(folder: Path) -> None:
    """Raises OSError when nothing could be written in the folder, or where it would be made."""
    there = next(each for each in (folder, *folder.parents) if os.path.lexists(each))
    with tempfile.TemporaryFile(dir=there):
        pass
