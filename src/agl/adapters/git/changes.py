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


async def changes(git: GitAt, old: str, new: str) -> tuple[Change, ...]:
    """From one commit or tree to another; one process."""
    answer = await git.run(
        "diff-tree", "-r", "-z", "--no-renames", "--raw", "--no-abbrev", old, new
    )
    words = iter(answer.stdout.split(b"\0")[:-1])
    return tuple(_change(about, path) for about, path in zip(words, words, strict=True))


def _change(about: bytes, path: bytes) -> Change:
    _, mode, _, new, kind = about.split()
    return Change(kind, mode, new.decode("ascii"), path)
