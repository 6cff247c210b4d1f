"""A cancellation waits for what must not be left halfway, and is never lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from agl.ports.shielding import finally_done, finish


class Work:
    """Goes on until it is let go."""

    def __init__(self, fails: Exception | None = None) -> None:
        self.begun, self.go = asyncio.Event(), asyncio.Event()
        self.is_done = False
        self._fails = fails

    async def __call__(self) -> None:
        self.begun.set()
        await self.go.wait()
        self.is_done = True
        if self._fails is not None:
            raise self._fails


async def cancelled_meanwhile(work: Work, caller: Coroutine[Any, Any, object]) -> asyncio.Task[Any]:
    """The caller's task, ended, which was cancelled twice while the work went on."""
    task = asyncio.ensure_future(caller)
    await work.begun.wait()
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0)
    work.go.set()
    await asyncio.wait({task})
    return task


async def test_the_work_is_done_before_the_cancellation_is_raised() -> None:
    work = Work()
    task = await cancelled_meanwhile(work, finish(work()))
    assert (work.is_done, task.cancelled()) == (True, True)


async def test_a_failure_of_the_work_comes_first() -> None:
    work = Work(ValueError("work"))
    task = await cancelled_meanwhile(work, finish(work()))
    with pytest.raises(ValueError, match="work"):
        task.result()


async def block(work: Callable[[], Coroutine[Any, Any, None]], fails: bool) -> None:
    async with finally_done(work):
        if fails:
            raise ValueError("block")


@pytest.mark.parametrize("fails", [False, True])
async def test_what_failed_in_the_block_comes_before_a_cancellation(fails: bool) -> None:
    work = Work()
    task = await cancelled_meanwhile(work, block(work, fails))
    assert work.is_done
    if fails:
        with pytest.raises(ValueError, match="block"):
            task.result()
    else:
        assert task.cancelled()


async def test_whoever_handles_the_failure_still_knows_of_the_cancellation() -> None:
    work, counted = Work(), list[int]()

    async def handles() -> None:
        with pytest.raises(ValueError, match="block"):
            await block(work, fails=True)
        task = asyncio.current_task()
        assert task is not None
        counted.append(task.cancelling())

    await cancelled_meanwhile(work, handles())
    assert counted == [2]


async def test_a_cancelled_block_does_the_work_too() -> None:
    work, waits = Work(), asyncio.Event()

    async def waiting() -> None:
        async with finally_done(work):
            waits.set()
            await asyncio.sleep(60)

    task = asyncio.ensure_future(waiting())
    await waits.wait()
    task.cancel()
    await work.begun.wait()
    work.go.set()
    await asyncio.wait({task})
    assert (work.is_done, task.cancelled()) == (True, True)
