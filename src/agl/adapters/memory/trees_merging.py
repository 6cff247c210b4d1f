"""A three-way merge of snapshots, file by file. What differs inside one file on both sides is a
conflict, however far apart; renames are not looked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agl.adapters.memory.trees_snapshot import File, Kind, Snapshot
from agl.ports.integrator import (
    BOTH_ADDED,
    BOTH_CHANGED,
    DELETED_HERE,
    DELETED_THERE,
    FILE_AGAINST_FOLDER,
    TWO_KINDS,
)


@dataclass(frozen=True, slots=True)
class MergedFiles:
    """What a merge leaves in the tree, and the paths that it could not merge, each with why."""

    files: Snapshot
    conflicts: Mapping[str, str]


def merge_files(base: Snapshot, ours: Snapshot, theirs: Snapshot, other: str) -> MergedFiles:
    """`other` is what the side that comes in is called in markers and in names of files."""
    files: dict[str, File] = {}
    conflicts: dict[str, str] = {}
    for path in sorted({*base, *ours, *theirs}):
        was, here, there = base.get(path), ours.get(path), theirs.get(path)
        if here == there or there == was:
            merged = here
        elif here == was:
            merged = there
        elif here is None or there is None:
            merged = here or there
            conflicts[path] = DELETED_HERE if here is None else DELETED_THERE
        elif Kind.LINK in (here.kind, there.kind) and here.kind is not there.kind:
            merged, aside = (here, there) if here.kind is Kind.LINK else (there, here)
            renamed = f"{path}~{'HEAD' if aside is here else other}"
            files[renamed] = aside
            conflicts[path] = conflicts[renamed] = TWO_KINDS
        else:
            merged, clean = _merge_file(was, here, there, other)
            if not clean:
                conflicts[path] = BOTH_ADDED if was is None else BOTH_CHANGED
        if merged is not None:
            files[path] = merged
    _part_files_from_folders(files, conflicts, ours, other)
    return MergedFiles(files, conflicts)


def _merge_file(was: File | None, here: File, there: File, other: str) -> tuple[File, bool]:
    kind = there.kind if was is not None and here.kind is was.kind else here.kind
    contents = was.content if was is not None else None
    if here.content == there.content or there.content == contents:
        return File(kind, here.content), was is not None or here.kind is there.kind
    if here.content == contents:
        return File(kind, there.content), True
    if kind is Kind.LINK or b"\0" in here.content + there.content:
        return File(kind, here.content), False
    marked = b"<<<<<<< HEAD\n%b=======\n%b>>>>>>> %b\n" % (
        _ended(here.content),
        _ended(there.content),
        other.encode(),
    )
    return File(kind, marked), False


def _ended(content: bytes) -> bytes:
    return content + b"\n" if content and not content.endswith(b"\n") else content


def _part_files_from_folders(
    files: dict[str, File], conflicts: dict[str, str], ours: Snapshot, other: str
) -> None:
    """Renames each file that stands where the other side has a folder, as git does."""
    folders = {
        "/".join(parts[:count])
        for parts in (path.split("/") for path in files)
        for count in range(1, len(parts))
    }
    for path in folders & files.keys():
        renamed = f"{path}~{'HEAD' if path in ours else other}"
        files[renamed] = files.pop(path)
        conflicts.pop(path, None)
        conflicts[renamed] = FILE_AGAINST_FOLDER
