"""The one way to start a child process, and to be sure that it is gone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

RUN_VARIABLE = "AGL_RUN"
ATTEMPT_VARIABLE = "AGL_ATTEMPT"

# What `git rev-parse --local-env-vars` lists, but for GIT_CONFIG_COUNT, by which a CI says what it
# trusts; and its siblings that move where git looks.
_GIT_LOCATION = frozenset(
    """GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_CEILING_DIRECTORIES GIT_COMMON_DIR GIT_CONFIG
    GIT_CONFIG_PARAMETERS GIT_DIR GIT_DISCOVERY_ACROSS_FILESYSTEM GIT_GRAFT_FILE
    GIT_IMPLICIT_WORK_TREE GIT_INDEX_FILE GIT_INTERNAL_SUPER_PREFIX GIT_NAMESPACE
    GIT_NO_REPLACE_OBJECTS GIT_OBJECT_DIRECTORY GIT_PREFIX GIT_QUARANTINE_PATH
    GIT_REPLACE_REF_BASE GIT_SHALLOW_FILE GIT_WORK_TREE""".split()  # noqa: SIM905
)


def without_git_location(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without what would point a child's git at another repository, as it is set
    for instance inside a git hook."""
    return {name: value for name, value in environ.items() if name not in _GIT_LOCATION}


@dataclass(frozen=True, slots=True)
class Marker:
    """What the processes of a run carry in their environment, so that they can be found again:
    `run` in RUN_VARIABLE and, for those of one attempt of a step, `attempt` in ATTEMPT_VARIABLE."""

    run: str
    attempt: str | None = None


class Stream(Enum):
    STDOUT = "stdout"
    STDERR = "stderr"


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run. `argv` is not read by a shell. `env` is the whole environment of the child,
    to which the marker is added. Of each output stream the last `keep_bytes` are kept. A child with
    `dies_with_agl` is killed by the system, where it can, when this process dies."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    stdin: bytes = b""
    timeout_s: float | None = None
    keep_bytes: int = 1_000_000
    marker: Marker | None = None
    dies_with_agl: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """How a child ended. `status` is its exit status, or minus the signal that killed it.
    `stdout_bytes` counts all that it wrote, `stdout` is the kept end of it; so for stderr."""

    status: int
    stdout: bytes
    stderr: bytes
    stdout_bytes: int
    stderr_bytes: int
    timed_out: bool
    duration_s: float


@dataclass(frozen=True, slots=True)
class Survivor:
    """A process that was found, with the start of its command line for a person to recognise."""

    pid: int
    command: str


class NotStarted(Exception):
    """The program could not be started at all. `missing`: it is not on this machine."""

    def __init__(self, program: str, reason: str, *, missing: bool = False) -> None:
        super().__init__(f"cannot start {program!r}: {reason}")
        self.program = program
        self.missing = missing


LineSink = Callable[[Stream, bytes], None]
"""Called with each line of output as it comes, without its line end. It must not raise."""


class Processes(ABC):
    """Children of this process. Each has a session of its own, both its pipes are drained at once,
    a line may be of any length, and a result counts when the child exits, even if a grandchild
    still holds the pipe."""

    @abstractmethod
    async def run(self, command: Command, on_line: LineSink | None = None) -> Finished:
        """Runs the child to its end.

        After the time limit, on cancellation, and when the child has exited, its whole group is
        ended (TERM, a grace, KILL) before this returns or raises.

        Raises:
            NotStarted: the program is missing or cannot be executed, or `cwd` is not there.
        """

    @abstractmethod
    async def end(self, marker: Marker) -> tuple[Survivor, ...]:
        """Ends every process that carries the marker, wherever its session or parent: TERM, a
        grace, KILL. Returns those it found, once they are gone; a cancellation meanwhile is raised
        after that. This process and its ancestors are never among them."""

    @abstractmethod
    def standing_in(self, folder: Path) -> tuple[Survivor, ...]:
        """Processes whose working folder is `folder` or below. They are a person's: to be named,
        never signalled."""
