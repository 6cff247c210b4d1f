"""Time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime


class Clock(ABC):
    """Wall time for documents, steady time for durations, and waiting."""

    @abstractmethod
    def now(self) -> datetime:
        """The wall time, aware, in UTC."""

    @abstractmethod
    def monotonic_s(self) -> float:
        """Seconds from an arbitrary start; never goes back."""

    @abstractmethod
    async def sleep(self, seconds: float) -> None:
        """Returns once that many seconds have passed."""
