"""What differs between two commits."""

from __future__ import annotations

from dataclasses import dataclass

from agl.adapters.git.runner import GitAt

_GITLINK = b"160000"


@dataclass(frozen=True, slots=True)
class Change:
    """A path that differs: `kind` is A, D, M or T as git-diff(1) has them, `mode` and `object` are
    those of the new side."""

    kind: bytes
    mode: bytes
    object: str
    path: bytes

    @property
    def is_submodule(self) -> bool:
        return self.mode == _GITLINK


_DIFF = ("diff-tree", "-r", "-z", "--no-renames", "--raw", "--no-abbrev")


async def changes(git: GitAt, old: str, new: str) -> tuple[Change, ...]:
    """From one commit or tree to another; one process."""
    return _read((await git.run(*_DIFF, old, new)).stdout)


async def brought(git: GitAt, head: str, other: str) -> tuple[Change, ...] | None:
    """What `other` did since it parted from `head`, or None where that is no one commit."""
    answer = await git.run(*_DIFF, "--merge-base", head, other, check=False)
    return _read(answer.stdout) if answer.status == 0 else None


def _read(stdout: bytes) -> tuple[Change, ...]:
    words = iter(stdout.split(b"\0")[:-1])
    return tuple(_change(about, path) for about, path in zip(words, words, strict=True))


def _change(about: bytes, path: bytes) -> Change:
    _, mode, _, new, kind = about.split()
    return Change(kind, mode, new.decode("ascii"), path)
