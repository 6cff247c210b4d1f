"""Locks as files, by flock(2), which the kernel frees when their holder dies."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from agl.adapters.filesystem.places import make_folder, place
from agl.ports.errors import UpstreamError
from agl.ports.locks import Holder, LockHeld, Locks

_PAUSE_S = 0.005
_PROBE_S = 0.05  # longer than any probe holds its shared lock
_NOBODY_SAID = Holder(None, None)


class FilesystemLocks(Locks):
    """`("x", "y")` is `<folder>/x/y.lock`. The file stays: a lock on a file that somebody removed
    would exclude nobody."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def hold(self, name: tuple[str, ...], *, wait_s: float) -> Iterator[None]:
        handle = self._open(name, os.O_RDWR | os.O_CREAT)
        assert handle is not None
        try:
            deadline = time.monotonic() + max(wait_s, _PROBE_S)
            while not _try(handle, fcntl.LOCK_EX):
                if time.monotonic() >= deadline:
                    raise LockHeld(_read(handle))
                time.sleep(_PAUSE_S)
            _write(handle, {"pid": os.getpid(), "since": datetime.now(UTC).isoformat()})
            try:
                yield
            finally:
                os.ftruncate(handle, 0)
        finally:
            os.close(handle)

    def holder(self, name: tuple[str, ...]) -> Holder | None:
        handle = self._open(name, os.O_RDONLY)
        if handle is None:
            return None
        try:
            return None if _try(handle, fcntl.LOCK_SH) else _read(handle)
        finally:
            os.close(handle)

    def _open(self, name: tuple[str, ...], flags: int) -> int | None:
        path = place(self._folder, name)
        path = path.with_name(f"{path.name}.lock")
        try:
            if flags & os.O_CREAT:
                make_folder(path.parent)
            return os.open(path, flags, 0o666)
        except FileNotFoundError:
            return None
        except OSError as error:
            reason = error.strerror or str(error)
            raise UpstreamError(f"cannot open the lock {str(path)!r}: {reason}") from error


def _try(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise UpstreamError(f"this file system takes no lock: {error.strerror}") from error
    return True


def _write(handle: int, word: dict[str, object]) -> None:
    os.ftruncate(handle, 0)
    with suppress(OSError):  # a full disk: the lock is held all the same
        os.pwrite(handle, json.dumps(word).encode(), 0)


def _read(handle: int) -> Holder:
    """Who the lock's file says it is. A holder that has just come writes it in a moment."""
    until = time.monotonic() + _PROBE_S
    while not (text := os.pread(handle, 1000, 0)) and time.monotonic() < until:
        time.sleep(_PAUSE_S)
    try:
        word = json.loads(text)
        return Holder(int(word["pid"]), datetime.fromisoformat(word["since"]))
    except (ValueError, TypeError, KeyError):
        return _NOBODY_SAID
