"""Documents as files: `("runs", "x", "run")` is `<home>/runs/x/run.json`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agl.adapters.filesystem.places import make_folder, place, sync_folder
from agl.ports.errors import CorruptDocument, UpstreamError
from agl.ports.reasons import reason
from agl.ports.store import Address, Document, Store

_ENDING = ".json"


class FilesystemStore(Store):
    """Below `home`; one that is not there yet is made by the first write."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def read(self, address: Address) -> Document | None:
        path = self._file(address)
        with _named(path, "read"):
            try:
                with path.open("rb", buffering=0) as file:
                    data = file.read()
            except FileNotFoundError:
                return None
        try:
            document = json.loads(data.decode(), parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise CorruptDocument(f"{str(path)!r} cannot be read: {reason(error)}") from error
        if not isinstance(document, dict):
            raise CorruptDocument(f"{str(path)!r} is not a JSON object")
        return document

    def write(self, address: Address, document: Document) -> None:
        path = self._file(address)
        data = encoded(document)
        with _named(path, "write"):
            temporary = path.with_name(f"{path.name}.{os.urandom(6).hex()}.tmp")
            try:
                try:
                    _write_new(temporary, data)
                except FileNotFoundError:
                    make_folder(path.parent)
                    _write_new(temporary, data)
                temporary.replace(path)
            except BaseException:
                with suppress(OSError):
                    temporary.unlink()
                raise
            sync_folder(path.parent)

    def remove(self, address: Address) -> None:
        path = self._file(address)
        with _named(path, "remove"):
            try:
                path.unlink()
            except FileNotFoundError:
                return
            sync_folder(path.parent)

    def names(self, folder: Address) -> tuple[str, ...]:
        path = place(self._home, folder)
        with _named(path, "list"), _entries(path) as entries:
            return tuple(
                sorted(
                    entry.name.removesuffix(_ENDING)
                    for entry in entries
                    if entry.name.endswith(_ENDING) and entry.is_file()
                )
            )

    def folders(self, folder: Address) -> tuple[str, ...]:
        path = place(self._home, folder)
        with _named(path, "list"), _entries(path) as entries:
            return tuple(sorted(entry.name for entry in entries if entry.is_dir()))

    def set_aside(self, address: Address) -> str:
        path = self._file(address)
        aside = path.with_name(f"{path.name}.broken")
        number = 2
        while aside.exists():
            aside = path.with_name(f"{path.name}.broken-{number}")
            number += 1
        with _named(path, "set aside"):
            path.rename(aside)
            sync_folder(path.parent)
        return str(aside)

    def remove_folder(self, folder: Address) -> None:
        import shutil  # takes 1.5 ms to load, and `agl list` never comes here

        path = place(self._home, folder)
        last = path / f"run{_ENDING}"
        with _named(path, "remove"):
            with _entries(path) as entries:
                for entry in [entry for entry in entries if entry.name != last.name]:
                    if entry.is_dir(follow_symlinks=False):
                        shutil.rmtree(entry.path)
                    else:
                        Path(entry.path).unlink()
            if not path.exists():
                return
            sync_folder(path)
            last.unlink(missing_ok=True)
            path.rmdir()
            sync_folder(path.parent)

    def _file(self, address: Address) -> Path:
        folder = place(self._home, address)
        return folder.with_name(f"{folder.name}{_ENDING}")


def encoded(document: Document) -> bytes:
    """One line of UTF-8; a lone surrogate, which UTF-8 cannot hold, is escaped."""
    try:
        return f"{json.dumps(document, allow_nan=False, ensure_ascii=False)}\n".encode()
    except UnicodeEncodeError:
        return f"{json.dumps(document, allow_nan=False)}\n".encode()


def _write_new(path: Path, data: bytes) -> None:
    """A new file with these bytes, all of them on the disk."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        written = 0
        while written < len(data):
            written += os.write(handle, data[written:])
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _entries(path: Path) -> Iterator[Iterator[os.DirEntry[str]]]:
    """What lies in the folder; nothing does if it is not there."""
    try:
        entries = os.scandir(path)
    except FileNotFoundError:
        yield iter(())
        return
    with entries:
        yield entries


@contextmanager
def _named(path: Path, verb: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise UpstreamError(f"cannot {verb} {str(path)!r}: {reason}") from error


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON number")
