"""Waiting for a provider that says: not now."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from agl.ports.clock import Clock
from agl.ports.errors import LimitReached, Transient, UsageLimited

FIRST_S = 1.0
MOST_S = 60.0
"""The first pause after a failure without a time of its own, and the longest; each is twice the
one before."""


class Patience:
    """How long the steps of a run wait, at most `max_wait_s` seconds in a row. Steps that meet one
    provider's wall wait for it together."""

    def __init__(self, clock: Clock, max_wait_s: float) -> None:
        self.clock = clock
        self.max_wait_s = max_wait_s
        self._walls: dict[str, float] = {}

    def pause_s(self, provider: str, error: Transient, failures: int) -> float:
        """How long to wait now: as long as the provider says, or others wait for it already, or
        longer with each failure in a row."""
        now = self.clock.monotonic_s()
        wall = self._walls.get(provider, now)
        if error.retry_after_s is not None:
            wall = max(wall, now + error.retry_after_s)
        elif wall <= now:
            wall = now + min(FIRST_S * 2.0 ** (failures - 1), MOST_S)
        self._walls[provider] = wall
        return wall - now


class Waits:
    """The pauses of one step. `tell` hears of each: why, for how many seconds, until when."""

    def __init__(
        self, patience: Patience, provider: str, tell: Callable[[str, float, str], None]
    ) -> None:
        self._patience = patience
        self._provider = provider
        self._tell = tell
        self._failures = 0
        self._waited_s = 0.0
        self._given_up: Transient | None = None

    def progressed(self) -> None:
        """The agent got on; what failed before no longer counts."""
        self._failures, self._waited_s = 0, 0.0

    async def wait(self, error: Transient) -> None:
        """Returns when the same is to be tried again.

        Raises:
            Transient: the error itself: it has been waited for long enough.
            LimitReached: the provider's limit ends later than may be waited for.
        """
        if error is self._given_up:
            raise error
        patience = self._patience
        self._failures += 1
        pause_s = patience.pause_s(self._provider, error, self._failures)
        until = f"{patience.clock.now() + timedelta(seconds=pause_s):%Y-%m-%d %H:%M:%S} UTC"
        if self._waited_s + pause_s > patience.max_wait_s:
            self._given_up = error
            if isinstance(error, UsageLimited) and error.retry_after_s is not None:
                raise LimitReached(f"{error}; it ends at {until}, resume the run then") from error
            raise error
        self._waited_s += pause_s
        self._tell(str(error), pause_s, until)
        await patience.clock.sleep(pause_s)
