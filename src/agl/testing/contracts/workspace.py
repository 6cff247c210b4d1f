"""What every `WorkspaceProvider` and its `Workspace`s promise."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from agl.ports.errors import BranchMoved, StateError, TreeVanished, UpstreamError
from agl.ports.ids import Label, Scope
from agl.ports.workspace import Workspace
from agl.testing.contracts.trees import (
    BASE_FILES,
    CHILD,
    KEEPING,
    SCOPE,
    TreesUnderTest,
    can_be_found,
    files_below,
    kept_contents,
)

ODD_NAMES = [
    "with space",
    "qu'ote\"s",
    "ünïcode-漢字",
    "new\nline",
    "tab\there",
    "-dash",
    "a\\b",
    ":x",
]


def _replace_by_a_link(tree: Path) -> None:
    (tree / "calc.py").unlink()
    (tree / "calc.py").symlink_to("docs/notes.txt")


Change = Callable[[Path], object]
CHANGES: dict[str, Change] = {
    "modified": lambda tree: (tree / "calc.py").write_bytes(b"changed\n"),
    "removed": lambda tree: (tree / "calc.py").unlink(),
    "untracked": lambda tree: (tree / "new.txt").write_bytes(b"new\n"),
    "executable": lambda tree: (tree / "calc.py").chmod(0o755),
    "linked": lambda tree: (tree / "link").symlink_to("calc.py"),
    "replaced by a link": _replace_by_a_link,
}


async def _opened(repo: TreesUnderTest, scope: Scope = SCOPE) -> Workspace:
    return await repo.provider.open(scope, repo.base)


async def _assert_rests_at(repo: TreesUnderTest, tree: Workspace, commit: str) -> None:
    """On its branch, clean, and with exactly the commit's files."""
    state = await tree.state()
    assert (state.head, state.attached, state.clean) == (commit, True, True)
    assert await repo.history.tip(tree.scope.branch) == commit
    assert files_below(tree.path) == await repo.history.files(commit)


