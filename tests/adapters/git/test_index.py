"""The index is read as git writes it."""

from __future__ import annotations

import pytest

from adapters.git.hands import GitTrees
from agl.adapters.git.index import hides_entries

NAMES = ["a", "b" * 60, "dir/" + "c" * 90, "dir/d", "long/" + "e" * 240 + "/" + "f" * 240, "z"]
# 4095 is the longest length that an entry's flags can tell.
LONG = "/".join(["l" * 200] * 21)


@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
@pytest.mark.parametrize("name", [NAMES[0], NAMES[-1]])
def test_a_flag_is_seen_wherever_it_is(repo: GitTrees, version: str, flag: str, name: str) -> None:
    blob = repo.git("rev-parse", f"{repo.base}:calc.py")
    for path in (*NAMES, LONG):
        repo.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
    for announced in ("0", "00", "000", "0000", "00000", "000000", "0000000", "00000000"):
        (repo.checkout / announced).touch()
        repo.git("add", "--intent-to-add", announced)
    repo.git("update-index", "--index-version", version)
    index = repo.checkout / ".git" / "index"
    assert not hides_entries(index.read_bytes(), 40)
    repo.git("update-index", flag, name)
    assert hides_entries(index.read_bytes(), 40)
    repo.git("update-index", flag.replace("--", "--no-"), name)
    assert not hides_entries(index.read_bytes(), 40)


def test_an_index_of_sha256_is_read(repo: GitTrees) -> None:
    other = repo.place / "other"
    repo.git("init", "--quiet", "--object-format=sha256", str(other))
    for name in NAMES[:4]:
        (other / name).parent.mkdir(exist_ok=True)
        (other / name).write_bytes(b"x")
    repo.git("add", "--all", cwd=other)
    index = other / ".git" / "index"
    assert not hides_entries(index.read_bytes(), 64)
    repo.git("update-index", "--assume-unchanged", NAMES[3], cwd=other)
    assert hides_entries(index.read_bytes(), 64)


@pytest.mark.parametrize("data", [b"", b"DIRC", b"junk" * 100, b"DIRC\0\0\0\2\0\0\0\7short"])
def test_a_broken_index_hides_nothing(data: bytes) -> None:
    assert not hides_entries(data, 40)
