from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agl.adapters.filesystem import FilesystemEventLog
from agl.testing.contracts.event_log import RUN, EventLogContract


class TestFilesystemEventLog(EventLogContract):
    @pytest.fixture
    def log(self, tmp_path: Path) -> FilesystemEventLog:
        return FilesystemEventLog(tmp_path)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path.joinpath(*RUN, "events.jsonl")
    path.parent.mkdir(parents=True)
    return path


@pytest.mark.parametrize("torn", [b"{", b'{"n": 9}', b'{"text": "' + b"x" * 200_000, b"\xff"])
@pytest.mark.parametrize("whole", [b"", b'{"n": 1}\n', b'{"n": 0}\n{"n": 1}\n'])
def test_a_torn_last_line_is_repaired_before_the_next_append(
    tmp_path: Path, file: Path, whole: bytes, torn: bytes
) -> None:
    file.write_bytes(whole + torn)
    log = FilesystemEventLog(tmp_path)
    before = whole.count(b"\n")
    assert len(list(log.read(RUN))) == before
    log.append(RUN, {"n": 2})
    log.append(RUN, {"n": 3})
    lines = file.read_bytes().splitlines(keepends=True)
    assert lines[:before] == whole.splitlines(keepends=True)
    assert [json.loads(line)["n"] for line in lines[before:]] == [2, 3]
    assert list(log.read(RUN)) == [json.loads(line) for line in lines]


def test_a_line_that_a_full_disk_cut_is_repaired_by_the_same_process(
    tmp_path: Path, file: Path
) -> None:
    program = """
import resource, signal, sys
from pathlib import Path
from agl.adapters.filesystem import FilesystemEventLog
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
log, run = FilesystemEventLog(Path(sys.argv[1])), tuple(sys.argv[2:])
log.append(run, {"n": 1})
resource.setrlimit(resource.RLIMIT_FSIZE, (50, resource.RLIM_INFINITY))
log.append(run, {"text": "x" * 100})
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
log.append(run, {"n": 2})
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path), *RUN], check=True)
    assert file.read_bytes() == b'{"n": 1}\n{"n": 2}\n'


def test_a_broken_line_in_the_middle_hides_no_other(tmp_path: Path, file: Path) -> None:
    file.write_bytes(b'{"n": 1}\n{"n\n[1]\n\xff\n\n{"n": 2}\n')
    assert list(FilesystemEventLog(tmp_path).read(RUN)) == [{"n": 1}, {"n": 2}]


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path, file: Path) -> None:
    file.mkdir()
    FilesystemEventLog(tmp_path).append(RUN, {"n": 1})


def test_a_log_that_was_removed_begins_anew(tmp_path: Path, file: Path) -> None:
    log = FilesystemEventLog(tmp_path)
    log.append(RUN, {"n": 1})
    file.unlink()
    file.parent.rmdir()
    log.append(RUN, {"n": 2})
    assert list(log.read(RUN)) == [{"n": 2}]
