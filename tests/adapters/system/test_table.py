from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agl.adapters.system.table import (
    Process,
    ProcessTable,
    ProcTable,
    PsutilTable,
    descendants,
    lineage,
)


@pytest.fixture(params=[ProcTable, PsutilTable])
def table(request: pytest.FixtureRequest) -> ProcessTable:
    if request.param is ProcTable and sys.platform != "linux":
        pytest.skip("needs /proc")
    if request.param is PsutilTable:
        pytest.importorskip("psutil")
    made: ProcessTable = request.param()
    return made


@pytest.fixture
def child(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process whose name holds what the fields of its state are told apart by."""
    program = tmp_path / "odd ) S (name"
    program.symlink_to("/bin/sleep")
    child = subprocess.Popen(
        [program, "60"], cwd=tmp_path, env={"A": "b", "C": "d"}, start_new_session=True
    )
    yield child
    child.kill()
    child.wait()


def test_a_process_is_seen_with_its_relations(
    table: ProcessTable, child: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    seen = table.look()[child.pid]
    assert (seen.pid, seen.parent) == (child.pid, os.getpid())
    assert seen.group == seen.session == child.pid
    assert seen.started == table.look()[child.pid].started
    assert table.environment(child.pid) >= {b"A=b", b"C=d"}
    assert table.folder(child.pid) == str(tmp_path)
    assert table.command(child.pid) == f"{tmp_path}/odd ) S (name 60"


def test_a_zombie_is_not_seen(table: ProcessTable, child: subprocess.Popen[bytes]) -> None:
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert child.pid not in table.look()


def test_a_process_that_is_gone_answers_with_nothing(
    table: ProcessTable, child: subprocess.Popen[bytes]
) -> None:
    child.kill()
    child.wait()
    assert child.pid not in table.look()
    assert table.environment(child.pid) == frozenset()
    assert table.folder(child.pid) is None
    assert table.command(child.pid) == ""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_process_is_known_while_it_becomes_another_program(tmp_path: Path) -> None:
    (tmp_path / "again").write_text('exec /bin/sh "$0"\n')
    child = subprocess.Popen(["/bin/sh", tmp_path / "again"], env={"A": "b"})
    try:
        assert all(b"A=b" in ProcTable().environment(child.pid) for _ in range(2000))
    finally:
        child.kill()
        child.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_process_has_its_words_as_soon_as_it_is_started() -> None:
    for _ in range(100):
        process = subprocess.Popen(["sleep", "60"])
        try:
            assert ProcTable().command(process.pid) == "sleep 60"
        finally:
            process.kill()
            process.wait()


def test_relations_are_followed_down_and_up() -> None:
    parents = {1: 0, 2: 1, 3: 2, 4: 2, 5: 1, 6: 99}
    snapshot = {pid: Process(pid, parent, pid, pid, 0.0) for pid, parent in parents.items()}
    assert descendants(snapshot, [2]) == {3, 4}
    assert descendants(snapshot, [1, 6]) == {2, 3, 4, 5}
    assert lineage(snapshot, 4) == {4, 2, 1, 0}
    assert lineage(snapshot, 6) == {6, 99}
