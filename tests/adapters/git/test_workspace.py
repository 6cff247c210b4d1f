"""What agents do to a tree, and what is still there afterwards."""

from __future__ import annotations

import os
import shlex
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from adapters.git.hands import GitTrees
from agl.adapters.git.workspace import GitWorkspace
from agl.ports.errors import BranchMoved, StateError, TreeVanished, UpstreamError
from agl.testing.contracts.trees import (
    BASE_FILES,
    CHILD,
    KEEPING,
    SCOPE,
    can_be_found,
    files_below,
    kept_contents,
)


async def opened(repo: GitTrees) -> GitWorkspace:
    tree = await repo.provider.open(SCOPE, repo.base)
    assert isinstance(tree, GitWorkspace)
    return tree


async def rests_at(repo: GitTrees, tree: GitWorkspace, commit: str) -> bool:
    state = await tree.state()
    return (
        (state.head, state.attached, state.clean) == (commit, True, True)
        and await repo.history.tip(SCOPE.branch) == commit
        and repo.git("status", "--porcelain", cwd=tree.path) == ""
    )


async def test_a_commit_that_was_amended_away_can_be_found(repo: GitTrees) -> None:
    tree = await opened(repo)
    (tree.path / "one.txt").write_bytes(b"1")
    first = repo.commit_in(tree.path, "one")
    (tree.path / "one.txt").write_bytes(b"2")
    second = repo.amend_in(tree.path, "one, better")
    assert await tree.commit_all(repo.base, "rest", KEEPING) == second
    assert await can_be_found(repo, first)


async def test_a_person_who_wants_no_logs_loses_no_commit(repo: GitTrees) -> None:
    repo.git("config", "core.logAllRefUpdates", "false")
    tree = await opened(repo)
    (tree.path / "one.txt").write_bytes(b"1")
    gone = repo.commit_in(tree.path, "one")
    repo.reset_in(tree.path, repo.base)
    await tree.restore(repo.base, KEEPING)
    assert await can_be_found(repo, gone)


async def test_a_step_that_a_later_one_amended_away_can_be_found(repo: GitTrees) -> None:
    tree = await opened(repo)
    (tree.path / "one.txt").write_bytes(b"1")
    first = await tree.commit_all(repo.base, "one", KEEPING)
    repo.amend_in(tree.path, "one, better")
    await tree.restore(repo.base, KEEPING)
    assert await can_be_found(repo, first)


async def test_a_commit_that_was_reset_away_can_be_found(repo: GitTrees) -> None:
    tree = await opened(repo)
    (tree.path / "one.txt").write_bytes(b"1")
    gone = repo.commit_in(tree.path, "one")
    repo.reset_in(tree.path, repo.base)
    assert await tree.commit_all(repo.base, "nothing", KEEPING) == repo.base
    assert await can_be_found(repo, gone)


async def test_a_commit_on_a_branch_that_was_deleted_can_be_found(repo: GitTrees) -> None:
    tree = await opened(repo)
    repo.branch_in(tree.path, "feature")
    (tree.path / "one.txt").write_bytes(b"1")
    gone = repo.commit_in(tree.path, "one")
    repo.switch_in(tree.path, SCOPE.branch)
    repo.git("branch", "-D", "feature", cwd=tree.path)
    await tree.restore(repo.base, KEEPING)
    assert await can_be_found(repo, gone)


@pytest.mark.parametrize("ending", ["commit", "restore"])
async def test_what_others_put_on_a_branch_that_was_left_is_kept(
    repo: GitTrees, ending: str
) -> None:
    tree = await opened(repo)
    repo.detach_in(tree.path)
    made = repo.git("commit-tree", f"{repo.base}^{{tree}}", "-p", repo.base, "-m", "theirs")
    repo.git("update-ref", f"refs/heads/{SCOPE.branch}", made)
    if ending == "commit":
        await tree.commit_all(repo.base, "step", KEEPING)
    else:
        await tree.restore(repo.base, KEEPING)
    assert await can_be_found(repo, made)


@pytest.mark.parametrize("ending", ["commit", "restore"])
async def test_a_commit_before_an_unborn_branch_can_be_found(repo: GitTrees, ending: str) -> None:
    tree = await opened(repo)
    (tree.path / "one.txt").write_bytes(b"1")
    gone = repo.commit_in(tree.path, "one")
    repo.reset_in(tree.path, repo.base)
    repo.git("checkout", "--quiet", "--orphan", "void", cwd=tree.path)
    repo.reset_in(tree.path, repo.base)
    await _end(tree, ending, repo.base)
    assert await can_be_found(repo, gone)


