"""Locks between the threads and tasks of this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from agl.ports.locks import Holder, LockHeld, Locks


class MemoryLocks(Locks):
    def __init__(self) -> None:
        self._holders: dict[tuple[str, ...], Holder] = {}
        self._freed = threading.Condition()

    @contextmanager
    def hold(self, name: tuple[str, ...], *, wait_s: float) -> Iterator[None]:
        with self._freed:
            if not self._freed.wait_for(lambda: name not in self._holders, timeout=wait_s):
                raise LockHeld(self._holders[name])
            self._holders[name] = Holder(os.getpid(), datetime.now(UTC))
        try:
            yield
        finally:
            with self._freed:
                del self._holders[name]
                self._freed.notify_all()

    def holder(self, name: tuple[str, ...]) -> Holder | None:
        return self._holders.get(name)
