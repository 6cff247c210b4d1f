"""What a step must not have touched, read from files."""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path

from agl.adapters.git.discovery import git_dir_of, main_tree
from agl.adapters.git.refs import HEADS, Refs
from agl.adapters.git.runner import Git
from agl.ports.guards import Guards, Reading
from agl.ports.history import Repository


class GitGuards(Guards):
    """The repository around a run. `checkout` is the working tree that the person works in."""

    def __init__(self, git: Git, repository: Repository, checkout: Path | None) -> None:
        self._git = git
        self._common = repository.common_dir
        self._refs = Refs(git, repository.common_dir)
        self._checkout = git_dir_of(checkout) if checkout is not None else None
        self._judged: tuple[bytes, str | None] | None = None

    async def read(self, branches: tuple[str, ...]) -> Reading:
        config = _bytes(self._common / "config")
        return Reading(
            branches={branch: await self._refs.commit(HEADS + branch) for branch in branches},
            broken_config=await self._broken(config),
            config=_digest(config),
            shallow=_digest(_bytes(self._common / "shallow")),
            stash=await self._stash(),
            checkout=await self._head(),
        )

    async def _stash(self) -> str:
        stash = await self._refs.commit("refs/stash")
        return f"{stash} {_digest(_bytes(self._common / 'logs' / 'refs' / 'stash'))}"

    async def _head(self) -> str:
        if self._checkout is None:
            return ""
        head = await self._refs.head(self._checkout)
        return f"{head.branch or '(detached)'} {head.commit}"

    async def _broken(self, config: bytes) -> str | None:
        if self._judged is None or self._judged[0] != config:
            self._judged = (config, await self._judge(config))
        return self._judged[1]

    async def _judge(self, config: bytes) -> str | None:
        file = str(self._common / "config")
        answer = await self._git.run(
            "config", "--file", "-", "-z", "--list", cwd=self._common, stdin=config, check=False
        )
        if not config or answer.status != 0:
            return f"git cannot read {file!r}; repair it with `git config --edit` or an editor"
        rows = [entry.partition("\n") for entry in answer.text.split("\0") if entry]
        values = {key: value if equals else "true" for key, equals, value in rows}
        if main_tree(self._common) is None:
            return None
        git_dir = shlex.quote(str(self._common))
        if values.get("core.bare", "").lower() in _TRUE:
            return (
                f"core.bare is true in {file!r}, so that git sees no working tree; "
                f"`git --git-dir={git_dir} config core.bare false` repairs it"
            )
        if "core.worktree" in values:
            return (
                f"core.worktree is {values['core.worktree']!r} in {file!r}, for every tree; "
                f"`git --git-dir={git_dir} config --unset-all core.worktree` repairs it"
            )
        return None


_TRUE = frozenset({"true", "yes", "on", "1"})


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest() if data else ""