async def test_a_log_that_names_a_commit_that_is_gone_is_no_obstacle(repo: GitTrees) -> None:
    tree = await opened(repo)
    log = Path(repo.git("rev-parse", "--absolute-git-dir", cwd=tree.path)) / "logs" / "HEAD"
    with log.open("a") as lines:
        lines.write(f"{repo.base} {'1' * 40} A <a@example.org> 1 +0000\tcommit: gone\n")
    assert await tree.commit_all(repo.base, "step", KEEPING) == repo.base


async def test_amending_the_message_alone_changes_nothing(repo: GitTrees) -> None:
    tree = await opened(repo)
    tip = repo.amend_in(tree.path, "other words")
    assert await tree.commit_all(repo.base, "step", KEEPING) == repo.base
    assert await can_be_found(repo, tip)
    assert await rests_at(repo, tree, repo.base)


async def test_a_branch_that_was_deleted_comes_back(repo: GitTrees) -> None:
    tree = await opened(repo)
    repo.detach_in(tree.path)
    repo.git("branch", "-D", SCOPE.branch, cwd=tree.path)
    (tree.path / "one.txt").write_bytes(b"1")
    head = await tree.commit_all(repo.base, "step", KEEPING)
    assert head != repo.base
    assert await rests_at(repo, tree, head)


async def test_a_tree_without_any_commit_is_brought_back(repo: GitTrees) -> None:
    tree = await opened(repo)
    repo.git("checkout", "--quiet", "--orphan", "void", cwd=tree.path)
    repo.git("rm", "-rfq", ".", cwd=tree.path)
    (tree.path / "one.txt").write_bytes(b"only")
    await tree.restore(repo.base, KEEPING)
    assert b"only" in await kept_contents(repo)
    assert await rests_at(repo, tree, repo.base)


async def test_a_step_that_ends_on_an_unborn_branch_is_one_commit(repo: GitTrees) -> None:
    tree = await opened(repo)
    repo.git("checkout", "--quiet", "--orphan", "void", cwd=tree.path)
    (tree.path / "calc.py").write_bytes(b"fixed")
    head = await tree.commit_all(repo.base, "step", KEEPING)
    assert await repo.history.between(repo.base, head) == (f"{head} step",)
    assert await rests_at(repo, tree, head)


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
async def test_a_change_that_the_index_hides_is_committed(repo: GitTrees, flag: str) -> None:
    tree = await opened(repo)
    repo.git("update-index", flag, "calc.py", cwd=tree.path)
    (tree.path / "calc.py").write_bytes(b"hidden")
    assert not (await tree.state()).clean
    head = await tree.commit_all(repo.base, "step", KEEPING)
    assert (await repo.history.files(head))["calc.py"] == b"hidden"
    assert await rests_at(repo, tree, head)


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
async def test_a_change_that_the_index_hides_is_kept(repo: GitTrees, flag: str) -> None:
    tree = await opened(repo)
    repo.git("update-index", flag, "calc.py", cwd=tree.path)
    (tree.path / "calc.py").write_bytes(b"hidden")
    await tree.restore(repo.base, KEEPING)
    assert b"hidden" in await kept_contents(repo)
    assert (tree.path / "calc.py").read_bytes() == BASE_FILES["calc.py"]
    assert await rests_at(repo, tree, repo.base)


async def test_a_file_that_was_only_announced_is_committed(repo: GitTrees) -> None:
    tree = await opened(repo)
    (tree.path / "new.txt").write_bytes(b"new")
    repo.git("add", "--intent-to-add", "new.txt", cwd=tree.path)
    head = await tree.commit_all(repo.base, "step", KEEPING)
    assert (await repo.history.files(head))["new.txt"] == b"new"


@pytest.mark.parametrize("damage", [b"", b"junk", None])
async def test_a_broken_index_is_mended(repo: GitTrees, damage: bytes | None) -> None:
    tree = await opened(repo)
    (tree.path / "calc.py").write_bytes(b"fixed")
    index = Path(repo.git("rev-parse", "--absolute-git-dir", cwd=tree.path)) / "index"
    if damage is None:
        index.unlink()
    else:
        index.write_bytes(damage)
    assert not (await tree.state()).clean
    head = await tree.commit_all(repo.base, "step", KEEPING)
    assert await repo.history.files(head) == {**BASE_FILES, "calc.py": b"fixed"}
    assert await rests_at(repo, tree, head)


