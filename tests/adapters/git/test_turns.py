from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager

import pytest

from agl.adapters.git.turns import Turns
from agl.adapters.memory.clock import ManualClock
from agl.adapters.memory.locks import MemoryLocks
from agl.ports.errors import StateError
from agl.ports.locks import Holder, Locks


class CountedLocks(Locks):
    def __init__(self) -> None:
        self._locks = MemoryLocks()
        self.asked = 0

    def hold(self, name: tuple[str, ...], *, wait_s: float) -> AbstractContextManager[None]:
        self.asked += 1
        return self._locks.hold(name, wait_s=wait_s)

    def holder(self, name: tuple[str, ...]) -> Holder | None:
        return self._locks.holder(name)


async def test_tasks_of_one_process_wait_without_the_lock() -> None:
    locks, order = CountedLocks(), list[str]()
    turns = Turns(locks, ManualClock(), "merges")

    async def work(name: str) -> None:
        async with turns.take("tree", "merging"):
            order.append(f"{name} begins")
            await asyncio.sleep(0.01)
            order.append(f"{name} ends")

    await asyncio.gather(work("one"), work("two"))
    assert order == ["one begins", "one ends", "two begins", "two ends"]
    assert locks.asked == 2
    assert locks.holder(("merges", "tree")) is None


async def test_two_names_are_two_turns() -> None:
    turns = Turns(MemoryLocks(), ManualClock())
    async with turns.take("one", "merging"), turns.take("two", "merging"):
        pass


async def test_a_turn_that_fails_is_given_back() -> None:
    turns = Turns(MemoryLocks(), ManualClock())
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            async with turns.take("tree", "merging"):
                raise ZeroDivisionError


async def test_who_waits_too_long_is_told_for_whom() -> None:
    locks, clock = CountedLocks(), ManualClock()

    async def take() -> None:
        async with Turns(locks, clock).take("tree", "merging"):
            pass

    with locks.hold(("tree",), wait_s=0):
        waiting = asyncio.create_task(take())
        while locks.asked < 2:
            await asyncio.sleep(0)
        clock.advance(601)
        with pytest.raises(StateError, match=r"has been merging for 600 s; try later"):
            await waiting
