"""The operating system's own fence around what the shell does."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agl.adapters.claude_code.environment import OWN_KEYS
from agl.ports.agents import AgentTask
from agl.ports.errors import InputError, UpstreamError
from agl.ports.models import Restriction, SandboxMode
from agl.ports.processes import Command, NotStarted, Processes
from agl.ports.servers import one_line

NAME: Final = "Claude Code's sandbox"

_ASKING: Final = frozenset(
    {Restriction.NO_FILE_WRITES, Restriction.NO_NETWORK, Restriction.NO_VCS_WRITES}
)
_NEEDS: Final = ("bwrap", "socat")
_PROBE_S: Final = 10.0
# What Claude Code 2.1.332 asks of bubblewrap that a machine may forbid.
_PROBE: Final = (
    *("bwrap", "--unshare-user", "--unshare-net", "--unshare-pid"),
    *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--", "true"),
)

# What Claude Code 2.1.332 puts over names that must not be written in, where there is nothing.
_COVERS: Final = """.bash_profile .bashrc .claude/.cc-writes .claude/agents .claude/commands
    .claude/hooks .claude/launch.json .claude/loop.md .claude/output-styles .claude/routines
    .claude/scheduled_tasks.json .claude/settings.json .claude/settings.local.json .claude/skills
    .claude/workflows .claude .gitconfig .gitmodules .idea .mcp.json .profile .ripgreprc .vscode
    .zprofile .zshrc""".split()  # noqa: SIM905


class Sandbox:
    """Whether Claude Code's sandbox of Linux and macOS is used. In it the shell writes in the tree
    and in temporary folders alone, and reaches nothing that listens on this machine. `auto`: where
    it is there, and a restriction asks for what nothing else can see to. `require`: always, and no
    work without."""

    def __init__(self, mode: SandboxMode, processes: Processes, environ: Mapping[str, str]) -> None:
        self._mode = mode
        self._processes = processes
        self._environ = environ
        self._lack: str | None = None

    async def check_ready(self) -> str:
        """In words, what there is.

        Raises:
            InputError: it is required, and cannot be had.
        """
        if self._mode == "off":
            return "no sandbox"
        if lack := await self._lacking():
            return f"no sandbox, {lack} (`apt-get install bubblewrap socat`)"
        return NAME if self._mode == "require" else f"{NAME} where a restriction asks for it"

    async def lack(self, restrictions: frozenset[Restriction]) -> str | None:
        """Why there is none though it is asked for: empty when there is one, None when it is not
        asked for.

        Raises:
            InputError: it is required, and cannot be had.
        """
        asked = self._mode == "require" or (
            self._mode == "auto"
            and Restriction.NO_SHELL not in restrictions
            and not _ASKING.isdisjoint(restrictions)
        )
        return await self._lacking() if asked else None

    async def _lacking(self) -> str:
        """Why there is none; empty when there is one, which has been tried once."""
        if self._lack is None:
            self._lack = await self._try()
        if self._lack and self._mode == "require":
            raise InputError(
                f"the sandbox is required, and {self._lack}; `apt-get install bubblewrap socat`,"
                " let its users have namespaces, or set sandbox to 'auto'"
            )
        return self._lack

    async def _try(self) -> str:
        if sys.platform == "darwin":
            return ""
        if sys.platform != "linux":
            return "Claude Code has one on Linux and macOS alone"
        path = self._environ.get("PATH", os.defpath)
        missing = [name for name in _NEEDS if shutil.which(name, path=path) is None]
        if missing:
            return f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not on PATH"
        try:
            done = await self._processes.run(
                Command(_PROBE, Path("/"), self._environ, timeout_s=_PROBE_S)
            )
        except NotStarted as error:
            return str(error)
        if done.timed_out:
            raise UpstreamError(f"bwrap said nothing for {_PROBE_S:g} s; try again")
        if done.status == 0:
            return ""
        said = one_line(done.stderr.decode(errors="replace"))
        return f"bwrap does not work here: {said or f'exit status {done.status}'}"


class Covers:
    """Empty files of the sandbox, which stay in the tree when the program is killed amid a command.
    Those that were there before are none."""

    def __init__(self, tree: Path) -> None:
        self._paths = [tree / name for name in _COVERS if not os.path.lexists(tree / name)]

    def remove(self) -> None:
        for path in self._paths:
            if _is_hollow(path):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _is_hollow(path: Path) -> bool:
    if path.is_dir() and not path.is_symlink():
        return all(map(_is_hollow, path.iterdir()))
    return path.is_file() and not path.is_symlink() and path.stat().st_size == 0


def settings_of(task: AgentTask, *, confined: bool) -> dict[str, object]:
    """As in Claude Code's settings."""
    if not confined:
        return {"enabled": False}
    reachable = [] if Restriction.NO_NETWORK in task.restrictions else ["*"]
    closed = _git_metadata(task.tree)
    if Restriction.NO_FILE_WRITES in task.restrictions:
        closed.append(os.path.realpath(task.tree))
    return {
        "enabled": True,
        "failIfUnavailable": True,
        "autoAllowBashIfSandboxed": False,
        "allowUnsandboxedCommands": False,
        "network": {"allowedDomains": reachable, "allowLocalBinding": True},
        "filesystem": {"denyWrite": closed},
        "credentials": {"envVars": [{"name": name, "mode": "deny"} for name in OWN_KEYS]},
    }


def _git_metadata(tree: Path) -> list[str]:
    """The tree's `.git` and, of a linked worktree, the repository, in which Claude Code 2.1.332
    lets the shell write. gitrepository-layout(5)."""
    entry = Path(os.path.realpath(tree), ".git")
    if not entry.is_file():
        return [str(entry)] if entry.is_dir() else []
    try:
        folder = entry.parent / os.fsdecode(entry.read_bytes().removeprefix(b"gitdir:").strip())
        common = folder / os.fsdecode((folder / "commondir").read_bytes().strip())
    except OSError:
        return [str(entry)]
    return [str(entry), os.path.realpath(common)]
