"""Counts the processes that this Python starts, by whichever way."""

from __future__ import annotations

import sys

_STARTS = frozenset({"subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.system"})
_started = 0


def started() -> int:
    """How many processes this Python has started since `count` was called."""
    return _started


def count() -> None:
    """Begins to count. The interpreter itself tells of each one; there is no way to end that."""
    sys.addaudithook(_hear)


def _hear(event: str, _: tuple[object, ...]) -> None:
    global _started
    if event in _STARTS:
        _started += 1
