"""Questions to the repository's history. Nothing here changes anything."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from agl.ports.errors import AglError


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository as it was found from a folder: `common_dir` is its one identity across linked
    trees and symbolic links; `top` is the working tree around the folder, None in a bare one."""

    common_dir: Path
    top: Path | None


class History(ABC):
    """What the repository holds."""

    @abstractmethod
    async def problems(self) -> tuple[AglError, ...]:
        """All that keeps AGL from committing here, in the order in which a person removes it, each
        with what to type: an UpstreamError for a git older than 2.34 or no committer identity, an
        InputError for a repository that has no commit yet.

        Raises:
            UpstreamError: there is no git, or it cannot read the repository.
        """

    async def check_ready(self) -> None:
        """Raises the first of the problems."""
        for problem in await self.problems():
            raise problem

    @abstractmethod
    async def resolve(self, ref: str) -> str:
        """The full id of the commit that `ref` names now.

        Raises:
            InputError: there is no such commit.
        """

    @abstractmethod
    async def tip(self, branch: str) -> str | None:
        """The commit a branch is at, or None when there is no such branch."""

    @abstractmethod
    async def checked_out_at(self, branch: str) -> Path | None:
        """The worktree that has the branch checked out, or None."""

    @abstractmethod
    async def missing(self, commits: Iterable[str]) -> frozenset[str]:
        """Those of the commits that the repository does not hold. One question for all."""

    @abstractmethod
    async def is_ancestor(self, older: str, newer: str) -> bool:
        """Whether `newer` contains `older`; a commit contains itself."""

    @abstractmethod
    async def between(self, older: str, newer: str) -> tuple[str, ...]:
        """The commits in `newer` that are not in `older`, newest first, as `id subject`."""

    @abstractmethod
    async def patch(self, older: str, newer: str) -> str:
        """What turns the files of `older` into those of `newer`, as a unified diff; bytes that are
        no UTF-8 are replaced. Empty when nothing differs."""

    @abstractmethod
    async def message(self, commit: str) -> str:
        """A commit's message without trailing white space."""

    @abstractmethod
    async def files(self, commit: str) -> dict[str, bytes]:
        """The commit's tree as path → content; a link's content is its target. For tests and
        small trees."""

    @abstractmethod
    async def uncommitted(self, folder: Path) -> tuple[str, ...]:
        """The paths with uncommitted changes in the working tree around `folder`; takes no lock."""
