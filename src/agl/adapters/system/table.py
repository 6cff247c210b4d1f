"""The system's processes at one moment."""

from __future__ import annotations

import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_COMMAND_CHARS = 200
_EXEC_S = 0.1
_SETTLED = 3
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD of include/linux/sched.h


@dataclass(frozen=True, slots=True)
class Process:
    """`started` tells two processes that had the same pid apart."""

    pid: int
    parent: int
    group: int
    session: int
    started: float


Snapshot = Mapping[int, Process]
"""The living processes by pid; a zombie is none of them, nor is a thread of the kernel."""


class ProcessTable(ABC):
    """What can be asked about any process. A process that is gone, or another user's, answers with
    nothing."""

    @abstractmethod
    def look(self) -> Snapshot: ...

    @abstractmethod
    def environment(self, pid: int) -> frozenset[bytes]:
        """`NAME=value` each, as the program was started with."""

    @abstractmethod
    def folder(self, pid: int) -> str | None:
        """The working folder, resolved."""

    @abstractmethod
    def command(self, pid: int) -> str:
        """The start of the command line."""


def this_table() -> ProcessTable:
    if sys.platform == "linux":
        return ProcTable()
    return PsutilTable()


def descendants(snapshot: Snapshot, roots: Iterable[int]) -> set[int]:
    """The children of the roots and their children, as far as no parent in between has died."""
    children: dict[int, list[int]] = {}
    for process in snapshot.values():
        children.setdefault(process.parent, []).append(process.pid)
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def lineage(snapshot: Snapshot, pid: int) -> set[int]:
    """The process and its ancestors."""
    found: set[int] = set()
    while pid in snapshot and pid not in found:
        found.add(pid)
        pid = snapshot[pid].parent
    return found | {pid}


class ProcTable(ProcessTable):
    """Linux, proc(5)."""

    def look(self) -> Snapshot:
        snapshot = {}
        with os.scandir("/proc") as entries:
            pids = [int(entry.name) for entry in entries if entry.name.isdigit()]
        for pid in pids:
            if (process := _stat(pid)) is not None:
                snapshot[pid] = process
        return snapshot

    def environment(self, pid: int) -> frozenset[bytes]:
        # Amid execve(2) a process shows for a moment no variables, and for most of that no words of
        # its command line either (Linux 6); so only what stays empty is empty.
        path = f"/proc/{pid}/environ"
        until = time.monotonic() + _EXEC_S
        settled = 0
        while not (variables := _read(path)) and settled < _SETTLED:
            settled = settled + 1 if _read(f"/proc/{pid}/cmdline") else 0
            if not os.access(path, os.R_OK) or _stat(pid) is None or time.monotonic() >= until:
                break
        return frozenset(variables.split(b"\0")) - {b""}

    def folder(self, pid: int) -> str | None:
        try:
            return str(Path(f"/proc/{pid}/cwd").readlink())
        except OSError:
            return None

    def command(self, pid: int) -> str:
        until = time.monotonic() + _EXEC_S
        while not (line := _read(f"/proc/{pid}/cmdline")):  # amid execve(2), as above
            if _stat(pid) is None or time.monotonic() >= until:
                break
        words = line.rstrip(b"\0").replace(b"\0", b" ")
        return words.decode(errors="replace")[:_COMMAND_CHARS]


def _read(path: str) -> bytes:
    try:
        with Path(path).open("rb", buffering=0) as file:
            return file.read() or b""
    except OSError:
        return b""


def _stat(pid: int) -> Process | None:
    # The second field, the program's name in brackets, may itself hold brackets and spaces.
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    if not fields or fields[0] in (b"Z", b"X") or int(fields[6]) & _KERNEL_THREAD:
        return None
    parent, group, session = map(int, fields[1:4])
    return Process(pid, parent, group, session, started=float(fields[19]))


class PsutilTable(ProcessTable):
    """Systems without /proc."""

    def __init__(self) -> None:
        import psutil  # type: ignore[import-untyped]

        self._psutil = psutil

    def look(self) -> Snapshot:
        snapshot = {}
        for process in self._psutil.process_iter(["ppid", "status", "create_time"]):
            if process.info["status"] == self._psutil.STATUS_ZOMBIE:
                continue
            try:
                group, session = os.getpgid(process.pid), os.getsid(process.pid)
            except OSError:
                group = session = -1
            snapshot[process.pid] = Process(
                process.pid,
                process.info["ppid"] or 0,
                group,
                session,
                started=process.info["create_time"] or 0.0,
            )
        return snapshot

    def environment(self, pid: int) -> frozenset[bytes]:
        try:
            pairs = self._psutil.Process(pid).environ().items()
        except (self._psutil.Error, OSError):
            return frozenset()
        return frozenset(os.fsencode(f"{name}={value}") for name, value in pairs)

    def folder(self, pid: int) -> str | None:
        try:
            return str(self._psutil.Process(pid).cwd())
        except (self._psutil.Error, OSError):
            return None

    def command(self, pid: int) -> str:
        try:
            return " ".join(self._psutil.Process(pid).cmdline())[:_COMMAND_CHARS]
        except (self._psutil.Error, OSError):
            return ""
