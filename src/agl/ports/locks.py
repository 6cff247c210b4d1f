"""Who is at work on what, as the kernel knows it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds a lock, as far as it left word of itself."""

    pid: int | None
    since: datetime | None

    def __str__(self) -> str:
        who = "another process" if self.pid is None else f"process {self.pid}"
        return who if self.since is None else f"{who} (since {self.since:%Y-%m-%d %H:%M:%S} UTC)"


class LockHeld(Exception):
    """The lock is somebody else's; the caller says what that means."""

    def __init__(self, holder: Holder) -> None:
        super().__init__(str(holder))
        self.holder = holder


class Locks(ABC):
    """Exclusive locks by name, which the death of their holder frees."""

    @abstractmethod
    def hold(self, name: tuple[str, ...], *, wait_s: float) -> AbstractContextManager[None]:
        """Holds the lock while the context is open, having tried for `wait_s` seconds.

        Blocks the calling thread while it waits.

        Raises:
            LockHeld: somebody else has it, also another holder in this process.
        """

    @abstractmethod
    def holder(self, name: tuple[str, ...]) -> Holder | None:
        """Who holds the lock now, or None; asking does not disturb the holder."""