async def test_a_tracked_file_that_is_ignored_stays_when_the_index_is_gone(
    repo: GitTrees,
) -> None:
    tree = await opened(repo)
    start = repo.commit_ignored_in(tree.path, "data.ignored", b"data", "data")
    Path(repo.git("rev-parse", "--absolute-git-dir", cwd=tree.path), "index").unlink()
    assert await tree.commit_all(start, "step", KEEPING) == start


async def test_what_the_agent_ignored_itself_is_kept(repo: GitTrees) -> None:
    tree = await opened(repo)
    (tree.path / ".gitignore").write_text("*.log\n")
    (tree.path / "out.log").write_bytes(b"output")
    assert await tree.restore(repo.base, KEEPING) != ()
    assert b"output" in await kept_contents(repo)
    assert files_below(tree.path) == BASE_FILES
    assert await rests_at(repo, tree, repo.base)


async def test_what_the_agent_no_longer_ignores_is_kept_and_stays(repo: GitTrees) -> None:
    (repo.checkout / ".gitignore").write_text(".env\n")
    base = repo.commit_in(repo.checkout, "ignore")
    tree = await opened(repo)
    await tree.restore(base, KEEPING)
    (tree.path / ".env").write_bytes(b"secret")
    (tree.path / ".gitignore").write_text("")
    await tree.restore(base, KEEPING)
    assert b"secret" in await kept_contents(repo)
    assert (tree.path / ".env").read_bytes() == b"secret"
    assert await rests_at(repo, tree, base)


async def test_an_ignored_file_where_the_target_has_a_folder_is_kept(repo: GitTrees) -> None:
    tree = await opened(repo)
    target = repo.commit_ignored_in(tree.path, "a.ignored/b.txt", b"tracked", "deep")
    await tree.restore(repo.base, KEEPING)
    (tree.path / "a.ignored").write_bytes(b"precious")
    await tree.restore(target, KEEPING)
    assert b"precious" in await kept_contents(repo)
    assert await rests_at(repo, tree, target)


async def test_what_a_kept_commit_holds_is_not_moved_as_well(repo: GitTrees) -> None:
    tree = await opened(repo)
    (tree.path / "docs" / "notes.txt").unlink()
    (tree.path / "docs").rmdir()
    (tree.path / "docs").write_bytes(b"a file now")
    (tree.path / "calc.py").unlink()
    (tree.path / "calc.py").mkdir()
    await tree.restore(repo.base, KEEPING)
    (item,) = await repo.kept.items()
    assert item.folder is None
    assert await rests_at(repo, tree, repo.base)


async def test_a_repository_that_the_agent_committed_is_kept(repo: GitTrees) -> None:
    tree = await opened(repo)
    repo.nest_in(tree.path, "inner", with_commit=True)
    repo.git("add", "--all", cwd=tree.path)
    repo.git("commit", "--quiet", "-m", "inner", cwd=tree.path)
    await tree.restore(repo.base, KEEPING)
    assert b"nested" in await kept_contents(repo)
    assert await rests_at(repo, tree, repo.base)


async def test_a_nested_repository_where_the_target_has_files_is_kept_whole(
    repo: GitTrees,
) -> None:
    tree = await opened(repo)
    (tree.path / "inner").mkdir()
    (tree.path / "inner" / "tracked.txt").write_bytes(b"tracked")
    target = await tree.commit_all(repo.base, "inner", KEEPING)
    await tree.restore(repo.base, KEEPING)
    repo.nest_in(tree.path, "inner", with_commit=True)
    await tree.restore(target, KEEPING)
    folders = [item.folder for item in await repo.kept.items() if item.folder]
    assert [files_below(folder / "inner") for folder in folders] == [{"inside.txt": b"nested"}]
    assert (folders[0] / "inner" / ".git").is_dir()
    assert await rests_at(repo, tree, target)


async def test_the_files_of_a_nested_repository_are_committed(repo: GitTrees) -> None:
    tree = await opened(repo)
    repo.nest_in(tree.path, "inner", with_commit=True)
    repo.nest_in(tree.path / "inner", "deeper", with_commit=False)
    head = await tree.commit_all(repo.base, "step", KEEPING)
    files = await repo.history.files(head)
    assert files["inner/inside.txt"] == files["inner/deeper/inside.txt"] == b"nested"
    kept = [item.folder for item in await repo.kept.items() if item.folder]
    assert any((folder / "inner" / ".git" / "HEAD").is_file() for folder in kept)


