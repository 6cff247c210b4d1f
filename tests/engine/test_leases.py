"""When a hold gives way to another landing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest

from agl.sdk._engine.leases import HeldHere, Hold, Lease, Waiting
from engine.light import JumpingLoop


async def held_by(work: Callable[[], Awaitable[None]], lease: Lease, released: list[str]) -> Hold:
    """A hold whose task does this work."""

    async def hold() -> None:
        lease.hold = made
        made.task = asyncio.current_task()
        await work()

    made = Hold(1, "a", lambda: released.append("a"))
    task = asyncio.create_task(hold())
    await asyncio.wait({task}, timeout=0.01)
    return made


async def fails() -> None:
    raise ValueError


async def ends() -> None:
    pass


async def is_cancelled() -> None:
    raise asyncio.CancelledError


async def goes_on() -> None:
    await asyncio.sleep(60)


async def goes_on_for_long() -> None:
    await asyncio.sleep(100_000)


async def land(lease: Lease, waiting: Waiting) -> bool:
    """Whether the lease was got within a fifth of a second."""
    try:
        async with asyncio.timeout(0.2), lease.taken(waiting):
            return True
    except TimeoutError:
        return False


@pytest.mark.parametrize(
    ("work", "gives_way"),
    [(ends, True), (fails, False), (is_cancelled, False), (goes_on, False)],
    ids=["ends", "fails", "is cancelled", "goes on"],
)
def test_only_a_task_that_ended_well_has_forgotten_its_hold(
    work: Callable[[], Awaitable[None]], gives_way: bool
) -> None:
    async def scene() -> None:
        lease, released = Lease(), list[str]()
        hold = await held_by(work, lease, released)
        assert await land(lease, Waiting(lambda: 5)) is gives_way
        assert released == (["a"] if gives_way else [])
        assert (lease.hold is None) is gives_way
        assert hold.task is not None
        hold.task.cancel()
        await asyncio.wait({hold.task})

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(scene())


def test_a_hold_gives_way_when_nothing_else_moves() -> None:
    async def scene() -> None:
        lease, released = Lease(), list[str]()
        hold = await held_by(goes_on, lease, released)
        async with asyncio.timeout(5), lease.taken(Waiting(lambda: 1)):
            assert released == ["a"]
        assert hold.task is not None
        hold.task.cancel()
        await asyncio.wait({hold.task})

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(scene())


def test_a_hold_stays_while_anything_else_moves() -> None:
    async def minute() -> bool:
        lease, released = Lease(), list[str]()
        hold = await held_by(goes_on_for_long, lease, released)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(60), lease.taken(Waiting(lambda: 2)):
                pass
        assert hold.task is not None
        hold.task.cancel()
        return lease.hold is hold and released == []

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        assert runner.run(minute())


def test_a_hold_gives_way_only_when_nothing_moved_for_a_second_on_end() -> None:
    async def waited_s() -> float:
        lease, released, calls = Lease(), list[str](), [1]
        hold = await held_by(goes_on_for_long, lease, released)
        loop = asyncio.get_running_loop()
        loop.call_later(0.8, lambda: calls.__setitem__(0, 2))
        loop.call_later(1.2, lambda: calls.__setitem__(0, 1))
        before = loop.time()
        async with asyncio.timeout(60), lease.taken(Waiting(lambda: calls[0])):
            assert released == ["a"]
        assert hold.task is not None
        hold.task.cancel()
        return loop.time() - before

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        assert 2.1 < runner.run(waited_s()) < 2.4


def test_all_that_wait_to_land_count_as_waiting() -> None:
    async def both() -> list[str]:
        lease, released, landed = Lease(), list[str](), list[str]()
        hold, waiting = await held_by(goes_on_for_long, lease, released), Waiting(lambda: 2)

        async def one(name: str) -> None:
            async with lease.taken(waiting):
                landed.append(name)

        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task(one("b"))
            group.create_task(one("c"))
        assert hold.task is not None
        hold.task.cancel()
        return landed

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        assert runner.run(both()) == ["b", "c"]


def test_who_waits_for_a_hold_goes_on_the_moment_it_is_settled() -> None:
    async def waited_s() -> float:
        lease, loop, settled = Lease(), asyncio.get_running_loop(), list[float]()
        hold = await held_by(goes_on_for_long, lease, [])

        def settle() -> None:
            settled.append(loop.time())
            lease.settle(hold)

        loop.call_later(0.32, settle)
        async with lease.taken(Waiting(lambda: 5)):
            now = loop.time()
        assert hold.task is not None
        hold.task.cancel()
        return now - settled[0]

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        assert runner.run(waited_s()) < 0.001


def test_a_step_waits_for_a_hold_of_an_earlier_process_until_it_is_asked_for() -> None:
    async def when() -> tuple[float, bool]:
        lease, loop = Lease(), asyncio.get_running_loop()
        lease.hold = hold = Hold(1, "a", lambda: None)
        before, task = loop.time(), asyncio.current_task()
        loop.call_later(3, setattr, hold, "task", task)
        await asyncio.create_task(lease.free(Waiting(lambda: 5), or_claimed=True))
        return loop.time() - before, lease.hold is hold

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        waited_s, is_held = runner.run(when())
    assert 2.9 < waited_s < 3.2
    assert is_held


async def test_the_task_that_holds_is_refused() -> None:
    lease = Lease()
    lease.hold = Hold(1, "a", lambda: None, asyncio.current_task())
    with pytest.raises(HeldHere):
        async with lease.taken(Waiting(lambda: 1)):
            pass
    lease.settle(lease.hold)
    async with lease.taken(Waiting(lambda: 1)):
        assert lease.hold is None


async def test_who_waits_for_a_hold_that_fails_is_cancelled_with_it() -> None:
    lease, went_on = Lease(), list[str]()

    async def holder() -> None:
        lease.hold = hold = Hold(1, "a", lambda: None, asyncio.current_task())
        await asyncio.sleep(0.01)
        lease.settle(hold)
        raise ValueError

    async def waiter() -> None:
        await asyncio.sleep(0)
        async with lease.taken(Waiting(lambda: 5)):
            went_on.append("landing")

    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(holder())
            group.create_task(waiter())

    with pytest.raises(ExceptionGroup):
        await both()
    assert went_on == []
