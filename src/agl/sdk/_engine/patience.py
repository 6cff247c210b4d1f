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

_A_YEAR_S = 366 * 86400.0


class Patience:
    """How long the steps of that run wait, at most `max_wait_s` seconds in a row. Steps that meet
    one provider's wall wait for it together."""

    def __init__(self, clock: Clock, max_wait_s: float, label: str) -> None:
        self.clock = clock
        self.max_wait_s = max_wait_s
        self.label = label
        self._walls: dict[str, float] = {}

    def pause_s(self, provider: str, error: Transient, failures: int) -> float:
        """How long to wait now: until others do that wait for the provider already, else longer
        with each failure in a row; and no less than it says itself."""
        own = min(FIRST_S * 2.0 ** min(failures - 1, 10), MOST_S)
        left = self._walls.get(provider, 0.0) - self.clock.monotonic_s()
        named = error.retry_after_s or 0.0
        return max(left if left > 0 else own, named if named > 0 else 0.0)

    def meet(self, provider: str, pause_s: float) -> None:
        """Notes that the provider is waited for."""
        wall = self.clock.monotonic_s() + pause_s
        self._walls[provider] = max(wall, self._walls.get(provider, 0.0))


class Waits:
    """The pauses of one conversation, or of a step that is begun again and again. `tell` hears of
    each: why, for how many seconds, until when."""

    def __init__(
        self, patience: Patience, provider: str, tell: Callable[[str, float, str], None]
    ) -> None:
        self._patience = patience
        self._provider = provider
        self._tell = tell
        self._failures = 0
        self._waited_s = 0.0
        self._given_up: Transient | None = None

    @property
    def has_given_up(self) -> bool:
        """Whether there was a failure that it did not wait for."""
        return self._given_up is not None

    def progressed(self) -> None:
        """The agent got on; what failed before no longer counts."""
        self._failures, self._waited_s = 0, 0.0

    async def wait(self, error: Transient) -> None:
        """Returns when the same is to be tried again.

        Raises:
            Transient: as the error: it has been waited for long enough.
            LimitReached: the provider's limit ends later than may be waited for.
        """
        patience = self._patience
        self._failures += 1
        pause_s = patience.pause_s(self._provider, error, self._failures)
        seconds = timedelta(seconds=min(pause_s, _A_YEAR_S))
        until = f"{patience.clock.now() + seconds:%Y-%m-%d %H:%M:%S} UTC"
        if self._waited_s + pause_s > patience.max_wait_s:
            self._given_up = error
            if isinstance(error, UsageLimited) and error.retry_after_s is not None:
                raise LimitReached(
                    f"{error}; it ends at {until}, `agl resume {patience.label}` goes on then"
                ) from error
            if patience.max_wait_s == 0:
                raise error
            raise type(error)(
                f"{error}; it was waited for {self._waited_s:.0f} s, and --max-wait allows"
                f" {patience.max_wait_s:.0f} s in a row; `agl resume {patience.label}` tries again",
                retry_after_s=error.retry_after_s,
            ) from error
        self._waited_s += pause_s
        patience.meet(self._provider, pause_s)
        self._tell(str(error), pause_s, until)
        await patience.clock.sleep(pause_s)