async def test_a_tree_inside_the_tree_is_moved_away_whole(repo: GitTrees) -> None:
    tree = await opened(repo)
    repo.git("worktree", "add", "--quiet", "-b", "side", "inner", cwd=tree.path)
    (tree.path / "inner" / "new.txt").write_bytes(b"inner work")
    (tree.path / "new.txt").write_bytes(b"new")
    head = await tree.commit_all(repo.base, "step", KEEPING)
    assert await repo.history.files(head) == {**BASE_FILES, "new.txt": b"new"}
    assert b"inner work" in await kept_contents(repo)
    assert await rests_at(repo, tree, head)


def _conflict(repo: GitTrees, tree: Path, how: str) -> None:
    """Stops git in the middle of something, with a conflict in calc.py."""
    repo.branch_in(tree, "theirs")
    (tree / "calc.py").write_bytes(b"theirs\n")
    repo.commit_in(tree, "theirs")
    repo.switch_in(tree, SCOPE.branch)
    (tree / "calc.py").write_bytes(b"ours\n")
    repo.commit_in(tree, "ours")
    with pytest.raises(AssertionError):
        repo.git(*how.split(), "theirs", cwd=tree)
    assert b"<<<<<<<" in (tree / "calc.py").read_bytes()


@pytest.mark.parametrize("how", ["merge", "cherry-pick", "rebase", "rebase --apply"])
async def test_a_tree_in_the_middle_of_something_is_brought_back(repo: GitTrees, how: str) -> None:
    tree = await opened(repo)
    _conflict(repo, tree.path, how)
    ours = await repo.history.tip(SCOPE.branch)
    assert ours is not None
    assert not (await tree.state()).clean
    marked = (tree.path / "calc.py").read_bytes()
    await tree.restore(repo.base, KEEPING)
    assert marked in await kept_contents(repo)
    assert await can_be_found(repo, ours)
    assert await rests_at(repo, tree, repo.base)
    assert "rebase" not in repo.git("status", cwd=tree.path)


@pytest.mark.parametrize("how", ["merge", "cherry-pick", "rebase", "rebase --apply"])
async def test_a_step_that_ends_in_the_middle_of_something_is_committed(
    repo: GitTrees, how: str
) -> None:
    tree = await opened(repo)
    _conflict(repo, tree.path, how)
    (tree.path / "calc.py").write_bytes(b"resolved\n")
    ours = await repo.history.tip(SCOPE.branch)
    assert ours is not None
    head = await tree.commit_all(repo.base, "step", KEEPING)
    assert (await repo.history.files(head))["calc.py"] == b"resolved\n"
    assert await repo.history.message(head) == "step"
    assert await can_be_found(repo, ours, SCOPE.branch)
    assert await rests_at(repo, tree, head)
    assert "rebas" not in repo.git("status", cwd=tree.path)


async def test_a_merge_without_a_change_is_concluded(repo: GitTrees) -> None:
    tree = await opened(repo)
    theirs = repo.git("commit-tree", f"{repo.base}^{{tree}}", "-p", repo.base, "-m", "theirs")
    repo.git("merge", "--no-commit", "--no-ff", "-s", "ours", theirs, cwd=tree.path)
    assert not (await tree.state()).clean
    head = await tree.commit_all(repo.base, "merge", KEEPING)
    assert repo.git("rev-parse", f"{head}^@").split() == [repo.base, theirs]
    assert await rests_at(repo, tree, head)


async def test_what_a_rebase_had_stashed_can_be_found(repo: GitTrees) -> None:
    tree = await opened(repo)
    _conflict(repo, tree.path, "merge")
    repo.git("merge", "--abort", cwd=tree.path)
    (tree.path / "docs" / "notes.txt").write_bytes(b"typed")
    with pytest.raises(AssertionError):
        repo.git("rebase", "--autostash", "theirs", cwd=tree.path)
    await tree.restore(repo.base, KEEPING)
    assert b"typed" in await kept_contents(repo)


async def test_a_lock_that_a_dead_git_left_is_removed(repo: GitTrees) -> None:
    tree = await opened(repo)
    git_dir = Path(repo.git("rev-parse", "--absolute-git-dir", cwd=tree.path))
    (git_dir / "index.lock").touch()
    (git_dir / "HEAD.lock").touch()
    (repo.repository.common_dir / "refs/heads" / f"{SCOPE.branch}.lock").touch()
    (tree.path / "new.txt").write_bytes(b"new")
    head = await tree.commit_all(repo.base, "step", KEEPING)
    assert await rests_at(repo, tree, head)


