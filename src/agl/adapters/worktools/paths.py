"""Paths in a tree, and no way out of it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from agl.adapters.worktools.arguments import Refused
from agl.ports.confinement import is_git


def inside(tree: Path, given: str) -> Path:
    """Where a path of a tool's argument lies, links followed.

    Raises:
        Refused: it leads out of the tree or into git's own files.
    """
    if not given or "\0" in given or Path(given).is_absolute():
        raise Refused(f"{given!r} is not a path relative to the tree")
    if ".." in Path(given).parts:
        raise Refused(f"{given!r} leads upward; paths are relative to the tree, without '..'")
    top = Path(os.path.realpath(tree))
    found = Path(os.path.realpath(top / given))
    if not found.is_relative_to(top):
        raise Refused(f"{given!r} is a link that leads out of the tree")
    if any(is_git(part) for part in (*Path(given).parts, *found.relative_to(top).parts)):
        raise Refused(f"{given!r} is git's own; use git in the shell")
    return found


def regular(path: Path, given: str) -> os.stat_result:
    """What is known of a file that can be read to its end: no folder, pipe or device."""
    try:
        known = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise Refused(f"there is no file {given!r}") from None
    if not stat.S_ISREG(known.st_mode):
        what = "a folder" if stat.S_ISDIR(known.st_mode) else "no regular file"
        raise Refused(f"{given!r} is {what}")
    return known
