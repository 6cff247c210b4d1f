"""SIGINT, SIGTERM and SIGHUP: finish the write in progress, say how to go on, die of the signal."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, TypeVar

from agl.ports.stopping import Stopping, stopping

T = TypeVar("T")

Stopped = Callable[[int, "Exception | None"], None]
"""Told the signal's number, and what failed while the work was ending, if anything did."""

_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def finish(work: Coroutine[Any, Any, T], stopped: Stopped) -> T:
    """Runs `work` to its end. The first signal cancels it, waits for it, calls `stopped` and
    dies of that signal; a second one kills at once. A signal that was ignored when AGL
    started stays ignored."""
    with asyncio.Runner() as runner:
        return runner.run(_watched(work, stopped))


async def _watched(work: Coroutine[Any, Any, T], stopped: Stopped) -> T:
    loop = asyncio.get_running_loop()
    told = Stopping()
    stopping.set(told)
    task = loop.create_task(work)
    received: list[int] = []

    def stop(number: int) -> None:
        received.append(number)
        told.is_asked = True
        for each in _heard():
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)
        task.cancel()

    for number in _heard():
        loop.add_signal_handler(number, stop, number)
    failure: Exception | None = None
    try:
        result = await task
        if not received:
            return result
    except (asyncio.CancelledError, Exception) as error:
        if not received:
            raise
        failure = error if isinstance(error, Exception) else None
    try:
        stopped(received[0], failure)
    finally:  # also when nothing can be said any more, the window being closed
        die_of(received[0])


def _heard() -> list[signal.Signals]:
    return [number for number in _STOPPING if signal.getsignal(number) is not signal.SIG_IGN]


def die_of(number: int) -> NoReturn:
    """Ends this process by the signal, so that whoever waits for it sees what ended it."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)
