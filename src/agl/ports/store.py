"""The ledger's shelf: JSON documents, each at an address of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping

Address = tuple[str, ...]
"""The parts of a document's place, without an ending: `("projects", "x", "runs", "y", "run")`."""

Document = Mapping[str, object]
"""A JSON object."""


class Store(ABC):
    """Documents by address. A write is all or nothing, also across a kill and on a full disk.

    The calls are synchronous: what was decided is written before anything else can happen in the
    process, and no cancellation can fall between the two.
    """

    @abstractmethod
    def read(self, address: Address) -> Document | None:
        """The document, or None when there is none.

        Raises:
            CorruptDocument: it is there and is not one JSON object; the caller decides.
            UpstreamError: the disk refused.
        """

    @abstractmethod
    def write(self, address: Address, document: Document) -> None:
        """Creates the document or puts it in place of the old one.

        Raises:
            UpstreamError: it could not be written; the old one, if any, is as it was.
        """

    @abstractmethod
    def remove(self, address: Address) -> None:
        """Removes the document if it is there."""

    @abstractmethod
    def names(self, folder: Address) -> tuple[str, ...]:
        """The last parts of the documents that lie directly in the folder, sorted; a half-written
        one is none of them."""

    @abstractmethod
    def folders(self, folder: Address) -> tuple[str, ...]:
        """The names of the folders directly in the folder, sorted."""

    @abstractmethod
    def set_aside(self, address: Address) -> str:
        """Moves a document out of the ledger's sight and says where it is now."""

    @abstractmethod
    def remove_folder(self, folder: Address) -> None:
        """Removes the folder and all that is in it, so that a half-done removal can be repeated:
        the document called `run` goes last."""

    def walk(self, folder: Address) -> Iterator[Address]:
        """The addresses of all documents in the folder and below, sorted within each folder."""
        for name in self.names(folder):
            yield (*folder, name)
        for inner in self.folders(folder):
            yield from self.walk((*folder, inner))
