"""What a new tree gets besides what is tracked."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import stat
from pathlib import Path

from agl.adapters.git.discovery import git_dir_of
from agl.adapters.git.runner import LONG_S, Git
from agl.adapters.git.status import read_status
from agl.adapters.git.workspace import GitWorkspace
from agl.ports.errors import UpstreamError
from agl.ports.processes import Marker
from agl.ports.verifier import Verifier

_MOST_NAMED = 5
_MOST_LINES = 10


class Equipment:
    """Ignored files of the checkout whose paths match one of the patterns `copy` (gitglossary(7),
    "glob"), then what the shell command `setup` makes. The verifier runs the command: as a build
    that has to pass, with the mark of the run."""

    def __init__(
        self,
        git: Git,
        verifier: Verifier,
        checkout: Path | None,
        marker_root: str,
        *,
        copy: tuple[str, ...] = (),
        setup: str | None = None,
        timeout_s: float = LONG_S,
    ) -> None:
        self._git = git
        self._verifier = verifier
        self._checkout = checkout
        self._marker_root = marker_root
        self._patterns = copy
        self._setup = setup
        self._timeout_s = timeout_s

    async def put_into(self, tree: GitWorkspace) -> tuple[str, ...]:
        """Equips a tree that is filled; returns what a person should know of it.

        Raises:
            UpstreamError: a file could not be copied, or the command failed.
        """
        told: list[str] = []
        for pattern in self._patterns:
            if not await self._copy(pattern, tree.path) and not tree.scope.path:
                told.append(
                    f"copy {pattern!r} brought nothing, for no ignored file of your checkout"
                    " matches it; `agl init --copy PATTERN` changes it"
                )
        if self._setup is not None:
            await self._set_up(self._setup, tree)
        left = await self._left(tree) if self._patterns or self._setup else ()
        return (*told, *left)

    async def _copy(self, pattern: str, tree: Path) -> bool:
        """Whether there is something to copy; unknown without a checkout, and then True."""
        checkout = self._checkout
        git_dir = None if checkout is None else git_dir_of(checkout)
        if checkout is None or git_dir is None:
            return True
        listed = await self._git.at(git_dir, checkout).run(
            "ls-files",
            "-z",
            "--others",
            "--ignored",
            "--exclude-standard",
            "--",
            f":(top,glob){pattern}",
            locks=False,
        )
        # A repository inside is listed as a folder, and is nobody's file.
        names = [name for name in listed.stdout.split(b"\0") if name and not name.endswith(b"/")]
        for name in names:
            _bring(checkout, tree, Path(os.fsdecode(name)))
            await asyncio.sleep(0)
        return bool(names)

    async def _set_up(self, command: str, tree: GitWorkspace) -> None:
        marker = Marker(f"{self._marker_root}/{tree.scope.label}")
        verdict = await self._verifier.verify(tree.path, command, self._timeout_s, marker)
        if not verdict.passed:
            lines = [line for line in verdict.tail.splitlines() if line.strip()]
            why = verdict.note or f"exit status {verdict.status}"
            first = (
                f"the setup {command!r} failed in the new tree of {tree.scope.tree!r} ({why}); "
                "`agl init --setup CMD` changes it"
            )
            raise UpstreamError("\n".join([first, *lines[-_MOST_LINES:]]))

    async def _left(self, tree: GitWorkspace) -> tuple[str, ...]:
        """A sentence for each path that a step would find changed."""
        status = await read_status(tree.git, tree.path)
        if status is None or status.clean:
            return ()
        told = [
            f"{os.fsdecode(path)!r} is tracked and was changed when the tree was set up; that is "
            "set aside before a step starts"
            for path in status.tracked
        ]
        listed = await tree.git.run(
            "ls-files", "-z", "--others", "--directory", "--exclude-standard", locks=False
        )
        # With --directory a folder is listed, too, in which every file is ignored (git 2.39).
        untracked = (*status.untracked, *status.nested)
        told += [
            f"{os.fsdecode(path)!r} came with a new tree, is not ignored, and is set aside before "
            f"a step starts; put {_ignoring(os.fsdecode(path))!r} into .gitignore"
            for path in listed.stdout.split(b"\0")
            if path and any(one.startswith(path) for one in untracked)
        ]
        more = len(told) - _MOST_NAMED
        return (*told[:_MOST_NAMED], *([f"{more} more paths are not ignored"] if more > 0 else []))


def _bring(checkout: Path, tree: Path, name: Path) -> None:
    """Copies one file or link, unless there is something in its place."""
    source, target = checkout / name, tree / name
    inner = [tree / parent for parent in name.parents]
    if os.path.lexists(target) or any(
        os.path.lexists(one) and (one.is_symlink() or not one.is_dir()) for one in inner
    ):
        return
    try:
        mode = source.lstat().st_mode
        if stat.S_ISREG(mode) or stat.S_ISLNK(mode):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    except FileNotFoundError:
        return
    except OSError as error:
        raise UpstreamError(
            f"cannot copy {str(source)!r} into the new tree {str(tree)!r}: {error.strerror}"
        ) from error


def _ignoring(path: str) -> str:
    """The line of a .gitignore that stands for just this path (gitignore(5))."""
    return "/" + re.sub(r"([\\*?\[\]]| $)", r"\\\1", path)
