"""Where an address lies on the disk."""

from __future__ import annotations

import os
from pathlib import Path

from agl.ports.errors import InternalError


def place(home: Path, parts: tuple[str, ...]) -> Path:
    """The path below `home`; it cannot lead out of it, nor to `home` itself."""
    if not parts or any(part in ("", ".", "..") or "/" in part or "\0" in part for part in parts):
        raise InternalError(f"{parts!r} names no place in {str(home)!r}")
    return home.joinpath(*parts)


def make_folder(folder: Path) -> None:
    """Makes the folder and those above it so that they outlive a loss of power."""
    try:
        folder.mkdir()
    except FileExistsError:
        return
    except FileNotFoundError:
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Puts the folder's list of names on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
