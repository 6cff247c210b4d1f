"""What every `Clock` promises."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, timedelta

import pytest

from agl.ports.clock import Clock


class ClockContract:
    """Subclass it and give the fixtures `clock` and `pass_time`, which lets that many seconds pass
    if they do not pass by themselves."""

    @pytest.fixture
    def clock(self) -> Clock:
        raise NotImplementedError

    @pytest.fixture
    def pass_time(self, clock: Clock) -> Callable[[float], None]:
        raise NotImplementedError

    def test_the_time_is_in_utc(self, clock: Clock) -> None:
        assert clock.now().tzinfo is UTC

    async def test_a_sleep_ends_once_its_time_has_passed(
        self, clock: Clock, pass_time: Callable[[float], None]
    ) -> None:
        wall, steady = clock.now(), clock.monotonic_s()
        sleep = asyncio.create_task(clock.sleep(0.03))
        await asyncio.sleep(0)
        assert not sleep.done()
        pass_time(0.03)
        await sleep
        # One tick of a coarse clock is allowed.
        assert clock.monotonic_s() - steady >= 0.029
        assert clock.now() - wall >= timedelta(seconds=0.02)

    async def test_sleeps_end_in_the_order_of_their_times(
        self, clock: Clock, pass_time: Callable[[float], None]
    ) -> None:
        woken: list[float] = []

        async def sleeper(seconds: float) -> None:
            await clock.sleep(seconds)
            woken.append(seconds)

        async with asyncio.TaskGroup() as sleepers:
            for seconds in (0.3, 0.1, 0.2):
                sleepers.create_task(sleeper(seconds))
            await asyncio.sleep(0)
            for _ in range(3):
                pass_time(0.1)
        assert woken == [0.1, 0.2, 0.3]

    async def test_a_sleep_of_nothing_ends_by_itself(self, clock: Clock) -> None:
        await clock.sleep(0)
        await clock.sleep(-1)

    async def test_a_cancelled_sleep_ends(
        self, clock: Clock, pass_time: Callable[[float], None]
    ) -> None:
        sleep = asyncio.create_task(clock.sleep(1000))
        await asyncio.sleep(0)
        sleep.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sleep
        pass_time(1000)
