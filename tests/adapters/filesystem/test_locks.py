from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from agl.adapters.filesystem import FilesystemLocks
from agl.ports.errors import UpstreamError
from agl.ports.locks import Holder, LockHeld
from agl.testing.contracts.locks import NAME, LocksContract

HOLD = """
import sys, time
from pathlib import Path
from agl.adapters.filesystem import FilesystemLocks
from agl.ports.locks import LockHeld
try:
    with FilesystemLocks(Path(sys.argv[1])).hold(("p", "r"), wait_s=float(sys.argv[2])):
        print("held", flush=True)
        sys.stdin.read()
except LockHeld as error:
    print(error.holder.pid, flush=True)
"""


class TestFilesystemLocks(LocksContract):
    @pytest.fixture
    def locks(self, tmp_path: Path) -> FilesystemLocks:
        return FilesystemLocks(tmp_path)


Start = Callable[[float], "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts processes that hold the lock until their stdin ends, or say who does."""
    with ExitStack() as stack:

        def start(wait_s: float) -> subprocess.Popen[str]:
            argv = [sys.executable, "-c", HOLD, str(tmp_path), str(wait_s)]
            process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield start


@pytest.fixture
def locks(tmp_path: Path) -> FilesystemLocks:
    return FilesystemLocks(tmp_path)


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_of_two_processes_at_once_one_holds_and_the_other_names_it(start: Start) -> None:
    first, second = start(0.2), start(0.2)
    words = {first.pid: said(first), second.pid: said(second)}
    (holder,) = (pid for pid, word in words.items() if word == "held")
    (other,) = words.keys() - {holder}
    assert words[other] == str(holder)


def test_another_process_is_seen_to_hold_it(start: Start, locks: FilesystemLocks) -> None:
    process = start(0)
    assert said(process) == "held"
    for _ in range(2):
        holder = locks.holder(NAME)
        assert holder is not None
        assert holder.pid == process.pid
    with pytest.raises(LockHeld, match=str(process.pid)), locks.hold(NAME, wait_s=0):
        pytest.fail("held twice")


def test_the_death_of_its_holder_frees_it(start: Start, locks: FilesystemLocks) -> None:
    process = start(0)
    assert said(process) == "held"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert locks.holder(NAME) is None
    with locks.hold(NAME, wait_s=0):
        holder = locks.holder(NAME)
        assert holder is not None
        assert holder.pid == os.getpid()


def test_a_child_does_not_inherit_it(locks: FilesystemLocks) -> None:
    with locks.hold(NAME, wait_s=0):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        assert locks.holder(NAME) is None
    finally:
        child.kill()
        child.wait()


def test_the_file_outlives_the_lock(locks: FilesystemLocks, tmp_path: Path) -> None:
    with locks.hold(NAME, wait_s=0):
        inode = (tmp_path / "p" / "r.lock").stat().st_ino
    with locks.hold(NAME, wait_s=0):
        assert (tmp_path / "p" / "r.lock").stat().st_ino == inode
    assert (tmp_path / "p" / "r.lock").stat().st_ino == inode


def test_a_free_lock_names_nobody(locks: FilesystemLocks, tmp_path: Path) -> None:
    with locks.hold(NAME, wait_s=0):
        assert str(os.getpid()) in (tmp_path / "p" / "r.lock").read_text()
    assert (tmp_path / "p" / "r.lock").read_text() == ""


def test_who_asks_does_not_pass_for_a_holder(locks: FilesystemLocks, tmp_path: Path) -> None:
    with locks.hold(NAME, wait_s=0):
        pass
    with (tmp_path / "p" / "r.lock").open() as asking:
        fcntl.flock(asking, fcntl.LOCK_SH)
        assert locks.holder(NAME) is None
        threading.Timer(0.01, fcntl.flock, (asking, fcntl.LOCK_UN)).start()
        with locks.hold(NAME, wait_s=0):
            pass


def test_asking_makes_no_file(locks: FilesystemLocks, tmp_path: Path) -> None:
    assert locks.holder(NAME) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}', '{"pid": 1, "since": "soon"}'])
def test_a_holder_that_left_no_word_is_another_process(
    locks: FilesystemLocks, tmp_path: Path, text: str
) -> None:
    with locks.hold(NAME, wait_s=0):
        (tmp_path / "p" / "r.lock").write_text(text)
        assert locks.holder(NAME) == Holder(None, None)


def test_a_holder_that_has_just_come_is_waited_for(locks: FilesystemLocks, tmp_path: Path) -> None:
    file = tmp_path / "p" / "r.lock"
    with locks.hold(NAME, wait_s=0):
        word = file.read_text()
        file.write_text("")
        late = subprocess.Popen(["sh", "-c", 'sleep 0.01; printf %s "$0" >"$1"', word, str(file)])
        holder = locks.holder(NAME)
        assert holder is not None
        assert holder.pid == os.getpid()
        late.wait()


def test_a_lock_that_cannot_be_opened_is_named(locks: FilesystemLocks, tmp_path: Path) -> None:
    (tmp_path / "p").write_text("")
    with pytest.raises(UpstreamError, match=r"r\.lock"), locks.hold(NAME, wait_s=0):
        pytest.fail("held")


def test_a_probe_does_not_wait(locks: FilesystemLocks) -> None:
    with locks.hold(NAME, wait_s=0):
        assert locks.holder(NAME) is not None
