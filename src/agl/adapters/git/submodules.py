"""Submodules in a tree, from what this machine already holds of them; nothing is fetched from
elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from agl.adapters.git.changes import Change
from agl.adapters.git.discovery import git_dir_of
from agl.adapters.git.registration import registrations
from agl.adapters.git.runner import LONG_S, Git
from agl.ports.history import Repository


class Submodules:
    """Those of one tree."""

    def __init__(self, git: Git, repository: Repository, git_dir: Path, tree: Path) -> None:
        self._runner = git
        self._repository = repository
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
            source = self._source(name) or await self._elsewhere(path)
            if source is None and not (self._own / name).is_dir():
                continue
            url = str(source or self._own / name)
            if await self._update(name, path, url):
                continue
            if not (await self._find_commit(path) and await self._update(name, path, url)):
                failed.append(path)
        return tuple(failed)

    async def _update(self, name: str, path: str, url: str) -> bool:
        # git refuses to clone a submodule from a path unless told (CVE-2022-39253).
        answer = await self._git.run(
            "-c",
            "protocol.file.allow=always",
            "-c",
            f"submodule.{name}.url={url}",
            "submodule",
            "--quiet",
            "update",
            "--checkout",
            "--",
            path,
            check=False,
            timeout_s=LONG_S,
        )
        return answer.status == 0

    async def _find_commit(self, path: str) -> bool:
        """Fetches the commit that the index wants from another tree, where one holds it."""
        own = git_dir_of(self._tree / path)
        wanted = await self._git.run("rev-parse", "-q", "--verify", f":0:{path}", check=False)
        if own is None or wanted.status != 0:
            return False
        return await self._fetch(own, path, wanted.text)

    async def fetch(self, coming: Iterable[Change]) -> None:
        """Fetches the commits that submodules are to be at from any tree of the repository that
        holds them."""
        for one in coming:
            path = os.fsdecode(one.path)
            own = git_dir_of(self._tree / path)
            if own is None or await self._holds(own, one.object):
                continue
            await self._fetch(own, path, one.object)

    async def _fetch(self, own: Path, path: str, commit: str) -> bool:
        holder = await self._elsewhere(path, commit)
        if holder is None:
            return False
        # Only what a ref is at may be fetched by default (git-config(1), uploadpack.*).
        await self._runner.at(own).run(
            "-c",
            "protocol.file.allow=always",
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-recurse-submodules",
            "--no-write-fetch-head",
            "--upload-pack=git -c uploadpack.allowAnySHA1InWant=true upload-pack",
            str(holder),
            f"{commit}:refs/agl/landed/{commit}",
            timeout_s=LONG_S,
        )
        return True

    async def unpublished(self, coming: Iterable[Change]) -> tuple[str, ...]:
        """A sentence for each commit of a submodule that the user's checkout does not hold."""
        names = {path: name for name, path in await self._listed()}
        told: list[str] = []
        for one in coming:
            path = os.fsdecode(one.path)
            source = self._source(names[path]) if path in names else None
            if source is None or not await self._holds(source, one.object):
                told.append(
                    f"submodule {path!r} is at {one.object}, which your checkout's does not hold; "
                    f"push it from {str(self._tree / path)!r}, or others cannot check it out"
                )
        return tuple(told)

    def _source(self, name: str) -> Path | None:
        """The repository of the submodule in the user's checkout."""
        return next((f / name for f in self._sources if (f / name).is_dir()), None)

    async def _elsewhere(self, path: str, commit: str | None = None) -> Path | None:
        """The repository of the submodule in another tree, one that holds the commit."""
        for tree in registrations(self._repository.common_dir):
            if tree.folder == self._tree or tree.half_made:
                continue
            git_dir = git_dir_of(tree.folder / path)
            if git_dir and (commit is None or await self._holds(git_dir, commit)):
                return git_dir
        return None

    async def _holds(self, git_dir: Path, commit: str) -> bool:
        answer = await self._runner.at(git_dir).run(
            "cat-file", "-e", f"{commit}^{{commit}}", check=False
        )
        return answer.status == 0

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
