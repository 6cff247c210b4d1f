"""The one place that runs git."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agl.ports.errors import ProgramTimedOut, UpstreamError
from agl.ports.processes import Command, Marker, NotStarted, Processes, without_git_location

SHORT_S = 120.0
LONG_S = 1800.0

_KEEP_BYTES = 1 << 30

# What a person set for their own work with git, and must have no effect on AGL's.
_SETTINGS = (
    "gc.auto=0",
    "maintenance.auto=false",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.ignoreStat=false",
    "core.safecrlf=false",
    "core.logAllRefUpdates=true",
    "core.filesRefLockTimeout=5000",
    "core.packedRefsTimeout=5000",
    "commit.gpgsign=false",
    "i18n.commitEncoding=UTF-8",
    "i18n.logOutputEncoding=UTF-8",
    "rerere.enabled=false",
    "submodule.recurse=false",
    "user.useConfigOnly=true",
)

_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": ":",
    "GIT_MERGE_AUTOEDIT": "no",
    "GIT_REFLOG_ACTION": "agl",
}


@dataclass(frozen=True, slots=True)
class Result:
    """What git answered: its exit status, all of stdout, and stderr as text."""

    status: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        return self.stdout.decode("utf-8", "surrogateescape").strip()


class Git:
    """Runs git with a person's hooks, signing, templates and prompts out of the way."""

    def __init__(
        self, processes: Processes, environ: Mapping[str, str], marker: Marker | None = None
    ) -> None:
        self._processes = processes
        self._environ = without_git_location(environ) | _ENVIRONMENT
        self._marker = marker
        self._options = tuple(part for setting in _SETTINGS for part in ("-c", setting))

    async def run(
        self,
        *args: str,
        cwd: Path,
        stdin: bytes = b"",
        timeout_s: float = SHORT_S,
        check: bool = True,
        env: Mapping[str, str] | None = None,
        locks: bool = True,
    ) -> Result:
        """Runs `git *args`. With `locks=False` it takes no lock that it can do without; with
        `check=False` a refusal is returned instead of raised.

        Raises:
            UpstreamError: git said no, or is not there.
            ProgramTimedOut: it was ended after `timeout_s` seconds.
        """
        extra = dict(env or {}) | ({} if locks else {"GIT_OPTIONAL_LOCKS": "0"})
        command = Command(
            argv=("git", *self._options, *args),
            cwd=cwd,
            env=self._environ | extra,
            stdin=stdin,
            timeout_s=timeout_s,
            keep_bytes=_KEEP_BYTES,
            marker=self._marker,
        )
        name = next((arg for arg in args if not arg.startswith("-") and "=" not in arg), "")
        try:
            ended = await self._processes.run(command)
        except NotStarted as error:
            if error.missing:
                raise UpstreamError(
                    "git is not installed, or not on PATH; install git 2.34 or newer"
                ) from error
            raise UpstreamError(f"git {name} could not be started: {error}") from error
        if ended.timed_out:
            raise ProgramTimedOut(f"git {name} in {str(cwd)!r} took longer than {timeout_s:g} s")
        result = Result(ended.status, ended.stdout, ended.stderr.decode("utf-8", "replace"))
        if check and result.status != 0:
            raise UpstreamError(_refusal(name, cwd, result))
        return result

    def at(self, git_dir: Path, work_tree: Path | None = None) -> GitAt:
        """Git bound to one repository, or to one of its trees, so that it looks for none."""
        return GitAt(self, git_dir, work_tree)


class GitAt:
    """Git on a repository that is named, never looked for."""

    def __init__(self, git: Git, git_dir: Path, work_tree: Path | None) -> None:
        self._git = git
        self._cwd = work_tree or git_dir
        self._env = {"GIT_DIR": str(git_dir)}
        if work_tree is not None:
            self._env["GIT_WORK_TREE"] = str(work_tree)

    async def run(
        self,
        *args: str,
        stdin: bytes = b"",
        timeout_s: float = SHORT_S,
        check: bool = True,
        env: Mapping[str, str] | None = None,
        locks: bool = True,
    ) -> Result:
        return await self._git.run(
            *args,
            cwd=self._cwd,
            stdin=stdin,
            timeout_s=timeout_s,
            check=check,
            env=self._env | dict(env or {}),
            locks=locks,
        )

    def refusal(self, name: str, result: Result) -> str:
        """One sentence on what git refused here."""
        return _refusal(name, self._cwd, result)


def _refusal(name: str, cwd: Path, result: Result) -> str:
    """One sentence with the first lines of what git said."""
    said = [line.strip() for line in result.stderr.splitlines() if line.strip()]
    said = [line for line in said if not line.startswith(("hint:", "warning:"))] or said
    words = "; ".join(re.sub(r"^(fatal|error): ", "", line) for line in said[:2])
    return f"git {name} failed in {str(cwd)!r}: {words or f'exit status {result.status}'}"