async def test_polling_takes_no_lock(repo: GitTrees) -> None:
    """Scenario C9."""
    tree = await opened(repo)
    index = Path(repo.git("rev-parse", "--absolute-git-dir", cwd=tree.path)) / "index"
    os.utime(tree.path / "calc.py", (1, 1))
    before = index.read_bytes()
    assert (await tree.state()).clean
    assert index.read_bytes() == before
    index.with_name("index.lock").touch()
    assert (await tree.state()).clean


async def test_nothing_is_reset_when_keeping_fails(repo: GitTrees) -> None:
    tree = await opened(repo)
    (tree.path / "new.txt").write_bytes(b"new")
    refs = repo.repository.common_dir / "refs"
    (refs / "agl").write_text("in the way of refs/agl/kept\n")
    with pytest.raises(UpstreamError):
        await tree.restore(repo.base, KEEPING)
    assert (tree.path / "new.txt").read_bytes() == b"new"


async def test_the_lock_of_a_git_that_was_killed_keeps_nothing_from_being_kept(
    repo: GitTrees,
) -> None:
    tree = await opened(repo)
    (tree.path / "new.txt").write_bytes(b"new")
    kept = repo.repository.common_dir / "refs" / "agl" / "kept" / KEEPING.scope.label
    kept.mkdir(parents=True)
    for second in range(60):
        when = datetime.now(UTC) + timedelta(seconds=second)
        (kept / f"{when:%Y%m%dT%H%M%SZ}-{KEEPING.scope.tree}-1.lock").touch()
    assert await tree.restore(repo.base, KEEPING) != ()
    assert b"new" in await kept_contents(repo)


async def test_an_executable_bit_lands_and_ignored_modes_are_no_change(repo: GitTrees) -> None:
    tree = await opened(repo)
    (tree.path / "calc.py").chmod(0o755)
    head = await tree.commit_all(repo.base, "executable", KEEPING)
    assert repo.git("ls-tree", head, "calc.py").startswith("100755")
    repo.git("config", "core.fileMode", "false")
    (tree.path / "calc.py").chmod(0o644)
    assert (await tree.state()).clean


