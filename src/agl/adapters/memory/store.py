"""The ledger in memory."""

from __future__ import annotations

import json

from agl.ports.errors import CorruptDocument, InternalError, UpstreamError
from agl.ports.store import Address, Document, Store


class MemoryStore(Store):
    """Documents are kept as JSON text, so that nobody holds a part of what another one reads."""

    def __init__(self) -> None:
        self._texts: dict[Address, dict[str, str]] = {}
        self._folders: dict[Address, set[str]] = {}
        self._aside: dict[str, str] = {}

    def read(self, address: Address) -> Document | None:
        *folder, name = _checked(address)
        text = self._texts.get(tuple(folder), {}).get(name)
        if text is None:
            return None
        try:
            document = json.loads(text)
        except ValueError as error:
            raise CorruptDocument(f"{'/'.join(address)!r} is not JSON: {error}") from error
        if not isinstance(document, dict):
            raise CorruptDocument(f"{'/'.join(address)!r} is not a JSON object")
        return document

    def write(self, address: Address, document: Document) -> None:
        self.put_text(address, json.dumps(document, allow_nan=False))

    def put_text(self, address: Address, text: str) -> None:
        """Puts a document there as it stands, be it JSON or not."""
        *folder, name = _checked(address)
        self._texts.setdefault(tuple(folder), {})[name] = text
        for depth, part in enumerate(folder):
            self._folders.setdefault(tuple(folder[:depth]), set()).add(part)

    def remove(self, address: Address) -> None:
        *folder, name = _checked(address)
        self._texts.get(tuple(folder), {}).pop(name, None)

    def names(self, folder: Address) -> tuple[str, ...]:
        return tuple(sorted(self._texts.get(_checked(folder), ())))

    def folders(self, folder: Address) -> tuple[str, ...]:
        return tuple(sorted(self._folders.get(_checked(folder), ())))

    def set_aside(self, address: Address) -> str:
        *folder, name = _checked(address)
        text = self._texts.get(tuple(folder), {}).pop(name, None)
        if text is None:
            raise UpstreamError(f"cannot set aside {'/'.join(address)!r}: it is not there")
        aside = f"{'/'.join(address)}.broken"
        number = 2
        while aside in self._aside:
            aside = f"{'/'.join(address)}.broken-{number}"
            number += 1
        self._aside[aside] = text
        return aside

    def remove_folder(self, folder: Address) -> None:
        *above, name = _checked(folder)
        for inner in self.folders(folder):
            self.remove_folder((*folder, inner))
        self._texts.pop(folder, None)
        self._folders.pop(folder, None)
        self._folders.get(tuple(above), set()).discard(name)


def _checked(address: Address) -> Address:
    if not address or any(part in ("", ".", "..") or "/" in part for part in address):
        raise InternalError(f"{address!r} names no place in the ledger")
    return address
