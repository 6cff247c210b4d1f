"""Ending processes for certain."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from agl.adapters.system.table import Process, Snapshot, descendants

T = TypeVar("T")

_FIRST_LOOK_S = 0.005
_LOOK_S = 0.05


async def end_all(
    find: Callable[[], list[Process]], grace_s: float, group: int | None = None
) -> list[Process]:
    """TERM to each process that is found; once the grace is over, KILL until none is found. What is
    started meanwhile to put things in order has the rest of the grace. Members of `group` are
    signalled together, so that none forks past the signal. If this is cancelled, it kills at once.
    """
    ended: dict[tuple[int, float], Process] = {}
    deadline = time.monotonic() + grace_s
    pause = _FIRST_LOOK_S
    try:
        while left := find():
            if not ended:
                _signal(left, signal.SIGTERM, group)
            elif time.monotonic() >= deadline:
                _signal(left, signal.SIGKILL, group)
            ended |= {(process.pid, process.started): process for process in left}
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LOOK_S)
    except asyncio.CancelledError:
        _signal(find(), signal.SIGKILL, group)
        raise
    return list(ended.values())


def _signal(processes: list[Process], number: signal.Signals, group: int | None) -> None:
    together = [process for process in processes if process.group == group]
    if together and group is not None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
    for process in processes:
        if process not in together:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, number)


def group_is_empty(group: int) -> bool:
    """Whether nothing is left of a process group; a zombie that nobody has reaped is something."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


class Brood:
    """Processes that were seen to be ours once, and all that descends from them."""

    def __init__(self) -> None:
        self._known: set[tuple[int, float]] = set()

    def alive(self, snapshot: Snapshot, pids: set[int], spared: set[int]) -> list[Process]:
        """The living ones, `pids` now among them."""
        pids = pids | {pid for pid, p in snapshot.items() if (pid, p.started) in self._known}
        pids = (pids | descendants(snapshot, pids)) - spared
        living = [snapshot[pid] for pid in sorted(pids) if pid in snapshot]
        self._known |= {(process.pid, process.started) for process in living}
        return living
