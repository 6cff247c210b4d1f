"""Working trees as folders on disk: read into a snapshot, written from one."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath


class Kind(Enum):
    FILE = "file"
    EXECUTABLE = "executable"
    LINK = "link"


@dataclass(frozen=True, slots=True)
class File:
    """A file of a commit. A link's content is its target."""

    kind: Kind
    content: bytes


Snapshot = Mapping[str, File]
"""Path → file, as a commit holds them."""


@dataclass(frozen=True, slots=True)
class Found:
    """What lies in a working tree: the files that a commit of it would hold, the paths of ignored
    ones, and nested repositories, which are looked at from outside alone."""

    files: Snapshot
    ignored: tuple[str, ...]
    nested: tuple[str, ...]


def scan(tree: Path, tracked: Collection[str], patterns: Iterable[str]) -> Found:
    """Reads the tree. What is tracked is never ignored; patterns match a path or a part of it."""
    files: dict[str, File] = {}
    ignored: list[str] = []
    nested: list[str] = []
    for path in _walk(tree):
        if path not in tracked and _matches(path, patterns):
            ignored.append(path)
        elif (tree / path).is_dir() and not (tree / path).is_symlink():
            nested.append(path)
        else:
            files[path] = _read(tree / path)
    return Found(files, tuple(ignored), tuple(nested))


def in_the_way(paths: Iterable[str], target: Snapshot) -> tuple[str, ...]:
    """Those of the paths that cannot stay where they are when the target is written."""
    folders = {parent for path in target for parent in _parents(path)}
    return tuple(
        path
        for path in paths
        if path in target or path in folders or any(parent in target for parent in _parents(path))
    )


def write(tree: Path, present: Snapshot, target: Snapshot) -> None:
    """Makes the target's files of those that are present; other files are not touched."""
    for path in present:
        if path not in target:
            (tree / path).unlink()
            _remove_empty(tree, (tree / path).parent)
    for path, file in target.items():
        if present.get(path) != file:
            _write(tree / path, file)


def _walk(tree: Path, below: str = "") -> Iterator[str]:
    """The paths of files and links, and of nested repositories."""
    for entry in os.scandir(tree / below):
        path = below + entry.name
        if path == ".git":
            continue
        if not entry.is_dir(follow_symlinks=False):
            if entry.is_symlink() or entry.is_file():
                yield path
        elif (tree / path / ".git").exists():
            yield path
        else:
            yield from _walk(tree, path + "/")


def _matches(path: str, patterns: Iterable[str]) -> bool:
    names = (path, *path.split("/"))
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in names)


def _parents(path: str) -> tuple[str, ...]:
    return tuple(str(parent) for parent in PurePosixPath(path).parents)[:-1]


def _read(path: Path) -> File:
    if path.is_symlink():
        return File(Kind.LINK, os.fsencode(path.readlink()))
    kind = Kind.EXECUTABLE if path.stat().st_mode & 0o100 else Kind.FILE
    return File(kind, path.read_bytes())


def _write(path: Path, file: File) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        _remove_empty_below(path)
    path.unlink(missing_ok=True)
    if file.kind is Kind.LINK:
        path.symlink_to(os.fsdecode(file.content))
        return
    path.write_bytes(file.content)
    if file.kind is Kind.EXECUTABLE:
        path.chmod(path.stat().st_mode | 0o111)


def _remove_empty(tree: Path, folder: Path) -> None:
    while folder != tree and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def _remove_empty_below(folder: Path) -> None:
    for inner in folder.iterdir():
        _remove_empty_below(inner)
    folder.rmdir()
