"""What git could not merge, read from the stages of the index and from the disk."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from agl.adapters.git.discovery import git_dir_of
from agl.adapters.git.runner import GitAt
from agl.ports.errors import UpstreamError
from agl.ports.integrator import (
    BOTH_ADDED,
    BOTH_CHANGED,
    DELETED_HERE,
    DELETED_THERE,
    FILE_AGAINST_FOLDER,
    FOLDER_RENAMED,
    RENAMED_TWICE,
    SUBMODULE_MOVED,
    TWO_KINDS,
    Conflict,
    ConflictedPath,
)

_BASE = "1"
_GITLINK = "160000"
_KINDS = {"123": BOTH_CHANGED, "12": DELETED_THERE, "13": DELETED_HERE, "23": BOTH_ADDED}
# gitattributes(5), conflict-marker-size: 7 unless an attribute says more.
_MARKER = re.compile(rb"^(<{7,}|>{7,})( |\r?$)", re.MULTILINE)

Stages = Mapping[str, str]
"""Stage → mode of one unmerged path."""


async def unmerged(git: GitAt) -> Mapping[str, Stages]:
    """The unmerged paths of the index; one process."""
    answer = await git.run("ls-files", "-u", "-z")
    found: dict[str, dict[str, str]] = {}
    for row in answer.stdout.split(b"\0")[:-1]:
        about, _, path = row.partition(b"\t")
        mode, _, stage = about.decode("ascii").split()
        found.setdefault(os.fsdecode(path), {})[stage] = mode
    return found


def conflict_of(tree: Path, found: Mapping[str, Stages], other: str) -> Conflict:
    """The unmerged paths right after a merge of `other`, each with why."""
    return Conflict(
        tuple(
            ConflictedPath(path, _kind(tree, found, path, other), _digest(tree, path))
            for path in sorted(found)
        )
    )


def still_open(tree: Path, found: Mapping[str, Stages], conflict: Conflict) -> Conflict:
    """Those of the paths that nobody resolved."""
    return Conflict(
        tuple(one for one in conflict.paths if _is_open(tree, found.get(one.path, {}), one))
    )


def _is_open(tree: Path, stages: Stages, one: ConflictedPath) -> bool:
    as_left, marked = _digest(tree, one.path) == one.left, _is_marked(tree / one.path)
    # Where both sides renamed a file, nothing is to be decided of its old name.
    unmerged = stages.keys() not in (set(), {_BASE})
    return (as_left or marked) if unmerged else (as_left and marked)


def _kind(tree: Path, found: Mapping[str, Stages], path: str, other: str) -> str:
    stages = found[path]
    if set(stages.values()) == {_GITLINK}:
        return SUBMODULE_MOVED
    # merge-ort: what cannot lie at its own path is put at `path~HEAD` or `path~<other>`.
    asides = [f"{path}~HEAD", f"{path}~{other}"]
    own = next((path.removesuffix(end) for end in ("~HEAD", f"~{other}") if path.endswith(end)), "")
    if own and (tree / own).is_dir() and not (tree / own).is_symlink():
        return FILE_AGAINST_FOLDER
    if own in found or any(aside in found for aside in asides):
        return TWO_KINDS
    kind = _KINDS.get("".join(sorted(stages)))
    if kind is not None:
        return kind
    return RENAMED_TWICE if any(one.keys() == {_BASE} for one in found.values()) else FOLDER_RENAMED


def _digest(tree: Path, path: str) -> str | None:
    """What stands at the path: a file's content, a link's target, the commit of a submodule."""
    file = tree / path
    try:
        if file.is_symlink():
            content = b"link " + os.fsencode(file.readlink())
        elif file.is_file():
            content = b"file " + file.read_bytes()
        elif file.is_dir():
            git_dir = git_dir_of(file)
            content = b"folder " + ((git_dir / "HEAD").read_bytes() if git_dir else b"")
        else:
            return None
    except OSError as error:
        raise UpstreamError(f"cannot read {str(file)!r}: {error.strerror}") from error
    return hashlib.sha256(content).hexdigest()


def _is_marked(file: Path) -> bool:
    return file.is_file() and not file.is_symlink() and bool(_MARKER.search(file.read_bytes()))