async def test_normalised_line_ends_end_clean(repo: GitTrees) -> None:
    (repo.checkout / ".gitattributes").write_text("* text=auto\n")
    base = repo.commit_in(repo.checkout, "normalise")
    tree = await opened(repo)
    await tree.restore(base, KEEPING)
    (tree.path / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    (tree.path / "calc.py").write_bytes(BASE_FILES["calc.py"].replace(b"\n", b"\r\n"))
    head = await tree.commit_all(base, "crlf", KEEPING)
    assert (await repo.history.files(head))["dos.txt"] == b"one\ntwo\n"
    assert await rests_at(repo, tree, head)


async def test_a_touched_line_end_alone_makes_no_commit(repo: GitTrees) -> None:
    (repo.checkout / ".gitattributes").write_text("* text=auto\n")
    base = repo.commit_in(repo.checkout, "normalise")
    tree = await opened(repo)
    await tree.restore(base, KEEPING)
    (tree.path / "calc.py").write_bytes(BASE_FILES["calc.py"].replace(b"\n", b"\r\n"))
    assert await tree.commit_all(base, "nothing", KEEPING) == base


async def test_names_that_are_not_utf_8_survive(repo: GitTrees) -> None:
    tree = await opened(repo)
    name = os.fsdecode(b"caf\xe9\n.txt")
    (tree.path / name).write_bytes(b"odd")
    head = await tree.commit_all(repo.base, "odd", KEEPING)
    assert (await repo.history.files(head))[name] == b"odd"
    await tree.restore(repo.base, KEEPING)
    assert await rests_at(repo, tree, repo.base)


async def _end(tree: GitWorkspace, ending: str, at: str) -> None:
    if ending == "commit":
        await tree.commit_all(at, "step", KEEPING)
    else:
        await tree.restore(at, KEEPING)


@pytest.mark.parametrize("ending", ["commit", "restore"])
@pytest.mark.parametrize("how", ["symbolic-ref", "link"])
async def test_a_branch_that_leads_to_another_is_refused(
    repo: GitTrees, how: str, ending: str
) -> None:
    tree = await opened(repo)
    ref = repo.repository.common_dir / "refs" / "heads" / SCOPE.branch
    if how == "link":
        ref.unlink()
        ref.symlink_to("refs/heads/main")
    else:
        repo.git("symbolic-ref", f"refs/heads/{SCOPE.branch}", "refs/heads/main")
    (tree.path / "new.txt").write_bytes(b"new")
    with pytest.raises(StateError, match="'refs/heads/main'") as refused:
        await _end(tree, ending, repo.base)
    assert (tree.path / "new.txt").read_bytes() == b"new"
    assert await repo.history.tip("main") == repo.base
    words = shlex.split(str(refused.value).split("`")[1])
    repo.git(*words[1:])
    head = await tree.commit_all(repo.base, "step", KEEPING)
    assert head != repo.base
    assert await repo.history.tip("main") == repo.base
    assert await rests_at(repo, tree, head)


@pytest.mark.parametrize("name", ["gitdir", "commondir"])
async def test_a_tree_whose_registration_points_elsewhere_is_refused(
    repo: GitTrees, name: str
) -> None:
    tree = await opened(repo)
    git_dir = Path(repo.git("rev-parse", "--absolute-git-dir", cwd=tree.path))
    (git_dir / name).write_text(f"{repo.place}/elsewhere/.git\n")
    with pytest.raises(TreeVanished):
        await tree.state()


async def test_a_tree_that_another_repository_took_over_is_refused(repo: GitTrees) -> None:
    tree = await opened(repo)
    (tree.path / ".git").unlink()
    repo.git("init", "--quiet", cwd=tree.path)
    with pytest.raises(TreeVanished):
        await tree.state()


async def test_a_tree_without_its_mark_never_reaches_the_repository_around_it(
    tmp_path: Path,
) -> None:
    repo = GitTrees(tmp_path)
    repo.git("init", "--quiet", cwd=tmp_path)
    tree = await opened(repo)
    (tree.path / ".git").unlink()
    (tree.path / "calc.py").write_bytes(b"typed")
    with pytest.raises(TreeVanished):
        await tree.restore(repo.base, KEEPING)
    assert (tree.path / "calc.py").read_bytes() == b"typed"


OWN_MOVES = {
    "by its plumbing": ["git update-ref HEAD $(git commit-tree -p HEAD -m own HEAD^{tree})"],
    "by the branch's name": [
        "git update-ref refs/heads/$B $(git commit-tree -p HEAD -m own HEAD^{tree})"
    ],
    "detached": [
        "git checkout -q --detach",
        "git commit -q --allow-empty -m own",
        "git update-ref refs/heads/$B HEAD",
        "git checkout -q $B",
    ],
    "from a branch of its own": [
        "git checkout -q -b tmp",
        "git commit -q --allow-empty -m own",
        "git branch -f $B tmp",
        "git checkout -q $B",
    ],
    "with a stash and a rebase": [
        "git commit -q --allow-empty -m own",
        "echo x > x",
        "git stash -q -u",
        "git rebase -q --keep-empty --force-rebase HEAD~1",
        "git stash pop -q",
    ],
    "without logs": ["git commit -q --allow-empty -m own", "git reflog expire --expire=now HEAD"],
}


@pytest.mark.parametrize("how", list(OWN_MOVES))
async def test_what_the_agent_moves_in_its_own_tree_is_its_own(repo: GitTrees, how: str) -> None:
    tree = await repo.provider.open(SCOPE, repo.base)
    script = "\n".join(["set -e", f"B={SCOPE.branch}", *OWN_MOVES[how]])
    subprocess.run(["sh", "-c", script], cwd=tree.path, env=repo.environ, check=True)
    (tree.path / "mine.txt").write_bytes(b"mine")
    head = await tree.commit_all(repo.base, "step", KEEPING)
    told = await repo.history.between(repo.base, head)
    assert [one.split(" ", 1)[1] for one in told] == ["step", "own"]


async def test_a_move_from_outside_is_seen_under_a_stash_of_the_agents(repo: GitTrees) -> None:
    """A stash writes a line into HEAD's log that moves nothing."""
    tree, child = [await repo.provider.open(scope, repo.base) for scope in (SCOPE, CHILD)]
    foreign = repo.commit_in(child.path, "theirs")
    repo.git("update-ref", f"refs/heads/{SCOPE.branch}", foreign, cwd=child.path)
    (tree.path / "calc.py").write_bytes(b"mine")
    repo.stash_in(tree.path)
    with pytest.raises(BranchMoved):
        await tree.commit_all(repo.base, "step", KEEPING)
