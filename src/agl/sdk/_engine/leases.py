"""Who may land in a scope: one at a time, and while a landing is held, nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

_LOOK_S = 0.05
_LOOKS = 20


@dataclass(eq=False, slots=True)
class Hold:
    """A landing that waits in the tree, by its number. `task` None: recorded by a process that is
    gone, and not asked for yet in this one."""

    number: int
    child: str
    release: Callable[[], None]
    task: asyncio.Task[Any] | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Waiting:
    """The calls of a run that wait for a hold of another landing."""

    def __init__(self, calls: Callable[[], int]) -> None:
        self._calls = calls
        self.count = 0

    @property
    def is_all(self) -> bool:
        """Whether every call of the run waits."""
        return self.count >= self._calls()


class Lease:
    """The right to land in one scope's tree."""

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Lock()
        self.hold: Hold | None = None

    @asynccontextmanager
    async def taken(self, waiting: Waiting) -> AsyncIterator[None]:
        """Waits until no landing is at work or held. A hold gives way when nobody will settle it:
        the task that asked for it has ended, or for a second nothing of the run does anything else
        than wait for it.

        Raises:
            HeldHere: the calling task itself holds the tree.
        """
        waiting.count += 1
        try:
            await self._one_at_a_time.acquire()
        finally:
            waiting.count -= 1
        try:
            await self.free(waiting)
            yield
        finally:
            self._one_at_a_time.release()

    async def free(self, waiting: Waiting, *, or_claimed: bool = False) -> None:
        """Waits until the hold is settled or has given way, see `taken`; with `or_claimed` only
        until its landing was asked for in this process."""
        looks = 0
        had_to_wait = self.hold is not None
        waiting.count += 1
        try:
            while (hold := self.hold) is not None:
                if or_claimed and hold.task is not None:
                    return
                if hold.task is asyncio.current_task():
                    raise HeldHere(hold)
                if looks >= _LOOKS or _is_over(hold.task):
                    self.give_way(hold)
                    break
                try:
                    # wait_for loses a cancellation that comes as the event is set (Python 3.11).
                    async with asyncio.timeout(_LOOK_S):
                        await hold.over.wait()
                except TimeoutError:
                    looks = looks + 1 if waiting.is_all else 0
        finally:
            waiting.count -= 1
        if had_to_wait:
            # Whoever held it may have failed, and a cancellation be on its way here.
            await asyncio.sleep(0)

    def give_way(self, hold: Hold) -> None:
        """Ends a hold that another landing cannot wait for."""
        hold.release()
        self.settle(hold)

    def settle(self, hold: Hold | None) -> None:
        """Frees the tree of this hold."""
        if hold is not None:
            hold.over.set()
            self.hold = None


def _is_over(task: asyncio.Task[Any] | None) -> bool:
    """Whether the task ended well; one that failed is about to end the others, too."""
    return task is not None and task.done() and not task.cancelled() and task.exception() is None


class HeldHere(Exception):
    """The task that asks for the tree is the one that holds it."""

    def __init__(self, hold: Hold) -> None:
        super().__init__(hold.child)
        self.hold = hold
