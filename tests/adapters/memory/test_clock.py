from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest

from agl.adapters.memory.clock import HurryingClock, ManualClock
from agl.testing.contracts.clock import ClockContract

START = datetime(2031, 5, 1, 12, tzinfo=UTC)


class TestManualClock(ClockContract):
    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock(START)

    @pytest.fixture
    def pass_time(self, clock: ManualClock) -> Callable[[float], None]:
        return clock.advance


class TestHurryingClock(ClockContract):
    @pytest.fixture
    def clock(self) -> HurryingClock:
        return HurryingClock(START)

    @pytest.fixture
    def pass_time(self) -> Callable[[float], None]:
        return lambda seconds: None


def test_a_clock_that_hurries_shows_no_moment_twice() -> None:
    clock = HurryingClock(START)
    assert clock.now() < clock.now()


def test_the_clock_stands_still() -> None:
    clock = ManualClock(START)
    assert clock.now() == clock.now() == START


def test_the_clock_goes_on_as_far_as_it_is_told() -> None:
    clock = ManualClock(START)
    clock.advance(90)
    assert clock.now() == START + timedelta(seconds=90)
    assert clock.monotonic_s() == 90


def test_a_start_elsewhere_is_shown_in_utc() -> None:
    there = timezone(timedelta(hours=2))
    assert ManualClock(datetime(2031, 5, 1, 14, tzinfo=there)).now() == START


async def test_a_sleep_does_not_end_early() -> None:
    clock = ManualClock()
    sleep = asyncio.create_task(clock.sleep(10))
    await asyncio.sleep(0)
    clock.advance(9.5)
    await asyncio.sleep(0)
    assert not sleep.done()
    clock.advance(0.5)
    await sleep
