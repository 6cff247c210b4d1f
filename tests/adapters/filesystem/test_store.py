from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agl.adapters.filesystem import FilesystemStore
from agl.ports.errors import CorruptDocument, UpstreamError
from agl.ports.store import Address
from agl.testing.contracts.store import RUN, StoreContract


class TestFilesystemStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> FilesystemStore:
        return FilesystemStore(tmp_path / "home")

    @pytest.fixture
    def spoil(self, store: FilesystemStore, tmp_path: Path) -> Callable[[Address, str], None]:
        def spoil(address: Address, text: str) -> None:
            (tmp_path / "home").joinpath(*address).with_suffix(".json").write_text(text)

        return spoil


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def store(home: Path) -> FilesystemStore:
    return FilesystemStore(home)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_document_is_one_line_of_utf_8_at_its_address(store: FilesystemStore, home: Path) -> None:
    store.write((*RUN, "run"), {"text": "漢字"})
    file = home / "projects" / "p" / "runs" / "r" / "run.json"
    assert file.read_bytes() == '{"text": "漢字"}\n'.encode()


def test_a_write_leaves_nothing_else_behind(store: FilesystemStore, home: Path) -> None:
    for n in range(3):
        store.write((*RUN, "run"), {"n": n})
    assert files(home) == ["run.json"]


def test_a_half_written_file_is_no_document(store: FilesystemStore, home: Path) -> None:
    store.write((*RUN, "run"), {})
    folder = home.joinpath(*RUN)
    (folder / "outcome.json.0123456789ab.tmp").write_text("{")
    assert store.names(RUN) == ("run",)
    store.remove_folder(RUN)
    assert not folder.exists()


def test_bytes_that_are_not_utf_8_are_a_broken_document(store: FilesystemStore, home: Path) -> None:
    store.write((*RUN, "run"), {})
    file = home.joinpath(*RUN, "run.json")
    for data, why in (
        (b'{"a": "\xff"}', "it is not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "it is not UTF-8"),
        (b'{"a": NaN}', "NaN"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b"", "it is not JSON (line 1, column 1)"),
    ):
        file.write_bytes(data)
        with pytest.raises(CorruptDocument) as failure:
            store.read((*RUN, "run"))
        assert str(failure.value).startswith(f"{str(file)!r} cannot be read: {why}")


def test_what_was_set_aside_is_still_there(store: FilesystemStore, home: Path) -> None:
    for n in range(3):
        store.write((*RUN, "run"), {"n": n})
        assert json.loads(Path(store.set_aside((*RUN, "run"))).read_text()) == {"n": n}
    assert files(home) == ["run.json.broken", "run.json.broken-2", "run.json.broken-3"]


def test_a_folder_that_is_a_file_is_named(store: FilesystemStore, home: Path) -> None:
    home.mkdir()
    (home / "projects").write_text("")
    with pytest.raises(UpstreamError, match="projects"):
        store.read((*RUN, "run"))
    with pytest.raises(UpstreamError, match="projects"):
        store.write((*RUN, "run"), {})
    with pytest.raises(UpstreamError, match="projects"):
        store.names(("projects",))


def test_a_link_in_a_removed_folder_is_not_followed(
    store: FilesystemStore, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "file").write_text("theirs")
    store.write((*RUN, "run"), {})
    home.joinpath(*RUN, "link").symlink_to(tmp_path / "theirs")
    store.remove_folder(RUN)
    assert (tmp_path / "theirs" / "file").read_text() == "theirs"


# A full disk: the size of what a process may write is limited to LIMIT_BYTES, which write(2) meets
# half-way through, as it does with ENOSPC.
LIMIT_BYTES = 4096
FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from agl.adapters.filesystem import FilesystemStore
from agl.ports.errors import UpstreamError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    FilesystemStore(Path(sys.argv[1])).write(("x", "run"), {"text": "new" * 100_000})
except UpstreamError as error:
    print(error)
else:
    print("it fits")
"""


@pytest.mark.parametrize("limit_bytes", [0, 1, LIMIT_BYTES])
def test_a_full_disk_leaves_the_old_document(
    store: FilesystemStore, home: Path, limit_bytes: int
) -> None:
    store.write(("x", "run"), {"text": "old"})
    child = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(home), str(limit_bytes)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert child.stdout == f"cannot write {str(home / 'x' / 'run.json')!r}: File too large\n"
    assert store.read(("x", "run")) == {"text": "old"}
    assert files(home) == ["run.json"]


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="needs the right to mount a file system"
)
def test_a_file_system_without_room_leaves_the_old_document(tmp_path: Path) -> None:
    home = tmp_path / "small"
    home.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(home)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting is not allowed")
    try:
        store = FilesystemStore(home)
        store.write(("x", "run"), {"text": "old"})
        with pytest.raises(UpstreamError, match="No space left on device"):
            store.write(("x", "run"), {"text": "new" * 100_000})
        assert store.read(("x", "run")) == {"text": "old"}
        assert files(home) == ["run.json"]
    finally:
        subprocess.run(["umount", str(home)], check=True)
