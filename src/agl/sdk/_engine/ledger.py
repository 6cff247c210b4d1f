"""The ledger of one run: its documents, read and written through the store."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from agl.ports.errors import CorruptDocument, InputError, InternalError, UpstreamError
from agl.ports.ids import Namespace, ProjectName, Scope
from agl.ports.ledger import (
    Entry,
    Epoch,
    Kind,
    Outcome,
    RunRecord,
    Spending,
    entry_address,
    run_folder,
    runs_folder,
    scope_folder,
)
from agl.ports.ledger_json import (
    entry_from_json,
    entry_to_json,
    epoch_from_json,
    epoch_to_json,
    outcome_from_json,
    outcome_to_json,
    run_from_json,
    run_to_json,
    spending_from_json,
    spending_to_json,
)
from agl.ports.store import Address, Document, Store

T = TypeVar("T")

SetAside = Callable[[str, str], None]
"""Told where a broken entry lies now, and what was wrong with it."""


class Ledger:
    """Reads and writes what is recorded of one run. The caller holds the run's lock to write."""

    def __init__(self, store: Store, run: Scope) -> None:
        self._store = store
        self._folder = run_folder(run.project, run.label)

    @property
    def folder(self) -> Address:
        return self._folder

    def record(self) -> RunRecord | None:
        """Raises CorruptDocument or NewerFormat when it is there and cannot be used."""
        return self._needed((*self._folder, "run"), run_from_json)

    def write_record(self, record: RunRecord) -> None:
        self._store.write((*self._folder, "run"), run_to_json(record))

    def outcome(self, set_aside: SetAside | None = None) -> Outcome | None:
        """How the run ended. A broken outcome is moved aside, as if the run had been interrupted;
        without `set_aside` it raises CorruptDocument."""
        place = (*self._folder, "outcome")
        try:
            return self._read(place, outcome_from_json)
        except CorruptDocument as error:
            if set_aside is None:
                raise
            set_aside(self._store.set_aside(place), str(error))
            return None

    def write_outcome(self, outcome: Outcome) -> None:
        """Raises UpstreamError, with how the run ended, when that cannot be written."""
        try:
            self._store.write((*self._folder, "outcome"), outcome_to_json(outcome))
        except UpstreamError as error:
            raise UpstreamError(
                f"{outcome.message}; and that the run ended so could not be written ({error});"
                f" `agl resume {self._folder[-1]}` goes on from what is recorded"
            ) from error

    def remove_outcome(self) -> None:
        self._store.remove((*self._folder, "outcome"))

    def epochs(self) -> tuple[Epoch, ...]:
        folder = (*self._folder, "epochs")
        places = [(*folder, name) for name in self._store.names(folder)]
        found = [self._needed(place, epoch_from_json) for place in places]
        return tuple(sorted((one for one in found if one), key=lambda epoch: epoch.number))

    def write_epoch(self, epoch: Epoch) -> None:
        self._store.write((*self._folder, "epochs", str(epoch.number)), epoch_to_json(epoch))

    def spendings(self) -> tuple[Spending, ...]:
        """What each attempt used; one that cannot be read is left out, it decides nothing."""
        folder = (*self._folder, "spending")
        found: list[Spending] = []
        for name in self._store.names(folder):
            try:
                spending = self._read((*folder, name), spending_from_json)
            except CorruptDocument:
                continue
            if spending is not None:
                found.append(spending)
        return tuple(found)

    def write_spending(self, spending: Spending) -> None:
        address = (*self._folder, "spending", spending.attempt)
        self._store.write(address, spending_to_json(spending))

    def entries(self, scope: Scope, set_aside: SetAside | None = None) -> tuple[Entry, ...]:
        """The scope's entries by number. A broken one is moved aside and counts as not recorded;
        without `set_aside` (a reader that does not hold the lock) it raises CorruptDocument."""
        folder = scope_folder(scope)
        places = [*self._addresses((*folder, "facts"))]
        for kind in ("steps", "landings"):
            for name in self._store.folders((*folder, kind)):
                places += self._addresses((*folder, kind, name))
        entries: dict[int, Entry] = {}
        for place in places:
            try:
                entry = self._read(place, entry_from_json)
                # A file system that ignores case gives two steps one folder.
                if entry is not None and _folded(entry_address(scope, entry)) != _folded(place):
                    raise CorruptDocument(f"{'/'.join(place)} holds another entry's text")
            except CorruptDocument as error:
                if set_aside is None:
                    raise
                set_aside(self._store.set_aside(place), str(error))
                continue
            if entry is not None:
                entries[entry.number] = entry
        return tuple(entries[number] for number in sorted(entries))

    def write_entry(self, scope: Scope, entry: Entry) -> None:
        """Records an entry. Its address is its own: none is ever rewritten by another."""
        address = entry_address(scope, entry)
        if self._store.read(address) is not None:
            raise InternalError(f"entry {'/'.join(address)} is there already")
        self._store.write(address, entry_to_json(entry))

    def rewrite_landing(self, scope: Scope, entry: Entry) -> None:
        """Records the next state of a landing in place of the last."""
        self._store.write(entry_address(scope, entry), entry_to_json(entry))

    def all_entries(
        self, root: Scope, set_aside: SetAside | None = None
    ) -> dict[Scope, tuple[Entry, ...]]:
        """The entries of the run's own scope, and of every child that was begun below it."""
        return {scope: self.entries(scope, set_aside) for scope in self.scopes(root)}

    def scopes(self, root: Scope) -> tuple[Scope, ...]:
        """The run's own scope and every child below it, as far as documents can be read."""
        folder = scope_folder(root)
        names = set(self._store.folders((*folder, "worktrees")))
        for place in self._addresses((*folder, "facts")):
            with suppress(CorruptDocument):
                document = self._store.read(place) or {}
                if document.get("kind") == Kind.CHILD.value:
                    names.add(str(document.get("name")))
        found = [root]
        for name in sorted(names):
            with suppress(InputError):
                found += self.scopes(root.child(Namespace(name)))
        return tuple(found)

    def set_entry_aside(self, scope: Scope, entry: Entry) -> str:
        return self._store.set_aside(entry_address(scope, entry))

    def remove(self) -> None:
        """Removes all documents of the run, `run.json` last."""
        self._store.remove_folder(self._folder)

    def _addresses(self, folder: Address) -> list[Address]:
        return [(*folder, name) for name in self._store.names(folder)]

    def _needed(self, address: Address, decode: Callable[[Document, str], T]) -> T | None:
        """A document without which the run cannot go on."""
        try:
            return self._read(address, decode)
        except CorruptDocument as error:
            hint = f"`agl clear {self._folder[-1]}` takes the run away and keeps its work"
            raise CorruptDocument(f"{error}; {hint}") from error

    def _read(self, address: Address, decode: Callable[[Document, str], T]) -> T | None:
        document = self._store.read(address)
        return None if document is None else decode(document, "/".join(address) + ".json")


def _folded(address: Address) -> Address:
    return tuple(part.casefold() for part in address)


def labels_of(store: Store, project: ProjectName) -> tuple[str, ...]:
    """The labels of the runs there are: of a run that was killed before its record was written,
    nothing is there but a folder."""
    folder = runs_folder(project)
    return tuple(one for one in store.folders(folder) if "run" in store.names((*folder, one)))


def renumbered(entry: Entry, *, epoch: int, number: int, given: str | None) -> Entry:
    """The copy of an older epoch's entry with which this epoch goes on."""
    return dataclasses.replace(entry, epoch=epoch, number=number, given=given, copy_of=entry.number)