class WorkspaceContract:
    """Subclass it and give the fixture `repo`."""

    @pytest.fixture
    def repo(self, tmp_path: Path) -> TreesUnderTest:
        raise NotImplementedError

    # state

    async def test_a_new_tree_rests_on_its_branch_at_its_start(self, repo: TreesUnderTest) -> None:
        await _assert_rests_at(repo, await _opened(repo), repo.base)

    @pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
    async def test_a_change_is_seen(self, repo: TreesUnderTest, change: Change) -> None:
        tree = await _opened(repo)
        change(tree.path)
        assert not (await tree.state()).clean

    @pytest.mark.parametrize("with_commit", [True, False])
    async def test_a_nested_repository_is_a_change(
        self, repo: TreesUnderTest, with_commit: bool
    ) -> None:
        tree = await _opened(repo)
        repo.nest_in(tree.path, "inner", with_commit=with_commit)
        assert not (await tree.state()).clean

    async def test_an_ignored_file_is_no_change(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        (tree.path / "cache.ignored").write_bytes(b"cache")
        assert (await tree.state()).clean

    async def test_a_detached_head_is_seen(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        repo.detach_in(tree.path)
        state = await tree.state()
        assert (state.head, state.attached) == (repo.base, False)

    async def test_a_head_on_another_branch_is_not_attached(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        repo.branch_in(tree.path, "feature")
        assert not (await tree.state()).attached

    # commit_all

    async def test_with_nothing_dirty_no_commit_is_made(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        assert await tree.commit_all(repo.base, "nothing", KEEPING) == repo.base
        await _assert_rests_at(repo, tree, repo.base)

    async def test_all_that_is_dirty_becomes_one_commit(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        (tree.path / "calc.py").write_bytes(b"fixed\r\n")
        (tree.path / "docs" / "notes.txt").unlink()
        (tree.path / "src" / "deep").mkdir(parents=True)
        (tree.path / "src" / "deep" / "new.bin").write_bytes(b"\0\xff")
        (tree.path / "empty").write_bytes(b"")
        head = await tree.commit_all(repo.base, "fix: the sum\n\nand more\n", KEEPING)
        assert await repo.history.between(repo.base, head) == (f"{head} fix: the sum",)
        assert await repo.history.message(head) == "fix: the sum\n\nand more"
        assert await repo.history.files(head) == {
            "calc.py": b"fixed\r\n",
            "src/deep/new.bin": b"\0\xff",
            "empty": b"",
        }
        await _assert_rests_at(repo, tree, head)
        assert await repo.kept.items() == ()

    @pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
    async def test_each_kind_of_change_is_committed(
        self, repo: TreesUnderTest, change: Change
    ) -> None:
        tree = await _opened(repo)
        change(tree.path)
        head = await tree.commit_all(repo.base, "change", KEEPING)
        assert head != repo.base
        await _assert_rests_at(repo, tree, head)

    @pytest.mark.parametrize("name", ODD_NAMES)
    async def test_odd_names_survive(self, repo: TreesUnderTest, name: str) -> None:
        tree = await _opened(repo)
        (tree.path / name).write_bytes(b"odd")
        head = await tree.commit_all(repo.base, "odd", KEEPING)
        assert (await repo.history.files(head))[name] == b"odd"
        await tree.restore(repo.base, KEEPING)
        assert not (tree.path / name).exists()
        await tree.restore(head, KEEPING)
        assert (tree.path / name).read_bytes() == b"odd"

    async def test_links_and_executable_bits_survive(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        (tree.path / "run").write_bytes(b"#!/bin/sh\n")
        (tree.path / "run").chmod(0o755)
        (tree.path / "to-file").symlink_to("calc.py")
        (tree.path / "to-folder").symlink_to("docs")
        (tree.path / "to-nothing").symlink_to("/not/there")
        head = await tree.commit_all(repo.base, "kinds", KEEPING)
        await tree.restore(repo.base, KEEPING)
        await tree.restore(head, KEEPING)
        assert os.access(tree.path / "run", os.X_OK)
        assert not os.access(tree.path / "calc.py", os.X_OK)
        links = {
            path.name: str(path.readlink()) for path in tree.path.iterdir() if path.is_symlink()
        }
        assert links == {"to-file": "calc.py", "to-folder": "docs", "to-nothing": "/not/there"}
        await _assert_rests_at(repo, tree, head)

    async def test_ignored_files_are_not_committed_and_stay(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        (tree.path / "env.ignored").write_bytes(b"secret")
        (tree.path / "new.txt").write_bytes(b"new")
        head = await tree.commit_all(repo.base, "new", KEEPING)
        assert "env.ignored" not in await repo.history.files(head)
        assert (tree.path / "env.ignored").read_bytes() == b"secret"

    async def test_commits_of_the_agent_are_enough(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        (tree.path / "one.txt").write_bytes(b"1")
        one = repo.commit_in(tree.path, "one")
        assert await tree.commit_all(repo.base, "rest", KEEPING) == one
        await _assert_rests_at(repo, tree, one)

    async def test_commits_of_the_agent_stay_and_the_rest_becomes_one_more(
        self, repo: TreesUnderTest
    ) -> None:
        tree = await _opened(repo)
        (tree.path / "one.txt").write_bytes(b"1")
        one = repo.commit_in(tree.path, "one")
        (tree.path / "two.txt").write_bytes(b"2")
        head = await tree.commit_all(repo.base, "rest", KEEPING)
        assert await repo.history.between(repo.base, head) == (f"{head} rest", f"{one} one")
        await _assert_rests_at(repo, tree, head)

    async def test_an_amended_start_becomes_one_commit_on_the_start(
        self, repo: TreesUnderTest
    ) -> None:
        tree = await _opened(repo)
        (tree.path / "calc.py").write_bytes(b"amended")
        tip = repo.amend_in(tree.path, "amended")
        (tree.path / "late.txt").write_bytes(b"late")
        head = await tree.commit_all(repo.base, "step", KEEPING)
        assert await repo.history.between(repo.base, head) == (f"{head} step",)
        assert await repo.history.files(head) == {
            **BASE_FILES,
            "calc.py": b"amended",
            "late.txt": b"late",
        }
        assert await can_be_found(repo, tip)
        await _assert_rests_at(repo, tree, head)

    async def test_a_commit_that_the_agent_amended_is_kept(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        (tree.path / "one.txt").write_bytes(b"first words")
        first = repo.commit_in(tree.path, "one")
        (tree.path / "one.txt").write_bytes(b"second words")
        second = repo.amend_in(tree.path, "one")
        assert await tree.commit_all(repo.base, "step", KEEPING) == second
        assert await can_be_found(repo, first)

    async def test_a_start_that_was_reset_and_made_again_needs_no_commit(
        self, repo: TreesUnderTest
    ) -> None:
        tree = await _opened(repo)
        (tree.path / "one.txt").write_bytes(b"one")
        start = await tree.commit_all(repo.base, "one", KEEPING)
        repo.reset_in(tree.path, repo.base)
        (tree.path / "one.txt").write_bytes(b"one")
        assert await tree.commit_all(start, "step", KEEPING) == start
        await _assert_rests_at(repo, tree, start)

    async def test_a_reset_below_the_start_becomes_one_commit_on_the_start(
        self, repo: TreesUnderTest
    ) -> None:
        tree = await _opened(repo)
        (tree.path / "first.txt").write_bytes(b"first")
        start = await tree.commit_all(repo.base, "first", KEEPING)
        repo.reset_in(tree.path, repo.base)
        (tree.path / "other.txt").write_bytes(b"other")
        tip = repo.commit_in(tree.path, "other")
        head = await tree.commit_all(start, "step", KEEPING)
        assert await repo.history.between(start, head) == (f"{head} step",)
        assert await repo.history.files(head) == {**BASE_FILES, "other.txt": b"other"}
        assert await can_be_found(repo, tip)
        await _assert_rests_at(repo, tree, head)

    async def test_what_was_done_on_a_detached_head_is_committed(
        self, repo: TreesUnderTest
    ) -> None:
        tree = await _opened(repo)
        repo.detach_in(tree.path)
        (tree.path / "one.txt").write_bytes(b"1")
        tip = repo.commit_in(tree.path, "one")
        (tree.path / "two.txt").write_bytes(b"2")
        head = await tree.commit_all(repo.base, "step", KEEPING)
        assert await repo.history.between(repo.base, head) == (f"{head} step",)
        assert await repo.history.files(head) == {
            **BASE_FILES,
            "one.txt": b"1",
            "two.txt": b"2",
        }
        assert await can_be_found(repo, tip, SCOPE.branch)
        await _assert_rests_at(repo, tree, head)

    async def test_what_was_done_on_another_branch_is_committed(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        repo.branch_in(tree.path, "feature")
        (tree.path / "one.txt").write_bytes(b"1")
        tip = repo.commit_in(tree.path, "one")
        head = await tree.commit_all(repo.base, "step", KEEPING)
        assert await repo.history.files(head) == {**BASE_FILES, "one.txt": b"1"}
        assert await repo.history.tip("feature") == tip
        await _assert_rests_at(repo, tree, head)

    async def test_what_the_branch_held_is_kept_when_the_head_left_it(
        self, repo: TreesUnderTest
    ) -> None:
        tree = await _opened(repo)
        (tree.path / "one.txt").write_bytes(b"1")
        left = repo.commit_in(tree.path, "one")
        repo.detach_in(tree.path)
        repo.reset_in(tree.path, repo.base)
        (tree.path / "two.txt").write_bytes(b"2")
        head = await tree.commit_all(repo.base, "step", KEEPING)
        assert await can_be_found(repo, left)
        await _assert_rests_at(repo, tree, head)

    @pytest.mark.parametrize("goes_on", [False, True])
    async def test_a_branch_that_was_moved_from_outside_is_not_committed_on(
        self, repo: TreesUnderTest, goes_on: bool
    ) -> None:
        tree, child = await _opened(repo), await _opened(repo, CHILD)
        (child.path / "theirs.txt").write_bytes(b"theirs")
        foreign = repo.commit_in(child.path, "theirs")
        (tree.path / "mine.txt").write_bytes(b"mine")
        repo.move_branch(SCOPE.branch, foreign)
        if goes_on:
            repo.commit_in(tree.path, "mine")
        tip = await repo.history.tip(SCOPE.branch)
        with pytest.raises(BranchMoved, match=foreign):
            await tree.commit_all(repo.base, "step", KEEPING)
        assert await repo.history.tip(SCOPE.branch) == tip
        assert (tree.path / "mine.txt").read_bytes() == b"mine"
        await tree.restore(repo.base, KEEPING)
        await _assert_rests_at(repo, tree, repo.base)
        assert b"mine" in await kept_contents(repo)
        assert await can_be_found(repo, foreign, CHILD.branch)
        (tree.path / "mine.txt").write_bytes(b"mine")
        head = await tree.commit_all(repo.base, "step", KEEPING)
        assert await repo.history.between(repo.base, head) == (f"{head} step",)

    async def test_a_branch_that_was_put_back_from_outside_is_committed_on(
        self, repo: TreesUnderTest
    ) -> None:
        tree, child = await _opened(repo), await _opened(repo, CHILD)
        repo.move_branch(SCOPE.branch, repo.commit_in(child.path, "theirs"))
        repo.move_branch(SCOPE.branch, repo.base)
        (tree.path / "mine.txt").write_bytes(b"mine")
        head = await tree.commit_all(repo.base, "step", KEEPING)
        assert await repo.history.between(repo.base, head) == (f"{head} step",)

    @pytest.mark.parametrize("with_commit", [True, False])
    async def test_a_nested_repository_outlives_the_commit(
        self, repo: TreesUnderTest, with_commit: bool
    ) -> None:
        tree = await _opened(repo)
        repo.nest_in(tree.path, "inner", with_commit=with_commit)
        (tree.path / "new.txt").write_bytes(b"new")
        head = await tree.commit_all(repo.base, "step", KEEPING)
        assert (await repo.history.files(head))["new.txt"] == b"new"
        assert (await tree.state()).clean
        await tree.restore(repo.base, KEEPING)
        assert b"nested" in await kept_contents(repo)

    async def test_repositories_nested_in_each_other_outlive_the_commit(
        self, repo: TreesUnderTest
    ) -> None:
        tree = await _opened(repo)
        repo.nest_in(tree.path, "inner", with_commit=False)
        repo.nest_in(tree.path / "inner", "deeper", with_commit=False)
        (tree.path / "inner" / "deeper" / "inside.txt").write_bytes(b"deeper")
        await tree.commit_all(repo.base, "step", KEEPING)
        assert (await tree.state()).clean
        await tree.restore(repo.base, KEEPING)
        assert {b"nested", b"deeper"} <= await kept_contents(repo)

    # restore

    async def test_nothing_in_the_way_keeps_nothing(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        assert await tree.restore(repo.base, KEEPING) == ()
        assert await repo.kept.items() == ()

    async def test_all_that_is_dirty_is_kept(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        (tree.path / "calc.py").write_bytes(b"half")
        (tree.path / "docs" / "notes.txt").unlink()
        (tree.path / "new").mkdir()
        (tree.path / "new" / "file.txt").write_bytes(b"new")
        (item,) = await tree.restore(repo.base, KEEPING)
        assert item.commit is not None
        assert await repo.history.files(item.commit) == {
            "calc.py": b"half",
            "new/file.txt": b"new",
        }
        assert await repo.history.is_ancestor(repo.base, item.commit)
        assert await repo.kept.items() == (item,)
        assert not (tree.path / "new").exists()
        await _assert_rests_at(repo, tree, repo.base)

    async def test_all_that_was_kept_is_returned(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        (tree.path / "one.txt").write_bytes(b"1")
        tip = repo.commit_in(tree.path, "one")
        repo.reset_in(tree.path, repo.base)
        (tree.path / "new.txt").write_bytes(b"new")
        repo.nest_in(tree.path, "inner", with_commit=False)
        returned = await tree.restore(repo.base, KEEPING)
        assert [item.commit is None for item in returned] == [False, False, True]
        assert tip in {item.commit for item in returned}
        assert {item.name for item in returned} == {item.name for item in await repo.kept.items()}

    async def test_what_is_kept_says_whose_and_why(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        (tree.path / "new.txt").write_bytes(b"new")
        (item,) = await tree.restore(repo.base, KEEPING)
        assert (item.label, item.namespace) == (SCOPE.label, SCOPE.tree)
        assert item.why == KEEPING.why

    async def test_commits_that_the_target_lacks_are_kept(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        (tree.path / "one.txt").write_bytes(b"1")
        tip = repo.commit_in(tree.path, "one")
        assert len(await tree.restore(repo.base, KEEPING)) == 1
        assert await can_be_found(repo, tip)
        assert len(await repo.kept.items()) == 1
        await _assert_rests_at(repo, tree, repo.base)

    async def test_commits_that_a_person_made_on_the_branch_elsewhere_are_kept(
        self, repo: TreesUnderTest
    ) -> None:
        tree = await _opened(repo)
        await tree.detach()
        repo.switch_in(repo.checkout, SCOPE.branch)
        (repo.checkout / "one.txt").write_bytes(b"1")
        tip = repo.commit_in(repo.checkout, "one")
        repo.switch_in(repo.checkout, "main")
        await tree.restore(repo.base, KEEPING)
        assert await can_be_found(repo, tip)
        await _assert_rests_at(repo, tree, repo.base)

    async def test_commits_of_a_detached_head_are_kept_and_so_is_the_branch(
        self, repo: TreesUnderTest
    ) -> None:
        tree = await _opened(repo)
        (tree.path / "one.txt").write_bytes(b"1")
        one = repo.commit_in(tree.path, "one")
        repo.detach_in(tree.path)
        repo.reset_in(tree.path, repo.base)
        (tree.path / "two.txt").write_bytes(b"2")
        two = repo.commit_in(tree.path, "two")
        await tree.restore(repo.base, KEEPING)
        assert await can_be_found(repo, one)
        assert await can_be_found(repo, two)
        await _assert_rests_at(repo, tree, repo.base)

    async def test_a_commit_that_the_agent_reset_away_is_kept(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        (tree.path / "one.txt").write_bytes(b"1")
        tip = repo.commit_in(tree.path, "one")
        repo.reset_in(tree.path, repo.base)
        (item,) = await tree.restore(repo.base, KEEPING)
        assert item.commit == tip

    async def test_the_commit_of_the_last_step_is_kept_when_the_agent_reset_it_away(
        self, repo: TreesUnderTest
    ) -> None:
        tree = await _opened(repo)
        (tree.path / "one.txt").write_bytes(b"1")
        head = await tree.commit_all(repo.base, "one", KEEPING)
        repo.reset_in(tree.path, repo.base)
        await tree.restore(repo.base, KEEPING)
        assert await can_be_found(repo, head)

    async def test_a_commit_that_was_safe_before_is_kept_when_it_no_longer_is(
        self, repo: TreesUnderTest
    ) -> None:
        tree = await _opened(repo)
        (tree.path / "one.txt").write_bytes(b"1")
        head = await tree.commit_all(repo.base, "one", KEEPING)
        repo.detach_in(tree.path)
        await tree.restore(head, KEEPING)
        repo.reset_in(tree.path, repo.base)
        await tree.restore(repo.base, KEEPING)
        assert await can_be_found(repo, head)

    async def test_commits_that_another_branch_holds_are_not_kept(
        self, repo: TreesUnderTest
    ) -> None:
        tree = await _opened(repo)
        repo.branch_in(tree.path, "feature")
        (tree.path / "one.txt").write_bytes(b"1")
        repo.commit_in(tree.path, "one")
        assert await tree.restore(repo.base, KEEPING) == ()
        await _assert_rests_at(repo, tree, repo.base)

    async def test_a_branch_that_is_checked_out_elsewhere_is_not_moved(
        self, repo: TreesUnderTest
    ) -> None:
        tree = await _opened(repo)
        (tree.path / "one.txt").write_bytes(b"1")
        head = await tree.commit_all(repo.base, "one", KEEPING)
        await tree.detach()
        repo.switch_in(repo.checkout, SCOPE.branch)
        with pytest.raises(StateError, match=re.escape(str(repo.checkout))):
            await tree.restore(repo.base, KEEPING)
        assert await repo.history.tip(SCOPE.branch) == head

    async def test_a_move_forward_keeps_nothing(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        (tree.path / "calc.py").write_bytes(b"fixed")
        head = await tree.commit_all(repo.base, "step", KEEPING)
        repo.reset_in(tree.path, repo.base)
        assert await tree.restore(head, KEEPING) == ()
        assert await repo.kept.items() == ()
        await _assert_rests_at(repo, tree, head)

    async def test_equal_leftovers_are_kept_once(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        for _ in range(3):
            (tree.path / "new.txt").write_bytes(b"same")
            await tree.restore(repo.base, KEEPING)
        assert len(await repo.kept.items()) == 1
        (tree.path / "new.txt").write_bytes(b"other")
        await tree.restore(repo.base, KEEPING)
        assert len(await repo.kept.items()) == 2

    async def test_equal_files_on_other_commits_are_kept_again(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        tips = []
        for message in ("first", "second"):
            (tree.path / "new.txt").write_bytes(b"same")
            tips.append(repo.commit_in(tree.path, message))
            await tree.restore(repo.base, KEEPING)
        assert [await can_be_found(repo, tip) for tip in tips] == [True, True]

    async def test_ignored_files_are_left_alone(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        (tree.path / "docs" / "env.ignored").write_bytes(b"secret")
        (tree.path / "new.txt").write_bytes(b"new")
        await tree.restore(repo.base, KEEPING)
        assert (tree.path / "docs" / "env.ignored").read_bytes() == b"secret"
        assert not (tree.path / "new.txt").exists()

    async def test_an_ignored_file_where_the_target_has_one_is_kept(
        self, repo: TreesUnderTest
    ) -> None:
        tree = await _opened(repo)
        target = repo.commit_ignored_in(tree.path, "data.ignored", b"tracked", "data")
        await tree.restore(repo.base, KEEPING)
        (tree.path / "data.ignored").write_bytes(b"precious")
        await tree.restore(target, KEEPING)
        assert b"precious" in await kept_contents(repo)
        await _assert_rests_at(repo, tree, target)

    async def test_an_ignored_file_where_the_target_has_a_folder_is_kept(
        self, repo: TreesUnderTest
    ) -> None:
        tree = await _opened(repo)
        target = repo.commit_ignored_in(tree.path, "data.ignored/rows", b"tracked", "data")
        await tree.restore(repo.base, KEEPING)
        (tree.path / "data.ignored").write_bytes(b"precious")
        await tree.restore(target, KEEPING)
        assert b"precious" in await kept_contents(repo)
        await _assert_rests_at(repo, tree, target)

    async def test_an_ignored_folder_where_the_target_has_a_file_is_kept(
        self, repo: TreesUnderTest
    ) -> None:
        tree = await _opened(repo)
        target = repo.commit_ignored_in(tree.path, "data.ignored", b"tracked", "data")
        await tree.restore(repo.base, KEEPING)
        (tree.path / "data.ignored").mkdir()
        (tree.path / "data.ignored" / "rows").write_bytes(b"precious")
        await tree.restore(target, KEEPING)
        assert b"precious" in await kept_contents(repo)
        await _assert_rests_at(repo, tree, target)

    @pytest.mark.parametrize("with_commit", [True, False])
    async def test_a_nested_repository_is_moved_to_the_kept_folder(
        self, repo: TreesUnderTest, with_commit: bool
    ) -> None:
        tree = await _opened(repo)
        repo.nest_in(tree.path, "inner", with_commit=with_commit)
        assert await tree.restore(repo.base, KEEPING) != ()
        folders = [item.folder for item in await repo.kept.items() if item.folder is not None]
        inside = [found for folder in folders for found in folder.rglob("inside.txt")]
        assert [found.read_bytes() for found in inside] == [b"nested"]
        assert (inside[0].parent / ".git").is_dir()
        await _assert_rests_at(repo, tree, repo.base)

    @pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
    async def test_each_kind_of_change_is_undone(
        self, repo: TreesUnderTest, change: Change
    ) -> None:
        tree = await _opened(repo)
        change(tree.path)
        await tree.restore(repo.base, KEEPING)
        assert not (tree.path / "calc.py").is_symlink()
        assert not os.access(tree.path / "calc.py", os.X_OK)
        await _assert_rests_at(repo, tree, repo.base)

    async def test_a_pipe_is_passed_over(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        os.mkfifo(tree.path / "pipe")
        assert (await tree.state()).clean
        assert await tree.commit_all(repo.base, "step", KEEPING) == repo.base
        assert await tree.restore(repo.base, KEEPING) == ()

    async def test_a_file_and_a_folder_change_places(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        (tree.path / "calc.py").unlink()
        (tree.path / "calc.py").mkdir()
        (tree.path / "calc.py" / "inner.py").write_bytes(b"inner")
        shutil.rmtree(tree.path / "docs")
        (tree.path / "docs").symlink_to("calc.py")
        head = await tree.commit_all(repo.base, "places", KEEPING)
        await _assert_rests_at(repo, tree, head)
        await tree.restore(repo.base, KEEPING)
        await _assert_rests_at(repo, tree, repo.base)
        await tree.restore(head, KEEPING)
        await _assert_rests_at(repo, tree, head)

    async def test_a_detached_tree_is_brought_back_by_open_and_restore(
        self, repo: TreesUnderTest
    ) -> None:
        tree = await _opened(repo)
        (tree.path / "calc.py").write_bytes(b"fixed")
        head = await tree.commit_all(repo.base, "step", KEEPING)
        await tree.detach()
        state = await tree.state()
        assert (state.head, state.attached, state.clean) == (head, False, True)
        assert await repo.history.checked_out_at(SCOPE.branch) is None
        tree = await repo.another_provider().open(SCOPE, repo.base)
        assert await tree.restore(head, KEEPING) == ()
        await _assert_rests_at(repo, tree, head)

    async def test_detaching_forgets_no_commit(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        (tree.path / "one.txt").write_bytes(b"1")
        first = repo.commit_in(tree.path, "one")
        repo.reset_in(tree.path, repo.base)
        await tree.detach()
        await tree.restore(repo.base, KEEPING)
        assert await can_be_found(repo, first)

    async def test_a_child_moves_without_its_parent(self, repo: TreesUnderTest) -> None:
        parent, child = await _opened(repo), await _opened(repo, CHILD)
        (child.path / "calc.py").write_bytes(b"fixed")
        head = await child.commit_all(repo.base, "step", KEEPING)
        await _assert_rests_at(repo, child, head)
        await _assert_rests_at(repo, parent, repo.base)

    # a tree that is not there

    @pytest.mark.parametrize("lost", ["folder", "mark", "repository"])
    @pytest.mark.parametrize(
        "call",
        [
            lambda tree, base: tree.state(),
            lambda tree, base: tree.commit_all(base, "step", KEEPING),
            lambda tree, base: tree.restore(base, KEEPING),
            lambda tree, base: tree.detach(),
        ],
        ids=["state", "commit_all", "restore", "detach"],
    )
    async def test_a_vanished_tree_is_refused(
        self,
        repo: TreesUnderTest,
        call: Callable[[Workspace, str], Awaitable[object]],
        lost: str,
    ) -> None:
        tree = await _opened(repo)
        if lost == "folder":
            shutil.rmtree(tree.path)
        else:
            (tree.path / ".git").unlink()
        if lost == "repository":
            (tree.path / ".git").write_text("gitdir: /not/there\n")
        with pytest.raises(TreeVanished, match=tree.path.name):
            await call(tree, repo.base)

    async def test_the_users_checkout_is_untouched(self, repo: TreesUnderTest) -> None:
        (repo.checkout / "calc.py").write_bytes(b"typing")
        (repo.checkout / "draft.txt").write_bytes(b"draft")
        files, reading = files_below(repo.checkout), await repo.guards.read(())
        tree = await _opened(repo)
        (tree.path / "calc.py").write_bytes(b"fixed")
        await tree.commit_all(repo.base, "step", KEEPING)
        (tree.path / "calc.py").write_bytes(b"half")
        await tree.restore(repo.base, KEEPING)
        await tree.detach()
        await repo.provider.clear((SCOPE,))
        assert files_below(repo.checkout) == files
        assert (await repo.guards.read(())).checkout == reading.checkout
        assert await repo.history.uncommitted(repo.checkout) == ("calc.py", "draft.txt")


class WorkspaceProviderContract:
    """Subclass it and give the fixture `repo`."""

    @pytest.fixture
    def repo(self, tmp_path: Path) -> TreesUnderTest:
        raise NotImplementedError

    async def test_a_tree_lies_where_its_folder_is_said_to_be(self, repo: TreesUnderTest) -> None:
        assert not repo.provider.folder(SCOPE).exists()
        tree = await _opened(repo)
        assert (tree.scope, tree.path) == (SCOPE, repo.provider.folder(SCOPE))
        assert await repo.history.checked_out_at(SCOPE.branch) == tree.path

    async def test_no_tree_lies_in_the_users_checkout(self, repo: TreesUnderTest) -> None:
        for scope in (SCOPE, CHILD):
            assert not repo.provider.folder(scope).is_relative_to(repo.checkout)

    async def test_a_tree_that_is_there_is_handed_out_as_it_is(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        (tree.path / "calc.py").write_bytes(b"half")
        head = repo.commit_in(tree.path, "half")
        (tree.path / "new.txt").write_bytes(b"new")
        again = await repo.another_provider().open(SCOPE, repo.base)
        assert again.path == tree.path
        assert (await again.state()).head == head
        assert (again.path / "new.txt").read_bytes() == b"new"

    async def test_a_tree_starts_where_it_is_told(self, repo: TreesUnderTest) -> None:
        parent = await _opened(repo)
        (parent.path / "calc.py").write_bytes(b"fixed")
        head = await parent.commit_all(repo.base, "step", KEEPING)
        await _assert_rests_at(repo, await repo.provider.open(CHILD, head), head)

    async def test_a_vanished_tree_is_made_again_and_its_branch_is_not_lost(
        self, repo: TreesUnderTest
    ) -> None:
        tree = await _opened(repo)
        (tree.path / "calc.py").write_bytes(b"fixed")
        head = repo.commit_in(tree.path, "fixed")
        shutil.rmtree(tree.path)
        tree = await repo.another_provider().open(SCOPE, repo.base)
        await _assert_rests_at(repo, tree, head)
        await tree.restore(repo.base, KEEPING)
        assert await can_be_found(repo, head)
        await tree.restore(head, KEEPING)
        await _assert_rests_at(repo, tree, head)

    async def test_what_only_a_vanished_tree_knew_of_is_kept(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        (tree.path / "one.txt").write_bytes(b"1")
        reset_away = repo.commit_in(tree.path, "one")
        repo.reset_in(tree.path, repo.base)
        repo.detach_in(tree.path)
        (tree.path / "two.txt").write_bytes(b"2")
        detached = repo.commit_in(tree.path, "two")
        shutil.rmtree(tree.path)
        await _opened(repo)
        assert await can_be_found(repo, reset_away)
        assert await can_be_found(repo, detached)

    async def test_a_branch_that_is_checked_out_elsewhere_is_refused(
        self, repo: TreesUnderTest
    ) -> None:
        repo.branch_in(repo.checkout, SCOPE.branch)
        with pytest.raises(StateError, match=re.escape(str(repo.checkout))):
            await _opened(repo)
        assert not repo.provider.folder(SCOPE).exists()

    async def test_a_folder_that_is_not_ours_is_refused(self, repo: TreesUnderTest) -> None:
        folder = repo.provider.folder(SCOPE)
        folder.mkdir(parents=True)
        (folder / "mine.txt").write_bytes(b"mine")
        with pytest.raises(StateError, match=folder.name):
            await _opened(repo)
        assert files_below(folder) == {"mine.txt": b"mine"}
        assert await repo.history.tip(SCOPE.branch) is None

    async def test_a_copy_of_a_tree_is_not_ours(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        shutil.copytree(tree.path, repo.provider.folder(CHILD))
        with pytest.raises(StateError, match=CHILD.tree):
            await _opened(repo, CHILD)

    async def test_a_start_that_is_not_there_leaves_nothing_behind(
        self, repo: TreesUnderTest
    ) -> None:
        with pytest.raises(UpstreamError):
            await repo.provider.open(SCOPE, "0123456789" * 4)
        assert not repo.provider.folder(SCOPE).exists()
        assert await repo.history.tip(SCOPE.branch) is None

    async def test_a_folder_that_cannot_be_made_leaves_nothing_behind(
        self, repo: TreesUnderTest
    ) -> None:
        blocked = repo.provider.folder(SCOPE).parent
        blocked.parent.mkdir(parents=True)
        blocked.write_bytes(b"a file")
        with pytest.raises(UpstreamError):
            await _opened(repo)
        assert await repo.history.tip(SCOPE.branch) is None
        blocked.unlink()
        await _assert_rests_at(repo, await _opened(repo), repo.base)

    async def test_a_fresh_repository_passes_the_check(self, repo: TreesUnderTest) -> None:
        await repo.provider.check(SCOPE.label)
        assert not repo.provider.folder(SCOPE).exists()

    @pytest.mark.parametrize("branch", ["agl", "agl/_work", SCOPE.branch, f"{SCOPE.branch}/part"])
    async def test_a_branch_in_the_way_is_refused(self, repo: TreesUnderTest, branch: str) -> None:
        repo.branch_in(repo.checkout, branch)
        with pytest.raises(StateError, match=branch):
            await repo.provider.check(SCOPE.label)

    # clear

    async def test_clear_takes_tree_and_branch_away_and_says_so(self, repo: TreesUnderTest) -> None:
        await _opened(repo)
        await _opened(repo, CHILD)
        cleared = await repo.provider.clear((SCOPE, CHILD))
        assert [(one.tree, one.branch) for one in cleared] == [
            (SCOPE.tree, SCOPE.branch),
            (CHILD.tree, CHILD.branch),
        ]
        for one in cleared:
            assert repo.base in [item.commit for item in one.kept]
        for scope in (SCOPE, CHILD):
            assert not repo.provider.folder(scope).exists()
            assert await repo.history.tip(scope.branch) is None

    async def test_clear_moves_every_file_to_the_kept_folder(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        (tree.path / "calc.py").write_bytes(b"half")
        (tree.path / "env.ignored").write_bytes(b"secret")
        repo.nest_in(tree.path, "inner", with_commit=False)
        (cleared,) = await repo.provider.clear((SCOPE,))
        assert cleared.folder is not None
        assert (cleared.folder / "calc.py").read_bytes() == b"half"
        assert (cleared.folder / "env.ignored").read_bytes() == b"secret"
        assert (cleared.folder / "inner" / "inside.txt").read_bytes() == b"nested"
        assert not (cleared.folder / ".git").exists()
        assert cleared.folder in [item.folder for item in await repo.kept.items()]

    async def test_what_clear_took_can_be_brought_back(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        (tree.path / "calc.py").write_bytes(b"fixed")
        head = await tree.commit_all(repo.base, "step", KEEPING)
        (tree.path / "late.txt").write_bytes(b"late")
        (cleared,) = await repo.provider.clear((SCOPE,))
        items = await repo.kept.items(SCOPE.label)
        assert set(cleared.kept) <= set(items)
        (tip,) = (item for item in cleared.kept if item.commit == head)
        await repo.kept.bring_back(tip, "rescued")
        assert await repo.history.tip("rescued") == head
        contents = [
            await repo.history.files(item.commit)
            for item in cleared.kept
            if item.commit is not None
        ]
        assert [files for files in contents if files.get("late.txt") == b"late"]

    async def test_clear_keeps_what_the_agent_reset_away(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        (tree.path / "one.txt").write_bytes(b"1")
        tip = repo.commit_in(tree.path, "one")
        repo.reset_in(tree.path, repo.base)
        await repo.provider.clear((SCOPE,))
        assert await can_be_found(repo, tip)

    async def test_clear_keeps_the_commit_that_the_agent_amended(
        self, repo: TreesUnderTest
    ) -> None:
        tree = await _opened(repo)
        (tree.path / "one.txt").write_bytes(b"1")
        head = await tree.commit_all(repo.base, "one", KEEPING)
        (tree.path / "one.txt").write_bytes(b"2")
        repo.amend_in(tree.path, "one")
        await repo.provider.clear((SCOPE,))
        assert await can_be_found(repo, head)

    async def test_clear_keeps_the_commits_of_a_detached_head(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        repo.detach_in(tree.path)
        (tree.path / "one.txt").write_bytes(b"1")
        tip = repo.commit_in(tree.path, "one")
        await repo.provider.clear((SCOPE,))
        assert await can_be_found(repo, tip)

    async def test_clear_of_a_vanished_tree_keeps_its_branch(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        (tree.path / "calc.py").write_bytes(b"fixed")
        head = await tree.commit_all(repo.base, "step", KEEPING)
        shutil.rmtree(tree.path)
        (cleared,) = await repo.provider.clear((SCOPE,))
        assert cleared.folder is None
        assert [item.commit for item in cleared.kept] == [head]
        assert await repo.history.tip(SCOPE.branch) is None

    async def test_clear_of_a_vanished_tree_keeps_what_only_it_knew_of(
        self, repo: TreesUnderTest
    ) -> None:
        tree = await _opened(repo)
        repo.detach_in(tree.path)
        (tree.path / "one.txt").write_bytes(b"1")
        tip = repo.commit_in(tree.path, "one")
        shutil.rmtree(tree.path)
        await repo.provider.clear((SCOPE,))
        assert await can_be_found(repo, tip)

    async def test_clear_can_be_repeated(self, repo: TreesUnderTest) -> None:
        await _opened(repo)
        await repo.provider.clear((SCOPE, CHILD))
        items = await repo.kept.items()
        assert await repo.another_provider().clear((SCOPE, CHILD)) == ()
        assert await repo.kept.items() == items

    async def test_clear_checks_all_before_it_touches_any(self, repo: TreesUnderTest) -> None:
        tree = await _opened(repo)
        child = await _opened(repo, CHILD)
        await child.detach()
        repo.switch_in(repo.checkout, CHILD.branch)
        with pytest.raises(StateError, match=re.escape(str(repo.checkout))):
            await repo.provider.clear((SCOPE, CHILD))
        await _assert_rests_at(repo, tree, repo.base)
        assert await repo.history.tip(CHILD.branch) == repo.base
        assert await repo.kept.items() == ()

    async def test_clear_leaves_other_runs_alone(self, repo: TreesUnderTest) -> None:
        other = await _opened(repo, Scope(SCOPE.project, Label("fix2")))
        await _opened(repo)
        await repo.provider.clear((SCOPE,))
        await _assert_rests_at(repo, other, repo.base)

    async def test_after_clear_the_label_can_be_used_again(self, repo: TreesUnderTest) -> None:
        for content in (b"one", b"two"):
            await repo.provider.check(SCOPE.label)
            tree = await _opened(repo)
            (tree.path / "new.txt").write_bytes(content)
            await repo.provider.clear((SCOPE,))
        assert {b"one", b"two"} <= await kept_contents(repo)
