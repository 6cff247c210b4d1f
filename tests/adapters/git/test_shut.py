"""What an agent may no longer read or write, and what is no file at all."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.git.hands import GitTrees
from adapters.git.unprivileged import as_a_plain_user
from agl.adapters.git.kept_folders import KeptFolders, move, open_up
from agl.ports.errors import UpstreamError
from agl.testing.contracts.trees import BASE_FILES, KEEPING, SCOPE, files_below, kept_contents


async def _open_what_is_said(repo: GitTrees, error: Exception) -> Path:
    """Does what the sentence says, and returns what it was about."""
    command, mode, what = shlex.split(str(error).split("`")[1])
    assert command == "chmod"
    given = {"u+rwx": 0o700, "u+r": 0o600}[mode]
    Path(what).chmod(given)
    return Path(what)


async def _a_new_folder(repo: GitTrees, mode: int) -> None:
    tree = await repo.provider.open(SCOPE, repo.base)
    shut = tree.path / "it's new" / "deep"
    shut.mkdir(parents=True)
    (shut / "one.txt").write_bytes(b"1")
    shut.chmod(mode)
    with pytest.raises(UpstreamError):
        await tree.state()
    with pytest.raises(UpstreamError):
        await tree.restore(repo.base, KEEPING)
    with pytest.raises(UpstreamError) as refused:
        await tree.commit_all(repo.base, "step", KEEPING)
    assert await _open_what_is_said(repo, refused.value) == shut
    head = await tree.commit_all(repo.base, "step", KEEPING)
    assert (await repo.history.files(head))["it's new/deep/one.txt"] == b"1"


async def _a_new_folder_of_mode_000(repo: GitTrees) -> None:
    await _a_new_folder(repo, 0)


async def _a_new_folder_of_mode_111(repo: GitTrees) -> None:
    await _a_new_folder(repo, 0o111)


@pytest.mark.parametrize("piece", [_a_new_folder_of_mode_000, _a_new_folder_of_mode_111])
def test_a_folder_that_git_passes_over_is_named(
    piece: Callable[[GitTrees], Coroutine[None, None, None]],
) -> None:
    as_a_plain_user(piece)


async def _a_tracked_folder(repo: GitTrees) -> None:
    tree = await repo.provider.open(SCOPE, repo.base)
    (tree.path / "docs" / "notes.txt").write_bytes(b"typed")
    (tree.path / "docs").chmod(0o600)
    with pytest.raises(UpstreamError) as refused:
        await tree.commit_all(repo.base, "step", KEEPING)
    assert await _open_what_is_said(repo, refused.value) == tree.path / "docs"
    head = await tree.commit_all(repo.base, "step", KEEPING)
    assert (await repo.history.files(head))["docs/notes.txt"] == b"typed"


def test_a_tracked_folder_that_git_passes_over_is_named() -> None:
    as_a_plain_user(_a_tracked_folder)


async def _an_ignore_file(repo: GitTrees) -> None:
    tree = await repo.provider.open(SCOPE, repo.base)
    (tree.path / ".gitignore").write_bytes(b"*.log\n")
    (tree.path / "out.log").write_bytes(b"output")
    (tree.path / ".gitignore").chmod(0)
    with pytest.raises(UpstreamError) as refused:
        await tree.commit_all(repo.base, "step", KEEPING)
    assert await _open_what_is_said(repo, refused.value) == tree.path / ".gitignore"
    head = await tree.commit_all(repo.base, "step", KEEPING)
    assert await repo.history.files(head) == {**BASE_FILES, ".gitignore": b"*.log\n"}


def test_an_ignore_file_that_git_passes_over_is_named() -> None:
    as_a_plain_user(_an_ignore_file)


async def _setting_of_a_person(repo: GitTrees) -> None:
    rules = repo.place / "rules"
    rules.touch(mode=0)
    repo.git("config", "core.excludesFile", str(rules))
    tree = await repo.provider.open(SCOPE, repo.base)
    assert (await tree.state()).clean


def test_a_persons_own_rules_that_are_shut_are_no_obstacle() -> None:
    as_a_plain_user(_setting_of_a_person)


async def _committed_files(repo: GitTrees) -> None:
    tree = await repo.provider.open(SCOPE, repo.base)
    for name in ("calc.py", "new.txt"):
        (tree.path / name).write_bytes(b"shut")
        (tree.path / name).chmod(0)
    head = await tree.commit_all(repo.base, "step", KEEPING)
    assert await repo.history.files(head) == {**BASE_FILES, "calc.py": b"shut", "new.txt": b"shut"}
    assert (await tree.state()).clean


def test_files_of_mode_000_are_committed() -> None:
    as_a_plain_user(_committed_files)


async def _kept_files(repo: GitTrees) -> None:
    tree = await repo.provider.open(SCOPE, repo.base)
    (tree.path / ".gitignore").write_bytes(b"new.txt\n")
    (tree.path / "calc.py").write_bytes(b"shut one")
    (tree.path / "new.txt").write_bytes(b"shut two")
    for name in ("calc.py", "new.txt"):
        (tree.path / name).chmod(0)
    await tree.restore(repo.base, KEEPING)
    assert {b"shut one", b"shut two"} <= set(await kept_contents(repo))
    assert files_below(tree.path) == BASE_FILES
    assert (await tree.state()).clean


def test_files_of_mode_000_are_kept() -> None:
    as_a_plain_user(_kept_files)


@pytest.mark.parametrize("ending", ["commit", "restore"])
async def test_a_pipe_in_place_of_a_file_is_moved_away(repo: GitTrees, ending: str) -> None:
    tree = await repo.provider.open(SCOPE, repo.base)
    (tree.path / "calc.py").unlink()
    os.mkfifo(tree.path / "calc.py")
    (tree.path / "new.txt").write_bytes(b"new")
    if ending == "commit":
        head = await tree.commit_all(repo.base, "step", KEEPING)
        assert (await repo.history.files(head))["new.txt"] == b"new"
    else:
        await tree.restore(repo.base, KEEPING)
        assert files_below(tree.path) == BASE_FILES
        assert b"new" in await kept_contents(repo)
    assert (await tree.state()).clean
    folders = [item.folder for item in await repo.kept.items() if item.folder]
    assert [(folder / "calc.py").is_fifo() for folder in folders] == [True]


@pytest.mark.parametrize("ending", ["commit", "restore"])
async def test_a_tree_that_an_agent_made_sparse_is_no_dead_end(repo: GitTrees, ending: str) -> None:
    tree = await repo.provider.open(SCOPE, repo.base)
    repo.git("sparse-checkout", "set", "--no-cone", "/nothing", cwd=tree.path)
    (tree.path / "docs").mkdir()
    (tree.path / "new.txt").write_bytes(b"new")
    (tree.path / "docs" / "notes.txt").write_bytes(b"typed")
    typed = {"new.txt": b"new", "docs/notes.txt": b"typed"}
    if ending == "commit":
        head = await tree.commit_all(repo.base, "step", KEEPING)
        assert await repo.history.files(head) == {**BASE_FILES, **typed}
    else:
        await tree.restore(repo.base, KEEPING)
        assert {b"new", b"typed"} <= set(await kept_contents(repo))
    assert (await tree.state()).clean


async def test_what_a_sparse_index_hides_besides_is_committed(repo: GitTrees) -> None:
    tree = await repo.provider.open(SCOPE, repo.base)
    repo.git("sparse-checkout", "set", "--no-cone", "/calc.py", cwd=tree.path)
    repo.git("update-index", "--assume-unchanged", "calc.py", cwd=tree.path)
    (tree.path / "calc.py").write_bytes(b"hidden")
    head = await tree.commit_all(repo.base, "step", KEEPING)
    assert await repo.history.files(head) == {**BASE_FILES, "calc.py": b"hidden"}


async def _shut_tree(repo: GitTrees) -> None:
    tree = await repo.provider.open(SCOPE, repo.base)
    (tree.path / "typed.txt").write_bytes(b"typed")
    tree.path.chmod(0)
    tree.path.parent.chmod(0)
    tree = await repo.another_provider().open(SCOPE, repo.base)
    head = await tree.commit_all(repo.base, "step", KEEPING)
    assert (await repo.history.files(head))["typed.txt"] == b"typed"
    tree.path.chmod(0)
    (cleared,) = await repo.another_provider().clear((SCOPE,))
    assert cleared.folder is not None
    assert files_below(cleared.folder)["typed.txt"] == b"typed"


def test_a_tree_that_was_shut_is_opened_up_and_cleared() -> None:
    as_a_plain_user(_shut_tree)


async def _shut_nested_repository(repo: GitTrees) -> None:
    tree = await repo.provider.open(SCOPE, repo.base)
    repo.nest_in(tree.path, "inner", with_commit=True)
    (tree.path / "inner").chmod(0o555)
    head = await tree.commit_all(repo.base, "step", KEEPING)
    assert (await repo.history.files(head))["inner/inside.txt"] == b"nested"


def test_a_nested_repository_that_cannot_be_written_is_flattened() -> None:
    as_a_plain_user(_shut_nested_repository)


async def _another_users_folder(repo: GitTrees) -> None:
    with pytest.raises(UpstreamError, match=r"`chmod u\+rwx /`"):
        open_up(Path("/"))


def test_a_folder_that_cannot_be_opened_up_is_named() -> None:
    as_a_plain_user(_another_users_folder)


def _keep(folders: KeptFolders, what: Path) -> None:
    with folders.place(KEEPING, datetime.now(UTC)) as item:
        assert item.folder is not None
        move(what, item.folder / "deep" / what.name)


def test_a_move_that_fails_leaves_no_note(tmp_path: Path) -> None:
    folders = KeptFolders(tmp_path / "_kept")
    with pytest.raises(UpstreamError):
        _keep(folders, tmp_path / "missing")
    assert list((tmp_path / "_kept").rglob("*")) == []
