"""Submodules in a tree, from what the checkout already holds of them; nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from agl.adapters.git.discovery import git_dir_of
from agl.adapters.git.runner import LONG_S, Git
from agl.ports.history import Repository


class Submodules:
    """Those of one tree."""

    def __init__(self, git: Git, repository: Repository, git_dir: Path, tree: Path) -> None:
        self._runner = git
        self._git = git.at(git_dir, tree)
        self._own = git_dir / "modules"
        own = git_dir_of(repository.top) if repository.top else None
        self._sources = [
            folder / "modules" for folder in (own, repository.common_dir) if folder is not None
        ]
        self._tree = tree

    async def populate(self, only: Iterable[bytes] | None = None) -> tuple[str, ...]:
        """Checks out the submodules that the user's checkout has, or those of them at the paths
        `only`; returns the paths that could not be."""
        wanted = None if only is None else set(only)
        failed: list[str] = []
        for name, path in await self._listed():
            if wanted is not None and path.encode("utf-8", "surrogateescape") not in wanted:
                continue
            source = next((f / name for f in self._sources if (f / name).is_dir()), None)
            if source is None and not (self._own / name).is_dir():
                continue
            # git refuses to clone a submodule from a path unless told (CVE-2022-39253).
            answer = await self._git.run(
                "-c",
                "protocol.file.allow=always",
                "-c",
                f"submodule.{name}.url={source or self._own / name}",
                "submodule",
                "--quiet",
                "update",
                "--checkout",
                "--",
                path,
                check=False,
                timeout_s=LONG_S,
            )
            if answer.status != 0:
                failed.append(path)
        return tuple(failed)

    async def keep_commit(self, path: bytes, ref: str) -> None:
        """Keeps the commit that a submodule is at under a ref of the submodule's own repository."""
        folder = self._tree / path.decode("utf-8", "surrogateescape")
        git_dir = git_dir_of(folder)
        if git_dir is None:
            return
        inner = self._runner.at(git_dir)
        if (await inner.run("rev-parse", "-q", "--verify", "HEAD", check=False)).status == 0:
            await inner.run("update-ref", ref, "HEAD")

    async def _listed(self) -> list[tuple[str, str]]:
        if not (self._tree / ".gitmodules").is_file():
            return []
        answer = await self._git.run(
            "config",
            "-z",
            "--file",
            ".gitmodules",
            "--get-regexp",
            r"^submodule\..*\.path$",
            check=False,
        )
        rows = [row.partition("\n") for row in answer.text.split("\0") if row]
        return [
            (key.removeprefix("submodule.").removesuffix(".path"), path) for key, _, path in rows
        ]
