"""What of the operating system confines an agent's children: bubblewrap, on Linux."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agl.ports.agents import AgentTask
from agl.ports.errors import InputError, UpstreamError
from agl.ports.models import Restriction, SandboxMode
from agl.ports.processes import Command, NotStarted, Processes
from agl.ports.servers import one_line

_ASKING: Final = frozenset(
    {Restriction.NO_FILE_WRITES, Restriction.NO_NETWORK, Restriction.NO_VCS_WRITES}
)
_NAME: Final = "bubblewrap"
_PROBE_S: Final = 10.0
# bwrap(1). A user namespace for root too: without it whoever runs as the same user writes through
# /proc/PID/root (proc(5)). None for processes: what is left behind is found by its environment.
_CLOSED: Final = (
    *("--unshare-user", "--cap-drop", "ALL", "--die-with-parent"),
    *("--ro-bind", "/", "/", "--dev", "/dev"),
)
# There are the sockets of Docker, D-Bus and others that would do for a child what it cannot, and
# also on NixOS the programs, and elsewhere where names are looked up.
_SERVICES: Final = Path("/run")
_NEEDED: Final = ("/run/current-system", "/run/systemd/resolve", "/run/resolvconf")


@dataclass(frozen=True, slots=True)
class Enclosure:
    """What to put before a command, and what to add to its environment. One without a name
    confines nothing; `lack`: why not, when that was asked for."""

    prefix: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    lack: str = ""


class Sandbox:
    """In it no file can be written but in the tree, less its `.git`, and in a temporary folder;
    under NO_FILE_WRITES not in the tree either. Under NO_NETWORK no address can be reached. What is
    left is who listens on a file outside /run, and signals to processes of the same user."""

    def __init__(self, mode: SandboxMode, processes: Processes, environ: Mapping[str, str]) -> None:
        self._mode = mode
        self._processes = processes
        self._environ = environ
        found = shutil.which("bwrap", path=environ.get("PATH", os.defpath)) or ""
        # An entry of PATH that is no absolute path means another program in each tree.
        self._bwrap = found if Path(found).is_absolute() else ""
        self._lack: str | None = None

    async def check_ready(self) -> str:
        """In words, what there is.

        Raises:
            InputError: it is required, and cannot be had.
        """
        if self._mode == "off":
            return "no sandbox"
        if lack := await self._lacking():
            return f"no sandbox, {lack} (`apt-get install bubblewrap`)"
        return _NAME if self._mode == "require" else f"{_NAME} where a restriction asks for it"

    @asynccontextmanager
    async def around(self, task: AgentTask) -> AsyncIterator[Enclosure]:
        """The enclosure of a task; its temporary folder is there as long as this is open.

        Raises:
            InputError: it is required, and cannot be had.
            UpstreamError: there is no room for the folder.
        """
        asked = self._is_asked(task.restrictions)
        lack = await self._lacking() if asked else ""
        if lack or not asked:
            yield Enclosure(lack=lack)
            return
        try:
            temp = os.path.realpath(tempfile.mkdtemp(prefix="agl-"))
        except OSError as error:
            raise UpstreamError(f"no temporary folder can be made: {error}") from error
        try:
            prefix = _prefix(self._bwrap, os.path.realpath(task.tree), temp, task.restrictions)
            yield Enclosure(prefix, {"TMPDIR": temp, "XDG_CACHE_HOME": f"{temp}/cache"}, _NAME)
        finally:
            await asyncio.to_thread(shutil.rmtree, temp, ignore_errors=True)

    def _is_asked(self, restrictions: frozenset[Restriction]) -> bool:
        if self._mode == "auto":
            return not _ASKING.isdisjoint(restrictions)
        return self._mode == "require"

    async def _lacking(self) -> str:
        """Why there is none; empty when there is one, which has been tried once."""
        if self._lack is None:
            self._lack = await self._try()
        if self._lack and self._mode == "require":
            raise InputError(
                f"the sandbox is required, and {self._lack}; `apt-get install bubblewrap`, let its"
                " users have namespaces, or set sandbox to 'auto'"
            )
        return self._lack

    async def _try(self) -> str:
        if sys.platform != "linux":
            return "AGL has one on Linux alone"
        if not self._bwrap:
            return "bwrap is not on PATH"
        prefix = _prefix(self._bwrap, "/usr", "/usr", frozenset(Restriction))
        try:
            done = await self._processes.run(
                Command((*prefix, "true"), Path("/"), self._environ, timeout_s=_PROBE_S)
            )
        except NotStarted as error:
            return str(error)
        if done.timed_out:
            raise UpstreamError(f"bwrap said nothing for {_PROBE_S:g} s; try again")
        if done.status == 0:
            return ""
        said = one_line(done.stderr.decode(errors="replace"))
        return f"bwrap does not work here: {said or f'exit status {done.status}'}"


def _prefix(
    bwrap: str, tree: str, temp: str, restrictions: frozenset[Restriction]
) -> tuple[str, ...]:
    words = [bwrap, *_CLOSED]
    if Restriction.NO_NETWORK in restrictions:
        words.append("--unshare-net")
    if _SERVICES.is_dir():
        words += ["--tmpfs", str(_SERVICES)]
        words += [word for one in _NEEDED for word in ("--ro-bind-try", one, one)]
        words += ["--remount-ro", str(_SERVICES)]
    git = os.path.join(tree, ".git")
    words += ["--ro-bind" if Restriction.NO_FILE_WRITES in restrictions else "--bind", tree, tree]
    words += ["--ro-bind-try", git, git, "--bind", temp, temp]
    return (*words, "--")
