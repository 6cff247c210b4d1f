"""What `git status` says of a tree."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from agl.adapters.git.runner import GitAt
from agl.ports.errors import UpstreamError

# git-status(1), "Porcelain Format Version 2": the number of fields before the path.
_FIELDS = {b"1": 8, b"2": 9, b"u": 10}


# What git says of an index that it cannot read (read-cache.c).
_BROKEN_INDEX = re.compile(
    "index file|bad signature 0x|bad index|unable to map index|in the index|header incomplete"
)

# What is not readable: an ignore file, a folder, a tracked file in a folder (dir.c, diff-lib.c).
_DENIED = re.compile(
    r"^(?:warning: (?:unable to access|could not open directory) ')?(.*?)'?"
    r": Permission denied$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Status:
    """`branch` None: detached; `head` None: no commit yet. `tracked` are the changed paths,
    `untracked` those that are not ignored, `nested` the repositories among them, `submodules`
    those of the tracked whose own tree or commit differs."""

    head: str | None
    branch: str | None
    tracked: tuple[bytes, ...]
    untracked: tuple[bytes, ...]
    nested: tuple[bytes, ...]
    submodules: tuple[bytes, ...]

    @property
    def clean(self) -> bool:
        return not (self.tracked or self.untracked or self.nested)


async def read_status(git: GitAt, tree: Path) -> Status | None:
    """One `git status`, or None when the index cannot be read; takes no lock."""
    answer = await git.run(
        "status",
        "--porcelain=v2",
        "--branch",
        "-z",
        "--untracked-files=all",
        "--ignore-submodules=none",
        "--no-renames",
        "--no-ahead-behind",
        check=False,
        locks=False,
    )
    _refuse_unread(tree, answer.stderr)
    if answer.status != 0:
        if _BROKEN_INDEX.search(answer.stderr):
            return None
        raise UpstreamError(git.refusal("status", answer))
    return parse_status(answer.stdout)


def _refuse_unread(tree: Path, stderr: str) -> None:
    """Git passes over what it may not read, with no more than a line on stderr."""
    for path in _DENIED.findall(stderr):
        # What is absolute is a person's own setting.
        if path.startswith("/"):
            continue
        parts = [tree / path, *(tree / path).parents]
        shut = next((one for one in reversed(parts) if not os.access(one, os.R_OK | os.X_OK)), None)
        what = shut or parts[0]
        mode = "u+rwx" if what.is_dir() else "u+r"
        raise UpstreamError(
            f"git may not read {str(what)!r} and would leave out what is there; "
            f"`chmod {mode} {shlex.quote(str(what))}` opens it"
        )


def parse_status(stdout: bytes) -> Status:
    """Reads `git status --porcelain=v2 --branch -z --untracked-files=all --no-renames`."""
    head: str | None = None
    branch: str | None = None
    tracked: list[bytes] = []
    untracked: list[bytes] = []
    nested: list[bytes] = []
    submodules: list[bytes] = []
    for record in stdout.split(b"\0"):
        kind = record[:1]
        if kind == b"#":
            _, name, value = record.decode("utf-8", "surrogateescape").split(" ", 2)
            if name == "branch.oid":
                head = None if value == "(initial)" else value
            elif name == "branch.head":
                branch = None if value == "(detached)" else value
        elif kind == b"?":
            path = record[2:]
            # With --untracked-files=all only a repository is listed as a folder.
            (nested if path.endswith(b"/") else untracked).append(path)
        elif kind in _FIELDS:
            fields = record.split(b" ", _FIELDS[kind])
            tracked.append(fields[-1])
            if fields[2][:1] == b"S":
                submodules.append(fields[-1])
    return Status(
        head,
        branch,
        tuple(tracked),
        tuple(untracked),
        tuple(nested),
        tuple(submodules),
    )
