"""Questions to a repository's history, asked of git."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from agl.adapters.git.discovery import find_repository, git_dir_of
from agl.adapters.git.refs import HEADS, Refs
from agl.adapters.git.registration import checked_out_at
from agl.adapters.git.runner import LONG_S, Git
from agl.ports.errors import AglError, InputError, UpstreamError
from agl.ports.history import History, Repository

_OLDEST = (2, 34)
# ident.c: nothing set, set to nothing, or only a guess.
_NO_IDENTITY = re.compile("auto-detect|empty ident|tell me who you are|consists only of disallowed")


class GitHistory(History):
    """The history of one repository, seen from the tree in which it was found."""

    def __init__(self, git: Git, repository: Repository) -> None:
        self._runner = git
        self._repository = repository
        top = repository.top
        self._git_dir = (git_dir_of(top) if top else None) or repository.common_dir
        self._git = git.at(self._git_dir)
        self._refs = Refs(git, repository.common_dir)

    async def problems(self) -> tuple[AglError, ...]:
        too_old = await self._version()
        if too_old is not None:
            return (too_old,)
        found = (await self._identity(), await self._first_commit())
        return tuple(problem for problem in found if problem is not None)

    async def resolve(self, ref: str) -> str:
        if ref and "\0" not in ref:
            answer = await self._git.run(
                "rev-parse", "-q", "--verify", "--end-of-options", f"{ref}^{{commit}}", check=False
            )
            if answer.status == 0:
                return answer.text
            await self._git.run("rev-parse", "--git-dir")  # Fails where git could not even look.
        raise InputError(f"{ref!r} names no commit here; `git log --all --oneline` shows some")

    async def tip(self, branch: str) -> str | None:
        return await self._refs.commit(HEADS + branch)

    async def checked_out_at(self, branch: str) -> Path | None:
        return checked_out_at(self._repository, branch)

    async def missing(self, commits: Iterable[str]) -> frozenset[str]:
        asked = list(dict.fromkeys(commits))
        if not asked:
            return frozenset()
        answer = await self._git.run(
            "cat-file",
            "--batch-check=%(objecttype)",
            stdin="".join(f"{commit}\n" for commit in asked).encode(),
        )
        kinds = zip(asked, answer.text.splitlines(), strict=True)
        return frozenset(commit for commit, kind in kinds if kind != "commit")

    async def is_ancestor(self, older: str, newer: str) -> bool:
        answer = await self._git.run("merge-base", "--is-ancestor", older, newer, check=False)
        if answer.status > 1:
            raise UpstreamError(f"git cannot compare {older} and {newer}: {answer.stderr.strip()}")
        return answer.status == 0

    async def between(self, older: str, newer: str) -> tuple[str, ...]:
        answer = await self._git.run(
            "log", "-z", "--no-show-signature", "--format=%H %s", f"{older}..{newer}", "--"
        )
        return tuple(line for line in answer.text.split("\0") if line)

    async def patch(self, older: str, newer: str) -> str:
        answer = await self._git.run(
            "diff-tree",
            "-r",
            "-p",
            "--binary",
            "--find-renames",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            older,
            newer,
            "--",
            timeout_s=LONG_S,
        )
        return answer.stdout.decode("utf-8", "replace")

    async def message(self, commit: str) -> str:
        answer = await self._git.run(
            "show", "--no-patch", "--no-show-signature", "--no-notes", "--format=%B", commit, "--"
        )
        return answer.stdout.decode("utf-8", "replace").rstrip()

    async def files(self, commit: str) -> dict[str, bytes]:
        listed = await self._git.run("ls-tree", "-r", "-z", "--full-tree", commit)
        entries = [entry.partition(b"\t") for entry in listed.stdout.split(b"\0") if entry]
        blobs = [
            (path.decode("utf-8", "surrogateescape"), about.split()[2])
            for about, _, path in entries
            if about.split()[1] == b"blob"
        ]
        if not blobs:
            return {}
        answer = await self._git.run(
            "cat-file", "--batch", stdin=b"".join(blob + b"\n" for _, blob in blobs)
        )
        found: dict[str, bytes] = {}
        at = 0
        for path, _ in blobs:
            start = answer.stdout.index(b"\n", at) + 1
            size = int(answer.stdout[at : start - 1].split()[2])
            found[path] = answer.stdout[start : start + size]
            at = start + size + 1
        return found

    async def uncommitted(self, folder: Path) -> tuple[str, ...]:
        around = find_repository(folder)
        git_dir = git_dir_of(around.top) if around and around.top else None
        if around is None or around.top is None or git_dir is None:
            return ()
        answer = await self._runner.at(git_dir, around.top).run(
            "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", locks=False
        )
        rows = answer.stdout.decode("utf-8", "surrogateescape").split("\0")
        return tuple(row[3:] for row in rows if row)

    async def _version(self) -> AglError | None:
        said = (await self._git.run("version")).text
        numbers = re.search(r"(\d+)\.(\d+)", said)
        if numbers is None or (int(numbers[1]), int(numbers[2])) < _OLDEST:
            return UpstreamError(f"{said!r} is too old; install git 2.34 or newer")
        return None

    async def _identity(self) -> AglError | None:
        for who in ("GIT_COMMITTER_IDENT", "GIT_AUTHOR_IDENT"):
            answer = await self._git.run("var", who, check=False)
            if answer.status != 0 and not _NO_IDENTITY.search(answer.stderr):
                raise UpstreamError(self._git.refusal("var", answer))
            if answer.status != 0:
                return UpstreamError(
                    "git does not know who commits; set `git config --global user.name NAME` and "
                    "`git config --global user.email ADDRESS`"
                )
        return None

    async def _first_commit(self) -> AglError | None:
        if (await self._refs.head(self._git_dir)).commit is not None:
            return None
        some = await self._git.run("for-each-ref", "--count=1", "refs/heads", "refs/remotes")
        if some.text:
            return None
        first = "make a first commit with `git commit`"
        if self._repository.top is None:
            first = "push a first commit to it"
        return InputError(
            f"the repository {str(self._repository.common_dir)!r} has no commit yet; {first}"
        )
