"""Folders that are kept: moved out of the way as they are, with a note beside them."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from agl.ports.errors import InputError, UpstreamError
from agl.ports.ids import Label
from agl.ports.workspace import Keeping, KeptItem

# "@" cannot stand in a label or a namespace, so these never meet a tree's folder.
_NOTE = "@kept.json"
REGISTRATION = "@git"


class KeptFolders:
    """`<root>/<label>-<utc>[-n]/<tree>`, with `<tree>@kept.json` and, where there was one, the
    tree's registration as `<tree>@git`. The note comes first, so that what is moved is listed."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def new(self, keeping: Keeping, when: datetime) -> KeptItem:
        """A place for one more folder, which is not there yet."""
        scope = keeping.scope
        start = f"{scope.label}-{when.astimezone(UTC):%Y%m%dT%H%M%SZ}"
        number = 1
        while True:
            place = self._root / (start if number == 1 else f"{start}-{number}")
            note = place / (scope.tree + _NOTE)
            number += 1
            try:
                place.mkdir(parents=True, exist_ok=True)
                with note.open("x", encoding="utf-8") as file:
                    json.dump(
                        {
                            "format": 1,
                            "label": scope.label,
                            "namespace": scope.tree,
                            "when": when.astimezone(UTC).isoformat(timespec="microseconds"),
                            "why": keeping.why,
                        },
                        file,
                    )
            except FileExistsError:
                continue
            except OSError as error:
                raise UpstreamError(f"cannot keep anything in {str(place)!r}: {error}") from error
            item = _item(note)
            assert item is not None
            return item

    @contextmanager
    def place(self, keeping: Keeping, when: datetime) -> Iterator[KeptItem]:
        """The same for the moves of one block; taken back when nothing came."""
        item = self.new(keeping, when)
        try:
            yield item
        finally:
            if _folder(item).exists() or registration_place(item).exists():
                keeping.tell(item)
            else:
                self.remove(item)

    def items(self, label: Label | None = None) -> tuple[KeptItem, ...]:
        """What is kept, oldest first; a note whose folder never came is none."""
        found = [
            item
            for note in self._root.glob(f"*/*{_NOTE}")
            if (item := _item(note)) is not None
            and label in (None, item.label)
            and (_folder(item).exists() or registration_place(item).exists())
        ]
        return tuple(sorted(found, key=lambda item: (item.when, item.name)))

    def remove(self, item: KeptItem) -> None:
        """Destroys one kept folder with all that lies beside it."""
        folder = _folder(item)
        for part in (folder, registration_place(item)):
            remove_tree(part)
        folder.with_name(folder.name + _NOTE).unlink(missing_ok=True)
        if not any(folder.parent.iterdir()):
            folder.parent.rmdir()


def registration_place(item: KeptItem) -> Path:
    """Where the registration of a kept tree goes."""
    folder = _folder(item)
    return folder.with_name(folder.name + REGISTRATION)


def move(source: Path, target: Path) -> None:
    """Renames; the folders above the target are made.

    Raises:
        UpstreamError: nothing was moved.
    """
    open_up(source)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)
    except OSError as error:
        _remove_empty(target.parent)
        raise UpstreamError(
            f"cannot move {str(source)!r} to {str(target)!r}: {error.strerror}"
        ) from error


def open_up(folder: Path) -> None:
    """Makes a folder that an agent has shut one to work in again; what is none stays as it is.

    Raises:
        UpstreamError: it is another user's.
    """
    if folder.is_symlink() or not folder.is_dir():
        return
    if os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return
    try:
        folder.chmod(folder.stat().st_mode & 0o7777 | 0o700)
    except OSError as error:
        raise UpstreamError(
            f"the folder {str(folder)!r} is shut; `chmod u+rwx {shlex.quote(str(folder))}` opens it"
        ) from error


def _remove_empty(folder: Path) -> None:
    """Removes this folder and those above it, as far as they hold nothing."""
    for each in (folder, *folder.parents):
        try:
            each.rmdir()
        except OSError:
            return


def _folder(item: KeptItem) -> Path:
    assert item.folder is not None
    return item.folder


def _item(note: Path) -> KeptItem | None:
    try:
        told = json.loads(note.read_bytes())
        folder = note.with_name(note.name.removesuffix(_NOTE))
        return KeptItem(
            name=f"{folder.parent.name}/{folder.name}",
            label=Label(told["label"]),
            namespace=told["namespace"],
            when=told["when"],
            why=told["why"],
            folder=folder,
        )
    except (OSError, ValueError, KeyError, TypeError, InputError):
        return None


def remove_tree(folder: Path) -> None:
    """Also what was made read-only, as git does with its objects and some agents with folders."""
    if not os.path.lexists(folder):
        return
    folder.chmod(0o700)
    for parent, folders, _ in os.walk(folder):
        for name in folders:
            inner = Path(parent, name)
            if not inner.is_symlink():
                inner.chmod(0o700)
    shutil.rmtree(folder)
