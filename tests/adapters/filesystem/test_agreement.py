"""Whatever is asked of them in whatever order, files and memory answer the same."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from agl.adapters.filesystem import FilesystemEventLog, FilesystemLocks, FilesystemStore
from agl.adapters.memory.event_log import MemoryEventLog
from agl.adapters.memory.locks import MemoryLocks
from agl.adapters.memory.store import MemoryStore
from agl.ports.errors import AglError
from agl.ports.locks import LockHeld, Locks
from agl.ports.store import Store

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
documents = st.dictionaries(st.text(st.characters()), json_values, max_size=4)
parts = st.sampled_from(["run", "a", "b", "steps"])
addresses = st.lists(parts, min_size=1, max_size=4).map(tuple)

quick = settings(max_examples=60, deadline=None)


@quick
@given(documents)
def test_any_document_comes_back_as_it_was(document: dict[str, object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for store in (FilesystemStore(Path(folder)), MemoryStore()):
            store.write(("x", "run"), document)
            assert repr(store.read(("x", "run"))) == repr(document)


@quick
@given(st.lists(documents, max_size=8))
def test_any_events_come_back_as_they_were(events: list[dict[str, object]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for log in (FilesystemEventLog(Path(folder)), MemoryEventLog()):
            for event in events:
                log.append(("x",), event)
            assert repr(list(log.read(("x",)))) == repr(events)


Call = Callable[[Store], object]


def _calls() -> st.SearchStrategy[tuple[str, Call]]:
    def call(verb: str, *args: object) -> tuple[str, Call]:
        return f"{verb}{args}", lambda store: getattr(store, verb)(*args)

    return st.one_of(
        st.builds(lambda at, n: call("write", at, {"n": n}), addresses, st.integers(0, 9)),
        st.builds(lambda at: call("remove", at), addresses),
        st.builds(lambda at: call("set_aside", at), addresses),
        st.builds(lambda at: call("remove_folder", at), addresses),
    )


def _outcome(store: Store, call: Call) -> object:
    try:
        call(store)
    except AglError as error:
        return type(error)
    return None


def _view(store: Store) -> object:
    def below(folder: tuple[str, ...]) -> object:
        return (
            {name: store.read((*folder, name)) for name in store.names(folder)},
            {name: below((*folder, name)) for name in store.folders(folder)},
        )

    return {root: (store.read((root,)), below((root,))) for root in ("run", "a", "b", "steps")}


@quick
@given(st.lists(_calls(), max_size=12))
def test_both_stores_hold_the_same_after_the_same_calls(calls: list[tuple[str, Call]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        real, memory = FilesystemStore(Path(folder)), MemoryStore()
        for _, call in calls:
            assert _outcome(real, call) == _outcome(memory, call)
            assert _view(real) == _view(memory)


events = st.dictionaries(st.text(max_size=3), st.integers() | st.just(float("nan")), max_size=3)


@quick
@given(st.lists(st.tuples(addresses, events), max_size=12))
def test_both_logs_hold_the_same_after_the_same_calls(
    calls: list[tuple[tuple[str, ...], dict[str, object]]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        real, memory = FilesystemEventLog(Path(folder)), MemoryEventLog()
        for run, event in calls:
            real.append(run, event)
            memory.append(run, event)
        for run, _ in calls:
            assert list(real.read(run)) == list(memory.read(run))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.sampled_from(["x", "y"])), max_size=8))
def test_both_locks_answer_the_same(moves: list[tuple[bool, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        answers = [
            _answers(locks, moves) for locks in (FilesystemLocks(Path(folder)), MemoryLocks())
        ]
    assert answers[0] == answers[1]


def _answers(locks: Locks, moves: list[tuple[bool, str]]) -> list[object]:
    """Takes or frees each lock in turn, and asks about both after each move."""
    answers: list[object] = []
    with ExitStack() as everything:
        held: dict[str, ExitStack] = {}
        for take, name in moves:
            if not take:
                if name in held:
                    held.pop(name).close()
            else:
                stack = everything.enter_context(ExitStack())
                try:
                    stack.enter_context(locks.hold((name,), wait_s=0))
                    held[name] = stack
                except LockHeld as error:
                    answers.append(error.holder.pid)
            for asked in ("x", "y"):
                holder = locks.holder((asked,))
                answers.append(holder and holder.pid)
    return answers
