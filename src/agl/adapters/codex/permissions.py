"""What the agent may do, in the terms of Codex."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from agl.adapters.codex.reading import part, parts, word
from agl.ports.confinement import is_writable
from agl.ports.models import Restriction

PROFILE: Final = "agl"
_ACCEPT: Final = {"decision": "accept"}
_DECLINE: Final = {"decision": "decline"}

Json = dict[str, Any]


class Permissions:
    """In Codex's sandbox, files are written in the tree and in `scratch` alone, `login` is not
    read, and without the network nothing is reached. Without it nothing confines the shell, and
    file tools are judged here."""

    def __init__(
        self,
        restrictions: frozenset[Restriction],
        tree: Path,
        *,
        is_confined: bool,
        scratch: Path,
        login: Path,
    ) -> None:
        self._is_confined = is_confined
        self._restrictions = restrictions
        self._tree = tree
        self._scratch = scratch
        self._login = login
        self._changes: dict[str, list[object]] = {}

    @property
    def approval(self) -> str:
        """Codex's word for when it asks."""
        return "never" if self._is_confined else "untrusted"

    def config(self) -> Json:
        """As in Codex's configuration."""
        made: Json = {"features.shell_tool": Restriction.NO_SHELL not in self._restrictions}
        if Restriction.NO_NETWORK in self._restrictions:
            made["web_search"] = "disabled"
        if not self._is_confined:
            return made | {"sandbox_mode": "danger-full-access"}
        writes = "read" if Restriction.NO_FILE_WRITES in self._restrictions else "write"
        made["default_permissions"] = PROFILE
        made[f"permissions.{PROFILE}"] = {
            "filesystem": {
                ":root": "read",
                ":project_roots": {".": writes},
                str(self._scratch): "write",
                # Where anything may not be read, a person's own rules do not lead commands out of
                # the sandbox (0.163.0).
                str(self._login): "deny",
            },
            "network": {"enabled": Restriction.NO_NETWORK not in self._restrictions},
        }
        return made

    def are_in_force(self, thread: Mapping[str, Any]) -> bool:
        """Whether Codex has taken them over, by its answer to the start of a thread."""
        if not self._is_confined:
            return True
        return part(thread, "activePermissionProfile").get("id") == PROFILE

    def note(self, item: Mapping[str, Any]) -> None:
        """Takes note of what an item would change: the question itself does not say."""
        if item.get("type") == "fileChange":
            changes = parts(item, "changes")
            moved = [part(one, "kind").get("move_path") for one in changes]
            named = [one.get("path") for one in changes]
            self._changes[word(item, "id")] = [*named, *(path for path in moved if path)]

    def answer(self, method: str, params: Mapping[str, Any]) -> Json | None:
        """What is said to a question of the program; None: nothing."""
        match method:
            case "item/commandExecution/requestApproval":
                return _DECLINE if self._is_confined else _ACCEPT
            case "item/fileChange/requestApproval":
                return _ACCEPT if self._may_change(word(params, "itemId")) else _DECLINE
        return None

    def _may_change(self, item: str) -> bool:
        paths = self._changes.get(item, [])
        is_allowed = Restriction.NO_FILE_WRITES not in self._restrictions
        return is_allowed and bool(paths) and all(is_writable(p, self._tree) for p in paths)
