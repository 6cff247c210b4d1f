"""The operating system's own fence around what the shell does."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping

from agl.ports.errors import InputError
from agl.ports.models import Restriction, SandboxMode

_NEEDS = ("bwrap", "socat")


class Sandbox:
    """Claude Code's sandbox of Linux and macOS: in it the shell writes in the tree and in temporary
    folders alone, and reaches nothing that listens on this machine. `auto`: where it is there, and
    the network is forbidden, which nothing else can see to. `require`: always, and no work without.
    """

    def __init__(self, mode: SandboxMode, environ: Mapping[str, str]) -> None:
        self._mode = mode
        self._missing = tuple(
            name
            for name in (_NEEDS if sys.platform == "linux" else ())
            if shutil.which(name, path=environ.get("PATH")) is None
        )

    def check(self) -> None:
        """Raises InputError when it is required and cannot be had."""
        if self._mode == "require" and self._missing:
            raise InputError(
                f"the sandbox is required, and {' and '.join(self._missing)} not on PATH;"
                " `apt-get install bubblewrap socat`, or set sandbox to 'auto'"
            )

    def is_on(self, restrictions: frozenset[Restriction]) -> bool:
        if self._mode == "auto":
            return Restriction.NO_NETWORK in restrictions and not self._missing
        return self._mode == "require"

    def name_for(self, restrictions: frozenset[Restriction]) -> str:
        """Empty when nothing confines the shell."""
        return "Claude Code's sandbox" if self.is_on(restrictions) else ""

    def settings(self, restrictions: frozenset[Restriction]) -> dict[str, object]:
        """As in Claude Code's settings."""
        if not self.is_on(restrictions):
            return {"enabled": False}
        reachable = [] if Restriction.NO_NETWORK in restrictions else ["*"]
        return {
            "enabled": True,
            "failIfUnavailable": True,
            "autoAllowBashIfSandboxed": False,
            "allowUnsandboxedCommands": False,
            "network": {"allowedDomains": reachable, "allowLocalBinding": True},
        }
