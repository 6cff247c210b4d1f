"""The append-only log. It explains; losing it changes nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from agl.ports.store import Address, Document


class EventLog(ABC):
    """Events of a run, one JSON object each, in the order in which they were appended."""

    @abstractmethod
    def append(self, run: Address, event: Document) -> None:
        """Adds one event at the end. Never raises: a log that cannot be written stops no run.

        A line that a kill left half written is cut off before the next append.
        """

    @abstractmethod
    def read(self, run: Address) -> Iterator[Document]:
        """The events in order; a torn last line is left out, and a run without a log has none."""
