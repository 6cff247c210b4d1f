"""What every `Store` promises."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agl.ports.errors import CorruptDocument, InternalError, UpstreamError
from agl.ports.store import Address, Store

RUN = ("projects", "p", "runs", "r")


class StoreContract:
    """Subclass it and give the fixtures `store`, empty, and `spoil`, which puts a text where a
    document lies."""

    @pytest.fixture
    def store(self) -> Store:
        raise NotImplementedError

    @pytest.fixture
    def spoil(self, store: Store) -> Callable[[Address, str], None]:
        raise NotImplementedError

    def test_a_document_that_was_never_written_is_none(self, store: Store) -> None:
        assert store.read((*RUN, "run")) is None

    def test_what_was_written_is_read(self, store: Store) -> None:
        document = {"z": [1, 1.5, True, None, "é\n\0"], "a": {"nested": {}}}
        store.write((*RUN, "run"), document)
        assert store.read((*RUN, "run")) == document
        assert list(store.read((*RUN, "run")) or ()) == ["z", "a"]

    def test_a_second_write_takes_the_place_of_the_first(self, store: Store) -> None:
        store.write((*RUN, "run"), {"text": "a long one" * 1000})
        store.write((*RUN, "run"), {"n": 2})
        assert store.read((*RUN, "run")) == {"n": 2}

    def test_a_lone_surrogate_survives(self, store: Store) -> None:
        store.write((*RUN, "run"), {"name": "\udce9é"})
        assert store.read((*RUN, "run")) == {"name": "\udce9é"}

    def test_changing_what_was_written_or_read_changes_no_document(self, store: Store) -> None:
        value = [1]
        store.write((*RUN, "run"), {"value": value})
        value.append(2)
        document = store.read((*RUN, "run"))
        assert document == {"value": [1]}
        document["value"].append(3)  # type: ignore[attr-defined]
        assert store.read((*RUN, "run")) == {"value": [1]}

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, object()])
    def test_what_is_not_json_is_refused_and_the_old_one_stays(
        self, store: Store, value: object
    ) -> None:
        store.write((*RUN, "run"), {"n": 1})
        with pytest.raises((ValueError, TypeError)):
            store.write((*RUN, "run"), {"n": value})
        assert store.read((*RUN, "run")) == {"n": 1}
        assert store.names(RUN) == ("run",)

    @pytest.mark.parametrize("text", ["", "{", '{"a": ', "[1]", "null", '"x"', "\0", "{}{}"])
    def test_a_broken_document_raises(
        self, store: Store, spoil: Callable[[Address, str], None], text: str
    ) -> None:
        store.write((*RUN, "run"), {"n": 1})
        spoil((*RUN, "run"), text)
        with pytest.raises(CorruptDocument, match="run"):
            store.read((*RUN, "run"))
        assert store.names(RUN) == ("run",)

    def test_a_removed_document_is_gone(self, store: Store) -> None:
        store.write((*RUN, "outcome"), {})
        store.remove((*RUN, "outcome"))
        store.remove((*RUN, "outcome"))
        store.remove(("nowhere", "outcome"))
        assert store.read((*RUN, "outcome")) is None
        assert store.names(RUN) == ()

    def test_names_are_the_documents_directly_in_a_folder(self, store: Store) -> None:
        for name in ("b", "a.json", "a"):
            store.write((*RUN, name), {})
        store.write((*RUN, "steps", "s", "000001-ff"), {})
        assert store.names(RUN) == ("a", "a.json", "b")
        assert store.names((*RUN, "steps")) == ()
        assert store.names(("nowhere",)) == ()

    def test_folders_are_those_directly_in_a_folder(self, store: Store) -> None:
        store.write((*RUN, "run"), {})
        store.write((*RUN, "steps", "b", "1"), {})
        store.write((*RUN, "steps", "a", "1"), {})
        assert store.folders(("projects",)) == ("p",)
        assert store.folders(RUN) == ("steps",)
        assert store.folders((*RUN, "steps")) == ("a", "b")
        assert store.folders(("nowhere",)) == ()

    def test_a_walk_finds_every_document(self, store: Store) -> None:
        addresses = [(*RUN, "run"), (*RUN, "steps", "a", "1"), (*RUN, "steps", "b", "1")]
        for address in reversed(addresses):
            store.write(address, {})
        assert list(store.walk(RUN)) == addresses

    def test_a_document_and_a_folder_may_have_one_name(self, store: Store) -> None:
        store.write((*RUN, "steps"), {"n": 1})
        store.write((*RUN, "steps", "a"), {"n": 2})
        assert store.read((*RUN, "steps")) == {"n": 1}
        assert store.read((*RUN, "steps", "a")) == {"n": 2}

    def test_what_is_set_aside_is_out_of_sight(
        self, store: Store, spoil: Callable[[Address, str], None]
    ) -> None:
        store.write((*RUN, "run"), {})
        spoil((*RUN, "run"), "{")
        assert "run" in store.set_aside((*RUN, "run"))
        assert store.read((*RUN, "run")) is None
        assert store.names(RUN) == ()

    def test_a_second_one_set_aside_leaves_the_first(self, store: Store) -> None:
        places = set()
        for n in range(3):
            store.write((*RUN, "run"), {"n": n})
            places.add(store.set_aside((*RUN, "run")))
        assert len(places) == 3

    def test_what_is_not_there_cannot_be_set_aside(self, store: Store) -> None:
        with pytest.raises(UpstreamError):
            store.set_aside((*RUN, "run"))

    def test_a_removed_folder_is_gone_with_all_that_is_in_it(self, store: Store) -> None:
        for address in [("run",), ("steps", "a", "1"), ("worktrees", "w", "run")]:
            store.write((*RUN, *address), {})
        store.write(("projects", "p", "runs", "other", "run"), {})
        store.remove_folder(RUN)
        store.remove_folder(RUN)
        assert list(store.walk(("projects",))) == [("projects", "p", "runs", "other", "run")]
        assert store.folders(("projects", "p", "runs")) == ("other",)

    @pytest.mark.parametrize("address", [(), ("",), ("..", "x"), (".", "x"), ("a/b",)])
    def test_no_address_leads_out_of_the_ledger(self, store: Store, address: Address) -> None:
        with pytest.raises(InternalError):
            store.write(address, {})
        with pytest.raises(InternalError):
            store.remove_folder(address)
