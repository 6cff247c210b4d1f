"""A linked tree as git sees it: looked at, mended, staged, committed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agl.adapters.git.index import hides_entries
from agl.adapters.git.reflog import in_operation
from agl.adapters.git.refs import Refs
from agl.adapters.git.registration import Registration
from agl.adapters.git.runner import LONG_S, GitAt
from agl.adapters.git.status import Status, read_status
from agl.ports.errors import UpstreamError
from agl.ports.history import Repository


@dataclass(frozen=True, slots=True)
class Look:
    """A tree as it is. `status` None: its index is gone or cannot be read."""

    head: str | None
    attached: bool
    status: Status | None
    hides: bool
    in_operation: bool

    @property
    def clean(self) -> bool:
        return (
            self.status is not None
            and self.status.clean
            and not self.hides
            and not self.in_operation
        )


class TreeIndex:
    """The index of one tree, and what it says of the files there."""

    def __init__(
        self,
        git: GitAt,
        refs: Refs,
        repository: Repository,
        registration: Registration,
        branch: str,
    ) -> None:
        self._git = git
        self._refs = refs
        self._repository = repository
        self._registration = registration
        self._git_dir = registration.git_dir
        self._branch = branch
        self._hides: tuple[tuple[int, int, int] | None, bool] = (None, False)

    def check(self) -> None:
        """Raises TreeVanished when git would act on another repository here."""
        self._registration.check(self._repository.common_dir)

    async def look(self) -> Look:
        """One look at the tree; one process."""
        self.check()
        busy = in_operation(self._git_dir)
        status: Status | None = None
        if (self._git_dir / "index").exists():
            try:
                status = await read_status(self._git, self._registration.folder)
            except UpstreamError:
                self.check()
                raise
        if status is None:
            head = await self._refs.head(self._git_dir)
            return Look(head.commit, head.branch == self._branch, None, False, busy)
        attached = status.branch == self._branch
        return Look(status.head, attached, status, self._hides_entries(status.head), busy)

    def _hides_entries(self, head: str | None) -> bool:
        index = self._git_dir / "index"
        told = index.stat()
        key = (told.st_mtime_ns, told.st_size, told.st_ino)
        if self._hides[0] != key:
            digits = len(head) if head else 40
            found = hides_entries(index.read_bytes(), digits, sparse=self._is_sparse)
            self._hides = (key, found)
        return self._hides[1]

    @property
    def _is_sparse(self) -> bool:
        """Whether what the tree leaves out is flagged skip-worktree."""
        return (self._git_dir / "info" / "sparse-checkout").exists()

    async def mended(self, look: Look) -> Look:
        """The look once the index tells what is in the tree."""
        if look.status is None:
            (self._git_dir / "index").unlink(missing_ok=True)
            await self._git.run("read-tree", *([look.head] if look.head else ["--empty"]))
            return await self.look()
        if not look.hides:
            return look
        lines = (await self._git.run("ls-files", "-v", "-z")).stdout.split(b"\0")
        assumed = [line[2:] for line in lines if line[:1].islower()]
        skipped = [] if self._is_sparse else [line[2:] for line in lines if line[:1] in b"Ss"]
        for flag, paths in (("assume-unchanged", assumed), ("skip-worktree", skipped)):
            await self._git.run(
                "update-index", f"--no-{flag}", "-z", "--stdin", stdin=listed(paths)
            )
        return await self.look()

    async def stage(self, look: Look) -> None:
        """Puts all that is dirty into the index, nested repositories left out."""
        nested = look.status.nested if look.status else ()
        if not nested:
            await self._git.run("add", "--all", "--sparse", timeout_s=LONG_S)
            return
        but = [b":(top)", *(b":(top,literal,exclude)" + path.rstrip(b"/") for path in nested)]
        await self._git.run(
            "add",
            "--all",
            "--sparse",
            "--pathspec-from-file=-",
            "--pathspec-file-nul",
            stdin=listed(but),
            timeout_s=LONG_S,
        )

    async def commit(self, head: str, message: str) -> str:
        made = await self._git.run(
            "commit",
            "--quiet",
            "--no-verify",
            "--cleanup=verbatim",
            "--file=-",
            stdin=message.encode(),
            check=False,
            timeout_s=LONG_S,
        )
        now = (await self._refs.head(self._git_dir)).commit
        if made.status == 0 and now is not None:
            return now
        # A merge is committed also where it changes nothing.
        if not in_operation(self._git_dir):
            same = await self._git.run("diff-index", "--cached", "--quiet", head, check=False)
            if same.status == 0:
                return head
        raise UpstreamError(self._git.refusal("commit", made))

    async def commit_on(self, start: str, message: str) -> str:
        """A commit of the index whose only parent is `start`, which stays if nothing differs."""
        tree = (await self._git.run("write-tree")).text
        if tree == await self.tree_of(start):
            return start
        made = await self._git.run(
            "commit-tree", tree, "-p", start, "-F", "-", stdin=message.encode()
        )
        return made.text

    async def tree_of(self, commit: str | None) -> str | None:
        if commit is None:
            return None
        return (await self._git.run("rev-parse", "--verify", f"{commit}^{{tree}}")).text

    async def tree_with(self, base: str, paths: tuple[bytes, ...]) -> tuple[str, str]:
        """The tree of `base`, and the same with these files as they are on disk."""
        index = self._git_dir / "agl-index"
        env = {"GIT_INDEX_FILE": str(index)}
        try:
            await self._git.run("read-tree", base, env=env)
            tree = (await self._git.run("write-tree", env=env)).text
            await self._git.run(
                "update-index", "--add", "--replace", "-z", "--stdin", stdin=listed(paths), env=env
            )
            return tree, (await self._git.run("write-tree", env=env)).text
        finally:
            index.unlink(missing_ok=True)

    async def contains(self, newer: str, older: str) -> bool:
        if newer == older:
            return True
        answer = await self._git.run("merge-base", "--is-ancestor", older, newer, check=False)
        return answer.status == 0


def listed(paths: Iterable[bytes]) -> bytes:
    return b"".join(path + b"\0" for path in paths)
