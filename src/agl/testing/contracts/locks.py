"""What every `Locks` promises."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from agl.ports.locks import LockHeld, Locks

NAME = ("p", "r")


class LocksContract:
    """Subclass it and give the fixture `locks`."""

    @pytest.fixture
    def locks(self) -> Locks:
        raise NotImplementedError

    def test_nobody_holds_a_lock_that_was_never_held(self, locks: Locks) -> None:
        assert locks.holder(NAME) is None

    def test_the_holder_says_who_it_is_and_since_when(self, locks: Locks) -> None:
        with locks.hold(NAME, wait_s=0):
            holder = locks.holder(NAME)
            assert holder is not None
            assert holder.pid == os.getpid()
            assert holder.since is not None
            assert abs(datetime.now(UTC) - holder.since) < timedelta(seconds=60)
        assert locks.holder(NAME) is None

    def test_a_second_holder_is_refused_and_told_who(self, locks: Locks) -> None:
        with locks.hold(NAME, wait_s=0):
            with pytest.raises(LockHeld) as refused, locks.hold(NAME, wait_s=0):
                pytest.fail("held twice")
            assert refused.value.holder.pid == os.getpid()
            assert locks.holder(NAME) is not None

    def test_a_refused_one_tried_as_long_as_it_was_told(self, locks: Locks) -> None:
        with locks.hold(NAME, wait_s=0):
            began = time.monotonic()
            with pytest.raises(LockHeld), locks.hold(NAME, wait_s=0.2):
                pytest.fail("held twice")
            assert time.monotonic() - began >= 0.2

    def test_who_waits_gets_it_when_it_is_free(self, locks: Locks) -> None:
        held, release = threading.Event(), threading.Event()

        def hold_a_while() -> None:
            with locks.hold(NAME, wait_s=0):
                held.set()
                release.wait(10)

        with ThreadPoolExecutor() as pool:
            first = pool.submit(hold_a_while)
            assert held.wait(10)
            threading.Timer(0.02, release.set).start()
            with locks.hold(NAME, wait_s=10):
                pass
            first.result()

    def test_an_exception_frees_the_lock(self, locks: Locks) -> None:
        with pytest.raises(ZeroDivisionError), locks.hold(NAME, wait_s=0):
            raise ZeroDivisionError
        with locks.hold(NAME, wait_s=0):
            pass

    def test_two_names_are_two_locks(self, locks: Locks) -> None:
        with locks.hold(("p", "a"), wait_s=0), locks.hold(("p", "b"), wait_s=0):
            assert locks.holder(("p",)) is None

    def test_of_many_threads_one_at_a_time_is_inside(self, locks: Locks) -> None:
        inside = most = 0

        def enter(_: int) -> None:
            nonlocal inside, most
            with locks.hold(NAME, wait_s=10):
                inside += 1
                most = max(most, inside)
                time.sleep(0.001)
                inside -= 1

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(enter, range(16)))
        assert most == 1

    def test_asking_never_keeps_a_holder_out(self, locks: Locks) -> None:
        done = threading.Event()

        def ask() -> None:
            while not done.is_set():
                locks.holder(NAME)

        with ThreadPoolExecutor() as pool:
            asking = [pool.submit(ask) for _ in range(2)]
            try:
                for _ in range(50):
                    with locks.hold(NAME, wait_s=0):
                        pass
            finally:
                done.set()
            for one in asking:
                one.result()
