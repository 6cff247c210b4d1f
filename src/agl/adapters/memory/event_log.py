"""The log in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator

from agl.ports.event_log import EventLog
from agl.ports.store import Address, Document


class MemoryEventLog(EventLog):
    def __init__(self) -> None:
        self._lines: dict[Address, list[str]] = {}

    def append(self, run: Address, event: Document) -> None:
        try:
            line = json.dumps(event, allow_nan=False)
        except (ValueError, TypeError, RecursionError):
            return
        self._lines.setdefault(run, []).append(line)

    def read(self, run: Address) -> Iterator[Document]:
        for line in tuple(self._lines.get(run, ())):
            yield json.loads(line)
