"""The log as a file of JSON lines: `("runs", "x")` is `<home>/runs/x/events.jsonl`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from agl.adapters.filesystem.places import make_folder, place
from agl.adapters.filesystem.store import encoded
from agl.ports.event_log import EventLog
from agl.ports.store import Address, Document

_BLOCK_BYTES = 64 * 1024


class FilesystemEventLog(EventLog):
    def __init__(self, home: Path) -> None:
        self._home = home
        self._whole: set[Address] = set()

    def append(self, run: Address, event: Document) -> None:
        with suppress(OSError, ValueError, TypeError, RecursionError):
            self._append(run, encoded(event))

    def read(self, run: Address) -> Iterator[Document]:
        try:
            file = self._file(run).open("rb")
        except FileNotFoundError:
            return
        with file:
            for line in file:
                event = _event(line)
                if event is not None:
                    yield event

    def _append(self, run: Address, line: bytes) -> None:
        path = self._file(run)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        try:
            handle = os.open(path, flags, 0o666)
        except FileNotFoundError:
            make_folder(path.parent)
            handle = os.open(path, flags, 0o666)
        try:
            if run not in self._whole:
                _cut_torn_line(handle)
                self._whole.add(run)
            if os.write(handle, line) != len(line):
                self._whole.discard(run)
        finally:
            os.close(handle)

    def _file(self, run: Address) -> Path:
        return place(self._home, run) / "events.jsonl"


def _event(line: bytes) -> Document | None:
    if not line.endswith(b"\n"):
        return None
    try:
        event = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def _cut_torn_line(handle: int) -> None:
    """Cuts off what a killed writer left behind the last line end."""
    end = size = os.fstat(handle).st_size
    while end > 0:
        start = max(0, end - _BLOCK_BYTES)
        newline = os.pread(handle, end - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end < size:
        os.ftruncate(handle, end)
