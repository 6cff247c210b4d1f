"""`clear` takes out of sight and destroys nothing."""

from __future__ import annotations

import asyncio
import shutil
from itertools import count
from pathlib import Path

import pytest

from adapters.git.hands import GitTrees, Killed, MortalProcesses
from agl.ports.workspace import Workspace
from agl.testing.contracts.trees import CHILD, SCOPE, can_be_found, files_below, kept_contents


async def _opened(repo: GitTrees) -> Workspace:
    return await repo.provider.open(SCOPE, repo.base)


async def test_an_ignored_file_is_in_the_kept_place(repo: GitTrees) -> None:
    """Scenario F1."""
    (repo.checkout / ".gitignore").write_text(".env\n")
    base = repo.commit_in(repo.checkout, "ignore")
    tree = await repo.provider.open(SCOPE, base)
    (tree.path / ".env").write_bytes(b"secret")
    (cleared,) = await repo.provider.clear((SCOPE,))
    assert cleared.folder is not None
    assert (cleared.folder / ".env").read_bytes() == b"secret"


async def test_a_branch_comes_back_by_what_clear_said(repo: GitTrees) -> None:
    """Scenarios F2 and F4."""
    tree = await _opened(repo)
    (tree.path / "one.txt").write_bytes(b"1")
    tip = repo.commit_in(tree.path, "one")
    (tree.path / "typed.txt").write_bytes(b"typed")
    (cleared,) = await repo.provider.clear((SCOPE,))
    repo.git("reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
    repo.git("gc", "--quiet", "--prune=now")
    (item,) = (item for item in cleared.kept if item.commit == tip)
    await repo.kept.bring_back(item, "again")
    assert await repo.history.tip("again") == tip
    assert b"typed" in await kept_contents(repo)


async def test_what_head_passed_through_is_kept(repo: GitTrees) -> None:
    tree = await _opened(repo)
    (tree.path / "one.txt").write_bytes(b"1")
    gone = repo.commit_in(tree.path, "one")
    repo.reset_in(tree.path, repo.base)
    await repo.provider.clear((SCOPE,))
    repo.git("gc", "--quiet", "--prune=now")
    assert await can_be_found(repo, gone)


async def test_a_tree_with_submodules_a_lock_and_a_merge_is_cleared(repo: GitTrees) -> None:
    """Scenario F6."""
    tree = await _opened(repo)
    repo.nest_in(tree.path, "inner", with_commit=True)
    repo.git(
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        str(tree.path / "inner"),
        "sub",
        cwd=tree.path,
    )
    for key, value in (("name", "A"), ("email", "a@example.org")):
        repo.git("config", f"user.{key}", value, cwd=tree.path / "sub")
    (tree.path / "sub" / "only.txt").write_bytes(b"only here")
    tip = repo.commit_in(tree.path / "sub", "only")
    repo.git("worktree", "lock", str(tree.path))
    (cleared,) = await repo.provider.clear((SCOPE,))
    assert cleared.folder is not None
    modules = cleared.folder.with_name("_base@git") / "modules" / "sub"
    elsewhere = {"GIT_DIR": str(modules), "GIT_WORK_TREE": str(repo.place)}
    assert repo.git("cat-file", "-t", tip, env=elsewhere) == "commit"
    assert repo.git("worktree", "list", "--porcelain").count("worktree ") == 1
    await _opened(repo)


async def test_a_commit_typed_in_the_moved_folder_reaches_no_new_run(repo: GitTrees) -> None:
    """Scenario F8b."""
    await _opened(repo)
    (cleared,) = await repo.provider.clear((SCOPE,))
    assert cleared.folder is not None
    await _opened(repo)
    (cleared.folder / "late.txt").write_bytes(b"late")
    with pytest.raises(AssertionError):
        repo.commit_in(cleared.folder, "late")
    assert await repo.history.tip(SCOPE.branch) == repo.base
    assert (cleared.folder / ".git-was").is_file()


async def test_files_may_be_written_meanwhile(repo: GitTrees) -> None:
    """Scenario F7."""
    tree = await _opened(repo)
    handle = (tree.path / "log.txt").open("wb", buffering=0)

    async def write() -> None:
        for number in range(200):
            handle.write(b"%d\n" % number)
            if tree.path.is_dir():
                (tree.path / f"{number}.txt").write_bytes(b"%d" % number)
            await asyncio.sleep(0.001)

    async with asyncio.TaskGroup() as group:
        group.create_task(write())
        clearing = group.create_task(repo.provider.clear((SCOPE,)))
    handle.close()
    (cleared,) = clearing.result()
    assert cleared.folder is not None
    assert (cleared.folder / "log.txt").read_bytes().endswith(b"199\n")
    assert not repo.provider.folder(SCOPE).exists()


@pytest.mark.slow
async def test_a_killed_clear_is_finished_by_the_next(tmp_path: Path) -> None:
    processes = MortalProcesses()
    repo = GitTrees(tmp_path, processes)
    for at in count():
        for scope in (SCOPE, CHILD):
            tree = await repo.provider.open(scope, repo.base)
            (tree.path / "typed.txt").write_bytes(b"typed %d" % at)
        processes.left = at
        try:
            await repo.provider.clear((SCOPE, CHILD))
            break
        except Killed:
            pass
        processes.left = None
        await repo.another_provider().clear((SCOPE, CHILD))
        assert not repo.provider.folder(SCOPE).exists()
        assert await repo.history.tip(SCOPE.branch) is None
        assert await repo.history.tip(CHILD.branch) is None
        assert b"typed %d" % at in await kept_contents(repo)
        assert not list((repo.repository.common_dir / "worktrees").glob("*"))
        for item in await repo.kept.items():
            assert item.folder is None or not (item.folder / ".git").exists()
    assert at > 10


async def test_a_clear_killed_between_its_moves_is_finished(repo: GitTrees) -> None:
    tree = await _opened(repo)
    git_dir = Path(repo.git("rev-parse", "--absolute-git-dir", cwd=tree.path))
    (cleared,) = await repo.provider.clear((SCOPE,))
    assert cleared.folder is not None
    cleared.folder.with_name("_base@git").rename(git_dir)
    (cleared.folder / ".git-was").rename(cleared.folder / ".git")
    repo.git("branch", SCOPE.branch, repo.base)
    assert len(await repo.another_provider().clear((SCOPE,))) == 1
    assert not git_dir.exists()
    assert not (cleared.folder / ".git").exists()
    assert await repo.history.tip(SCOPE.branch) is None


async def test_a_tree_that_git_cannot_read_is_moved_all_the_same(repo: GitTrees) -> None:
    tree = await _opened(repo)
    (tree.path / "one.txt").write_bytes(b"1")
    tip = repo.commit_in(tree.path, "one")
    (tree.path / ".git").unlink()
    (tree.path / "typed.txt").write_bytes(b"typed")
    (cleared,) = await repo.provider.clear((SCOPE,))
    assert cleared.folder is not None
    assert (cleared.folder / "typed.txt").read_bytes() == b"typed"
    assert await can_be_found(repo, tip)
    assert not list((repo.repository.common_dir / "worktrees").glob("*"))


async def test_purge_takes_folders_that_were_made_read_only(repo: GitTrees) -> None:
    tree = await _opened(repo)
    folder = tree.path / "deep" / "er"
    folder.mkdir(parents=True)
    (folder / "file.txt").write_bytes(b"x")
    folder.chmod(0o500)
    folder.parent.chmod(0o500)
    (cleared,) = await repo.provider.clear((SCOPE,))
    await repo.kept.purge(SCOPE.label, None)
    assert cleared.folder is not None
    assert files_below(cleared.folder.parent.parent) == {}
    assert repo.git("for-each-ref", "refs/agl") == ""


async def test_nothing_outside_the_trees_root_is_touched(repo: GitTrees, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file.txt").write_bytes(b"x")
    tree = await _opened(repo)
    (tree.path / "link").symlink_to(outside)
    await repo.provider.clear((SCOPE,))
    await repo.kept.purge(SCOPE.label, None)
    assert files_below(outside) == {"file.txt": b"x"}
    shutil.rmtree(repo.trees_root)


async def test_clearing_a_branch_that_leads_to_another_leaves_that_one(repo: GitTrees) -> None:
    await repo.provider.open(SCOPE, repo.base)
    repo.git("symbolic-ref", f"refs/heads/{SCOPE.branch}", "refs/heads/main")
    await repo.provider.clear((SCOPE,))
    assert await repo.history.tip("main") == repo.base
    assert await repo.history.tip(SCOPE.branch) is None
