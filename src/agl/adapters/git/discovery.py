"""Finding the repository around a folder by reading files."""

from __future__ import annotations

import os
import re
from pathlib import Path

from agl.ports.history import Repository


def find_repository(start: Path) -> Repository | None:
    """The repository around `start`, or None. Starts no process and looks at no GIT_ variable."""
    here = Path(os.path.realpath(start))
    for folder in (here, *here.parents):
        entry = folder / ".git"
        if os.path.lexists(entry):
            git_dir = git_dir_of(folder)
            if git_dir is not None:
                return Repository(common_dir_of(git_dir), folder if _has_tree(git_dir) else None)
            if entry.is_file():
                return None
        if _is_git_dir(folder):
            return Repository(folder, None)
    return None


def git_dir_of(top: Path) -> Path | None:
    """The git directory of the working tree whose top is `top`, resolved, or None."""
    entry = top / ".git"
    if entry.is_dir():
        git_dir = Path(os.path.realpath(entry))
        return git_dir if _is_git_dir(git_dir) else None
    pointed = pointer(entry, "gitdir: ")
    if pointed is None:
        return None
    return pointed if _is_git_dir(pointed) or (pointed / "commondir").is_file() else None


def common_dir_of(git_dir: Path) -> Path:
    """The directory that all linked trees of the repository share."""
    return pointer(git_dir / "commondir") or git_dir


def main_tree(common_dir: Path) -> Path | None:
    """The working tree around a directory called `.git`, or None where there is none."""
    return common_dir.parent if common_dir.name == ".git" and _has_tree(common_dir) else None


def pointer(file: Path, prefix: str = "") -> Path | None:
    """The path that a file of one line holds, read from the file's own folder and resolved."""
    path = named(file, prefix)
    return None if path is None else Path(os.path.realpath(path))


def named(file: Path, prefix: str = "") -> Path | None:
    """The same as it is written: symbolic links stay."""
    try:
        text = os.fsdecode(file.read_bytes()).rstrip("\r\n")
    except OSError:
        return None
    if not text.startswith(prefix) or text == prefix:
        return None
    return file.parent / text.removeprefix(prefix)


def _has_tree(git_dir: Path) -> bool:
    """Whether the folder around is a working tree. An index tells of one, also where an agent set
    core.bare; `git clone --bare URL .git` makes none."""
    return (git_dir / "index").exists() or not _is_bare(git_dir)


def _is_bare(git_dir: Path) -> bool:
    try:
        config = (git_dir / "config").read_text("utf-8", "replace")
    except OSError:
        return False
    return re.search(r"(?im)^\s*bare\s*=\s*true\s*$", config) is not None


def _is_git_dir(folder: Path) -> bool:
    return (
        os.path.lexists(folder / "HEAD")
        and (folder / "objects").is_dir()
        and (folder / "refs").is_dir()
    )
