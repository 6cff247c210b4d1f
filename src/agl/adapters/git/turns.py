"""Waiting for one's turn, among the tasks of this process and among all processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager

from agl.ports.clock import Clock
from agl.ports.errors import StateError
from agl.ports.locks import LockHeld, Locks

_WAIT_S = 600.0
_PAUSE_S = 0.05


class Turns:
    """One at a time for each name, by a lock in the folder of locks."""

    def __init__(self, locks: Locks, clock: Clock, *folder: str) -> None:
        self._locks = locks
        self._folder = folder
        self._clock = clock
        self._here: dict[str, asyncio.Lock] = {}

    @asynccontextmanager
    async def take(self, name: str, doing: str) -> AsyncIterator[None]:
        """Waits without holding up the event loop. `doing` ends the sentence "somebody is …".

        Raises:
            StateError: it was somebody else's turn all the time.
        """
        async with self._here.setdefault(name, asyncio.Lock()):
            holding = await self._hold(name, doing)
            try:
                yield
            finally:
                holding.__exit__(None, None, None)

    async def _hold(self, name: str, doing: str) -> AbstractContextManager[None]:
        deadline = self._clock.monotonic_s() + _WAIT_S
        while True:
            holding = self._locks.hold((*self._folder, name), wait_s=0)
            try:
                holding.__enter__()
                return holding
            except LockHeld as error:
                if self._clock.monotonic_s() > deadline:
                    raise StateError(
                        f"{error.holder} has been {doing} for {_WAIT_S:g} s; try later"
                    ) from error
            await self._clock.sleep(_PAUSE_S)
