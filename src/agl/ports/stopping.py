"""Whether somebody told this process to stop."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final


@dataclass(slots=True)
class Stopping:
    """`is_asked`: a signal came, and the work is being cancelled for it."""

    is_asked: bool = False


stopping: Final[ContextVar[Stopping | None]] = ContextVar("stopping", default=None)
"""Set by whoever hears the signals, around the work. What fails while the work ends for a signal is
no outcome of the work."""


def is_asked_to_stop() -> bool:
    """Whether a signal came for the work that asks."""
    told = stopping.get()
    return told is not None and told.is_asked
