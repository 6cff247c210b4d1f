"""Work that a cancellation waits for, for whoever must not leave a thing halfway."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

T = TypeVar("T")


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Runs the work to its end, also when the caller is cancelled meanwhile; the cancellation is
    raised once the work is done. A failure of the work comes before the cancellation."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    result = task.result()
    if cancelled is not None:
        raise cancelled
    return result


@asynccontextmanager
async def finally_done(work: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Does the work to its end after the block. What failed in the block comes before a
    cancellation that arrives meanwhile: the task then only counts it (`Task.cancelling`)."""
    try:
        yield
    except Exception:
        with suppress(asyncio.CancelledError):
            await finish(work())
        raise
    except BaseException:
        await finish(work())
        raise
    await finish(work())
