"""Clocks that no time goes by on: one stands until it is told to go on, one goes on by itself."""

from __future__ import annotations

import asyncio
import heapq
from datetime import UTC, datetime, timedelta
from itertools import count

from agl.ports.clock import Clock

_START = datetime(2030, 1, 1, tzinfo=UTC)


class ManualClock(Clock):
    """Shows `start`, an aware time, and then what `advance` makes of it."""

    def __init__(self, start: datetime = _START) -> None:
        self._start = start.astimezone(UTC)
        self._passed_s = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._passed_s)

    def monotonic_s(self) -> float:
        return self._passed_s

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._passed_s + seconds, next(self._order), woken))
        await woken

    def advance(self, seconds: float) -> None:
        """Lets that much time pass, and wakes whoever slept no longer than that."""
        self._passed_s += seconds
        while self._sleepers and self._sleepers[0][0] <= self._passed_s:
            _, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)


_LOOK_S = 1e-6


class HurryingClock(ManualClock):
    """Goes on by itself: to the end of the shortest sleep, once all have gone to sleep that were
    about to, and a microsecond with each look, so that no two moments are one."""

    def now(self) -> datetime:
        self.advance(_LOOK_S)
        return super().now()

    async def sleep(self, seconds: float) -> None:
        asyncio.get_running_loop().call_soon(self._hurry)
        await super().sleep(seconds)

    def _hurry(self) -> None:
        if self._sleepers:
            self.advance(self._sleepers[0][0] - self._passed_s)
