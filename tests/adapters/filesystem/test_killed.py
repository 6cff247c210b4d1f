"""The store, killed at each call that it makes into the system. The killer sits outside the
product: a `sitecustomize` that counts the calls of `os` which concern the ledger's folder. A write
is cut in half by it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agl.adapters.filesystem import FilesystemStore

KILLER = """
import os, signal, sys
left = int(os.environ["KILL_AT"])
def counted(name):
    call = getattr(os, name)
    def counting(*args, **more):
        global left
        if HOME in str(args[0]) or args[0] in ours or "dir_fd" in more:
            print(name, file=sys.stderr)
            left -= 1
            if left == 0:
                if name == "write":
                    call(args[0], args[1][: len(args[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
        result = call(*args, **more)
        if name == "open" and HOME in str(args[0]):
            ours.add(result)
        return result
    setattr(os, name, counting)
HOME = os.environ["STORE_HOME"]
ours = set()
for name in ("open", "write", "fsync", "close", "rename", "replace", "mkdir", "unlink", "rmdir"):
    counted(name)
"""

START = "import os, sys; from pathlib import Path; from agl.adapters.filesystem import *\n"
START += "store = FilesystemStore(Path(os.environ['STORE_HOME']))\n"


@pytest.fixture
def killer(tmp_path: Path) -> Path:
    folder = tmp_path / "killer"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(KILLER)
    return folder


def calls(n: int, home: Path, killer: Path, program: str) -> tuple[bool, list[str]]:
    """Runs the program, which is killed at its n-th call. Whether it was, and the calls."""
    paths = os.pathsep.join((str(killer), *filter(None, sys.path)))
    environ = {**os.environ, "PYTHONPATH": paths, "STORE_HOME": str(home), "KILL_AT": str(n)}
    child = subprocess.run(
        [sys.executable, "-c", START + program],
        env=environ,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert child.returncode in (0, -9), child.stderr
    return child.returncode == -9, child.stderr.split()


def killed_at(n: int, home: Path, killer: Path, program: str) -> bool:
    return calls(n, home, killer, program)[0]


def test_a_write_is_on_the_disk_before_its_name_is_and_its_name_before_it_returns(
    tmp_path: Path, killer: Path
) -> None:
    home = tmp_path / "home"
    _, first = calls(1000, home, killer, "store.write(('x', 'y', 'run'), {'n': 1})")
    _, second = calls(1000, home, killer, "store.write(('x', 'y', 'run'), {'n': 2})")
    in_order = [call for call in second if call not in ("open", "close")]
    assert in_order == ["write", "fsync", "replace", "fsync"]
    made = 2  # x and y; what holds the home itself is not counted
    assert first.count("fsync") == made + 2


def test_a_document_is_old_or_new_whenever_the_writer_is_killed(
    tmp_path: Path, killer: Path
) -> None:
    old, new = {"text": "old" * 1000}, {"text": "new" * 2000}
    seen = []
    n = 0
    killed = True
    while killed:
        n += 1
        home = tmp_path / f"home-{n}"
        store = FilesystemStore(home)
        store.write(("x", "run"), old)
        killed = killed_at(n, home, killer, f"store.write(('x', 'run'), {new!r})")
        document = store.read(("x", "run"))
        assert document in (old, new)
        assert store.names(("x",)) == ("run",)
        seen.append(document == new)
    assert seen == sorted(seen)
    assert {False, True} == set(seen)


def test_a_first_document_is_there_or_not_whenever_the_writer_is_killed(
    tmp_path: Path, killer: Path
) -> None:
    n = 0
    killed = True
    while killed:
        n += 1
        home = tmp_path / f"home-{n}"
        store = FilesystemStore(home)
        killed = killed_at(n, home, killer, "store.write(('x', 'y', 'run'), {'n': 1})")
        assert store.read(("x", "y", "run")) in (None, {"n": 1})
        store.write(("x", "y", "run"), {"n": 2})
        assert list(store.walk(("x",))) == [("x", "y", "run")]


def test_a_killed_removal_keeps_the_run_until_the_last_and_can_be_repeated(
    tmp_path: Path, killer: Path
) -> None:
    addresses = [("x", "run"), ("x", "outcome"), ("x", "steps", "a", "1"), ("x", "steps", "b", "1")]
    n = 0
    killed = True
    while killed:
        n += 1
        home = tmp_path / f"home-{n}"
        store = FilesystemStore(home)
        for address in addresses:
            store.write(address, {})
        killed = killed_at(n, home, killer, "store.remove_folder(('x',))")
        left = set(store.walk(("x",)))
        assert ("x", "run") in left or not left
        store.remove_folder(("x",))
        assert not (home / "x").exists()


def test_a_document_set_aside_is_in_one_of_both_places_whenever_it_is_killed(
    tmp_path: Path, killer: Path
) -> None:
    n = 0
    killed = True
    while killed:
        n += 1
        home = tmp_path / f"home-{n}"
        store = FilesystemStore(home)
        store.write(("x", "run"), {"n": 1})
        killed = killed_at(n, home, killer, "store.set_aside(('x', 'run'))")
        (file,) = (home / "x").iterdir()
        assert json.loads(file.read_text()) == {"n": 1}
