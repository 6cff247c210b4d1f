"""What is alike in running any vendor's own agent program."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agl.ports.errors import InputError, UpstreamError
from agl.ports.processes import (
    ATTEMPT_VARIABLE,
    RUN_VARIABLE,
    Command,
    Marker,
    NotStarted,
    Processes,
    without_git_location,
)

PROBE_S: Final = 20.0
"""How long a program may take to say something about itself."""

_KEYS: Final = re.compile(
    r"(ANTHROPIC|CLAUDE_CODE|OPENAI|AZURE_OPENAI|CODEX|OPENROUTER|GEMINI|GROQ|MISTRAL|DEEPSEEK|XAI"
    r"|TOGETHER|FIREWORKS|COHERE|PERPLEXITY|CEREBRAS|HF|HUGGINGFACE|OLLAMA|REPLICATE)"
    r"_.*(KEY|TOKEN|SECRET)S?"
    r"|(ANTHROPIC|OPENAI)_CUSTOM_HEADERS|GOOGLE_API_KEY|GOOGLE_GENERATIVE_AI_API_KEY"
)


def environment_for(environ: Mapping[str, str], marker: Marker, own: str) -> dict[str, str]:
    """The environment of a vendor's program, with the marker: without variables of AGL, without
    what leads git elsewhere, and without keys but those that the pattern `own` matches."""
    kept = {
        name: value
        for name, value in without_git_location(environ).items()
        if not name.startswith("AGL_") and (re.fullmatch(own, name) or not _KEYS.fullmatch(name))
    }
    marked = {RUN_VARIABLE: marker.run}
    if marker.attempt is not None:
        marked[ATTEMPT_VARIABLE] = marker.attempt
    return {"PYTHONDONTWRITEBYTECODE": "1", **kept, **marked}


@dataclass(frozen=True, slots=True)
class Program:
    """A vendor's program of this machine. `package`: what brought it, empty when it is the user's
    own. `tether`: what to put before it so that it ends with this process."""

    name: str
    path: Path
    version: tuple[int, ...]
    package: str = ""
    tether: tuple[str, ...] = ()

    def __str__(self) -> str:
        origin = f"with {self.package}" if self.package else str(self.path)
        return f"{self.name} {_dotted(self.version)} ({origin})"

    def line(self, *words: str) -> str:
        """What a person types to run it; the package's is on nobody's PATH."""
        return shlex.join([str(self.path) if self.package else self.name, *words])


@dataclass(frozen=True, slots=True)
class Wanted:
    """A program by its name, from a version on. `own`: the one that `package` brings; `how` a
    person gets a newer one."""

    name: str
    least: tuple[int, ...]
    own: Path
    package: str
    how: str


async def find_program(processes: Processes, environ: Mapping[str, str], wanted: Wanted) -> Program:
    """The user's own, which has their login and their version, when it is new enough; else the
    package's.

    Raises:
        InputError: there is none, or none that is new enough.
        UpstreamError: there is one, and it does not say what it is; and no other.
    """
    found: list[str] = []
    broken: list[UpstreamError] = []
    on_path = shutil.which(wanted.name, path=environ.get("PATH", os.defpath))
    # An entry of PATH that is no absolute path means another program in each tree.
    theirs = [(Path(on_path), "")] if on_path and Path(on_path).is_absolute() else []
    ours = [(wanted.own, wanted.package)] if wanted.own.is_file() else []
    for path, package in theirs + ours:
        try:
            version = await version_of(processes, path, environ)
        except UpstreamError as error:
            broken.append(error)
            continue
        if version >= wanted.least:
            return Program(wanted.name, path, version, package, await tether(processes, environ))
        found.append(f"{str(path)!r} is {_dotted(version)}")
    name, least, how = wanted.name, _dotted(wanted.least), wanted.how
    if broken:
        raise broken[0]
    if found:
        raise InputError(f"{name} is too old: {', '.join(found)}, not {least} or newer; {how}")
    raise InputError(f"there is no {name}, {least} or newer, on PATH; install it, or {how}")


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


async def version_of(
    processes: Processes, path: Path, environ: Mapping[str, str]
) -> tuple[int, ...]:
    """What the program answers to `--version`.

    Raises:
        UpstreamError: it does not.
    """
    command = Command((str(path), "--version"), Path("/"), environ, timeout_s=PROBE_S)
    try:
        done = await processes.run(command)
    except NotStarted as error:
        raise UpstreamError(f"{error}; reinstall it") from error
    match = re.match(rb"\D*(\d+)\.(\d+)\.(\d+)", done.stdout)
    if done.status != 0 or match is None:
        raise UpstreamError(f"{str(path)!r} does not tell its version; run it, or reinstall it")
    return tuple(int(part) for part in match.groups())


async def tether(processes: Processes, environ: Mapping[str, str]) -> tuple[str, ...]:
    """What to put before a program so that it has a session of its own and is told to end (TERM)
    when this process ends; nothing where the system cannot."""
    words = ("setsid", "setpriv", "--pdeathsig", "TERM", "--")
    try:
        probe = await processes.run(
            Command((*words, "true"), Path("/"), environ, timeout_s=PROBE_S)
        )
    except NotStarted:
        return ()
    # busybox's setpriv, and util-linux before 2.33, do not know the option.
    return words if probe.status == 0 else ()
