"""What every `Integrator` promises."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from agl.ports.errors import StateError, TreeVanished
from agl.ports.ids import Namespace
from agl.ports.integrator import (
    BOTH_ADDED,
    BOTH_CHANGED,
    DELETED_HERE,
    DELETED_THERE,
    FILE_AGAINST_FOLDER,
    TWO_KINDS,
    Conflict,
    ConflictedPath,
    Merged,
    NothingToMerge,
)
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
from agl.testing.contracts.workspace import ODD_NAMES

Change = Callable[[Path], object]


def writes(path: str, content: bytes) -> Change:
    def change(tree: Path) -> None:
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes(content)

    return change


def removes(path: str) -> Change:
    return lambda tree: (tree / path).unlink()


def links(path: str, to: str) -> Change:
    def change(tree: Path) -> None:
        (tree / path).unlink(missing_ok=True)
        (tree / path).symlink_to(to)

    return change


def _folder_for_file(tree: Path) -> None:
    (tree / "calc.py").unlink()
    writes("calc.py/inner", b"inner")(tree)


def _file_for_folder(tree: Path) -> None:
    shutil.rmtree(tree / "docs")
    writes("docs", b"a file\n")(tree)


def _nothing(tree: Path) -> None:
    """Leaves all as it is."""


HERE, THERE = b"here\n", b"there\n"
ASIDE = "~HEAD"
CONFLICTS: dict[str, tuple[Change, Change, dict[str, str]]] = {
    "changed": (
        writes("calc.py", HERE),
        writes("calc.py", THERE),
        {"calc.py": BOTH_CHANGED},
    ),
    "binary": (
        writes("calc.py", b"\0here"),
        writes("calc.py", b"\0there"),
        {"calc.py": BOTH_CHANGED},
    ),
    "added": (writes("new", HERE), writes("new", THERE), {"new": BOTH_ADDED}),
    "deleted here": (removes("calc.py"), writes("calc.py", THERE), {"calc.py": DELETED_HERE}),
    "deleted there": (writes("calc.py", HERE), removes("calc.py"), {"calc.py": DELETED_THERE}),
    "linked": (links("calc.py", "here"), links("calc.py", "there"), {"calc.py": BOTH_CHANGED}),
    "two kinds": (
        writes("new", HERE),
        links("new", "there"),
        {"new": TWO_KINDS, "new" + ASIDE: TWO_KINDS},
    ),
    "file against folder": (
        writes("new", HERE),
        writes("new/inner", THERE),
        {"new" + ASIDE: FILE_AGAINST_FOLDER},
    ),
    "changed file against folder": (
        writes("calc.py", HERE),
        _folder_for_file,
        {"calc.py" + ASIDE: FILE_AGAINST_FOLDER},
    ),
}

CLEAN: dict[str, tuple[Change, Change]] = {
    "two files": (writes("here", HERE), writes("there", THERE)),
    "the same change": (writes("calc.py", THERE), writes("calc.py", THERE)),
    "the same new file": (writes("new", THERE), writes("new", THERE)),
    "both deleted": (removes("calc.py"), removes("calc.py")),
    "changed and deleted": (writes("calc.py", HERE), removes("docs/notes.txt")),
    "moved on there alone": (_nothing, writes("there", THERE)),
    "folder for a file": (writes("here", HERE), _folder_for_file),
    "executable": (writes("here", HERE), lambda tree: (tree / "calc.py").chmod(0o755)),
    "mode here, content there": (
        lambda tree: (tree / "calc.py").chmod(0o755),
        writes("calc.py", THERE),
    ),
    "link": (writes("here", HERE), links("calc.py", "docs")),
}


class Parted:
    """A parent's tree and a child's head that started at one commit."""

    def __init__(self, repo: TreesUnderTest, tree: Workspace, start: str, other: str) -> None:
        self.repo = repo
        self.tree = tree
        self.start = start
        self.other = other

    async def merge(self) -> Merged | Conflict | NothingToMerge:
        return await self.repo.integrator.merge(
            self.tree, self.start, self.other, "land left", KEEPING
        )

    async def conflict(self) -> Conflict:
        """The one that the merge leaves."""
        conflict = await self.merge()
        assert isinstance(conflict, Conflict)
        return conflict

    async def merged(self) -> str:
        merged = await self.merge()
        assert isinstance(merged, Merged)
        return merged.head

    async def conclude(self, conflict: Conflict) -> Merged | Conflict | NothingToMerge:
        return await self.repo.integrator.conclude(
            self.tree, self.start, self.other, "land left", conflict, KEEPING
        )

    async def assert_holds_both(self, head: str) -> None:
        assert head not in (self.start, self.other)
        for one in (self.start, self.other):
            assert await self.repo.history.is_ancestor(one, head)

    async def assert_rests_at_a_merge(self, head: str, files: dict[str, bytes]) -> None:
        """On its branch, clean, at a merge commit of the two that holds these files."""
        state = await self.tree.state()
        assert (state.head, state.attached, state.clean) == (head, True, True)
        assert await self.repo.history.tip(self.tree.scope.branch) == head
        await self.assert_holds_both(head)
        assert await self.repo.history.files(head) == files
        assert files_below(self.tree.path) == files

    async def assert_held(self) -> None:
        state = await self.tree.state()
        assert (state.head, state.attached, state.clean) == (self.start, True, False)
        assert await self.repo.history.tip(self.tree.scope.branch) == self.start


async def parted(repo: TreesUnderTest, here: Change, there: Change) -> Parted:
    tree = await repo.provider.open(SCOPE, repo.base)
    child = await repo.provider.open(CHILD, repo.base)
    here(tree.path)
    there(child.path)
    start = await tree.commit_all(repo.base, "here", KEEPING)
    return Parted(repo, tree, start, await child.commit_all(repo.base, "there", KEEPING))


async def _conflicting(repo: TreesUnderTest) -> Parted:
    return await parted(repo, writes("calc.py", HERE), writes("calc.py", THERE))


async def _apart(repo: TreesUnderTest) -> Parted:
    return await parted(repo, writes("here", HERE), writes("there", THERE))


SUM = BASE_FILES | {"here": HERE, "there": THERE}


class IntegratorContract:
    """Subclass it and give the fixture `repo`."""

    @pytest.fixture
    def repo(self, tmp_path: Path) -> TreesUnderTest:
        raise NotImplementedError

    # merge

    async def test_a_merge_holds_what_both_did(self, repo: TreesUnderTest) -> None:
        two = await _apart(repo)
        head = await two.merged()
        await two.assert_rests_at_a_merge(head, SUM)
        assert await repo.history.message(head) == "land left"
        assert await repo.kept.items() == ()

    @pytest.mark.parametrize(("here", "there"), CLEAN.values(), ids=CLEAN.keys())
    async def test_each_kind_of_change_merges(
        self, repo: TreesUnderTest, here: Change, there: Change
    ) -> None:
        two = await parted(repo, here, there)
        head = await two.merged()
        await two.assert_holds_both(head)
        assert (await two.tree.state()).clean
        assert files_below(two.tree.path) == await repo.history.files(head)

    async def test_a_parent_that_did_not_move_is_merged_into_too(
        self, repo: TreesUnderTest
    ) -> None:
        two = await parted(repo, _nothing, writes("there", THERE))
        assert two.start == repo.base
        await two.assert_rests_at_a_merge(await two.merged(), BASE_FILES | {"there": THERE})

    async def test_a_child_that_did_nothing_has_nothing_to_merge(
        self, repo: TreesUnderTest
    ) -> None:
        two = await parted(repo, writes("here", HERE), _nothing)
        assert await two.merge() == NothingToMerge()
        state = await two.tree.state()
        assert (state.head, state.attached, state.clean) == (two.start, True, True)

    async def test_what_landed_has_nothing_more_to_merge(self, repo: TreesUnderTest) -> None:
        two = await _apart(repo)
        two.start = await two.merged()
        assert await two.merge() == NothingToMerge()
        assert (await two.tree.state()).head == two.start

    async def test_each_landing_is_one_merge_commit(self, repo: TreesUnderTest) -> None:
        tree = await repo.provider.open(SCOPE, repo.base)
        head, files = repo.base, dict(BASE_FILES)
        for name in ("one", "two", "three"):
            scope = SCOPE.child(Namespace(name))
            child = await repo.provider.open(scope, repo.base)
            writes(name, name.encode())(child.path)
            other = await child.commit_all(repo.base, name, KEEPING)
            merged = await repo.integrator.merge(tree, head, other, f"land {name}", KEEPING)
            assert isinstance(merged, Merged)
            head, files[name] = merged.head, name.encode()
        subjects = [line.split(" ", 1)[1] for line in await repo.history.between(repo.base, head)]
        assert sorted(subjects) == ["land one", "land three", "land two", "one", "three", "two"]
        assert await repo.history.files(head) == files

    async def test_what_is_dirty_is_kept_first(self, repo: TreesUnderTest) -> None:
        two = await _apart(repo)
        writes("there", b"typed")(two.tree.path)
        writes("calc.py", b"edited")(two.tree.path)
        await two.assert_rests_at_a_merge(await two.merged(), SUM)
        assert {b"typed", b"edited"} <= await kept_contents(repo)

    async def test_commits_beyond_the_start_are_kept_first(self, repo: TreesUnderTest) -> None:
        two = await _apart(repo)
        writes("more", b"more")(two.tree.path)
        tip = repo.commit_in(two.tree.path, "more")
        await two.assert_rests_at_a_merge(await two.merged(), SUM)
        assert await can_be_found(repo, tip)

    async def test_an_ignored_file_in_the_way_is_kept(self, repo: TreesUnderTest) -> None:
        two = await _apart(repo)
        child = await repo.provider.open(CHILD, repo.base)
        two.other = repo.commit_ignored_in(child.path, "x.ignored", THERE, "tracked")
        writes("x.ignored", b"mine")(two.tree.path)
        writes("y.ignored", b"stays")(two.tree.path)
        head = await two.merged()
        assert await repo.history.files(head) == SUM | {"x.ignored": THERE}
        assert (two.tree.path / "y.ignored").read_bytes() == b"stays"
        assert b"mine" in await kept_contents(repo)

    async def test_an_ignored_file_that_stood_there_before_is_left(
        self, repo: TreesUnderTest
    ) -> None:
        two = await _apart(repo)
        repo.commit_ignored_in(two.tree.path, "x.ignored", b"once", "tracked")
        child = await repo.provider.open(CHILD, repo.base)
        repo.reset_in(child.path, await repo.history.resolve(SCOPE.branch))
        writes("there", THERE)(child.path)
        two.other = repo.commit_in(child.path, "there")
        removes("x.ignored")(two.tree.path)
        two.start = repo.commit_in(two.tree.path, "no longer")
        writes("x.ignored", b"mine")(two.tree.path)
        assert "x.ignored" not in await repo.history.files(await two.merged())
        assert (two.tree.path / "x.ignored").read_bytes() == b"mine"
        assert await repo.kept.items() == ()

    async def test_ignored_files_in_a_folder_in_the_way_are_kept(
        self, repo: TreesUnderTest
    ) -> None:
        two = await parted(repo, writes("here", HERE), _file_for_folder)
        writes("docs/x.ignored", b"mine")(two.tree.path)
        assert (await repo.history.files(await two.merged()))["docs"] == b"a file\n"
        assert await kept_contents(repo) == {b"mine"}

    async def test_nothing_to_merge_moves_nothing(self, repo: TreesUnderTest) -> None:
        two = await parted(repo, _folder_for_file, _nothing)
        writes("calc.py/x.ignored", b"mine")(two.tree.path)
        assert await two.merge() == NothingToMerge()
        assert (two.tree.path / "calc.py" / "inner").read_bytes() == b"inner"
        assert (two.tree.path / "calc.py" / "x.ignored").read_bytes() == b"mine"
        assert await repo.kept.items() == ()

    async def test_the_users_changes_survive(self, repo: TreesUnderTest) -> None:
        two = await _apart(repo)
        writes("there", b"mine")(repo.checkout)
        writes("calc.py", b"edited")(repo.checkout)
        before = await repo.guards.read(("main",))
        await two.merged()
        assert files_below(repo.checkout) == BASE_FILES | {"there": b"mine", "calc.py": b"edited"}
        assert await repo.guards.read(("main",)) == before

    async def test_a_branch_that_is_checked_out_elsewhere_is_not_moved(
        self, repo: TreesUnderTest
    ) -> None:
        two = await _apart(repo)
        repo.detach_in(two.tree.path)
        repo.switch_in(repo.checkout, SCOPE.branch)
        with pytest.raises(StateError, match="is checked out at"):
            await two.merge()
        assert await repo.history.tip(SCOPE.branch) == two.start
        assert (await repo.history.uncommitted(repo.checkout)) == ()

    # conflicts

    @pytest.mark.parametrize(("here", "there", "kinds"), CONFLICTS.values(), ids=CONFLICTS.keys())
    async def test_each_kind_of_conflict_is_told(
        self, repo: TreesUnderTest, here: Change, there: Change, kinds: dict[str, str]
    ) -> None:
        two = await parted(repo, here, there)
        conflict = await two.conflict()
        assert {one.path: one.kind for one in conflict.paths} == kinds
        await two.assert_held()
        assert await repo.integrator.unresolved(two.tree, conflict) == conflict
        assert await two.conclude(conflict) == conflict
        await two.assert_held()

    async def test_both_sides_stand_between_markers(self, repo: TreesUnderTest) -> None:
        two = await _conflicting(repo)
        await two.conflict()
        lines = (two.tree.path / "calc.py").read_bytes().splitlines()
        assert [line[:7] for line in lines] == [
            b"<<<<<<<",
            b"here",
            b"=======",
            b"there",
            b">>>>>>>",
        ]

    async def test_what_merged_by_itself_is_there(self, repo: TreesUnderTest) -> None:
        def change(tree: Path) -> None:
            writes("calc.py", THERE)(tree)
            writes("there", THERE)(tree)

        two = await parted(repo, writes("calc.py", HERE), change)
        (one,) = (await two.conflict()).paths
        assert one.path == "calc.py"
        assert (two.tree.path / "there").read_bytes() == THERE

    @pytest.mark.parametrize("name", ODD_NAMES)
    async def test_odd_names_are_right(self, repo: TreesUnderTest, name: str) -> None:
        two = await parted(repo, writes(name, HERE), writes(name, THERE))
        conflict = await two.conflict()
        assert [one.path for one in conflict.paths] == [name]
        writes(name, b"both")(two.tree.path)
        merged = await two.conclude(conflict)
        assert isinstance(merged, Merged)
        await two.assert_rests_at_a_merge(merged.head, BASE_FILES | {name: b"both"})

    async def test_a_merge_in_a_held_tree_begins_again(self, repo: TreesUnderTest) -> None:
        two = await _conflicting(repo)
        conflict = await two.conflict()
        writes("calc.py", b"typed")(two.tree.path)
        writes("more", b"more")(two.tree.path)
        assert await two.merge() == conflict
        await two.assert_held()
        assert not (two.tree.path / "more").exists()
        assert {b"typed", b"more"} <= await kept_contents(repo)

    async def test_another_merge_in_a_held_tree_is_of_its_own(self, repo: TreesUnderTest) -> None:
        two = await _conflicting(repo)
        await two.conflict()
        child = await repo.provider.open(CHILD, repo.base)
        repo.reset_in(child.path, repo.base)
        writes("there", THERE)(child.path)
        two.other = repo.commit_in(child.path, "there")
        head = await two.merged()
        files = BASE_FILES | {"calc.py": HERE, "there": THERE}
        await two.assert_rests_at_a_merge(head, files)

    async def test_a_restore_ends_the_hold_and_keeps_what_was_typed(
        self, repo: TreesUnderTest
    ) -> None:
        two = await _conflicting(repo)
        await two.conflict()
        writes("calc.py", b"typed")(two.tree.path)
        await two.tree.restore(two.start, KEEPING)
        state = await two.tree.state()
        assert (state.head, state.attached, state.clean) == (two.start, True, True)
        assert b"typed" in await kept_contents(repo)

    @pytest.mark.parametrize(
        ("here", "there"), [one[:2] for one in CONFLICTS.values()], ids=CONFLICTS.keys()
    )
    async def test_a_hold_that_nobody_touched_is_not_kept(
        self, repo: TreesUnderTest, here: Change, there: Change
    ) -> None:
        two = await parted(repo, here, there)
        conflict = await two.conflict()
        assert await two.merge() == conflict
        await two.tree.restore(two.start, KEEPING)
        assert await repo.kept.items() == ()
        assert await two.merge() == conflict
        await two.assert_held()

    @pytest.mark.parametrize(
        "touch",
        [
            writes("new.txt", b""),
            removes("docs/notes.txt"),
            lambda tree: (tree / "docs" / "notes.txt").chmod(0o755),
            writes("calc.py", b""),
        ],
        ids=["one more", "one less", "mode", "emptied"],
    )
    async def test_a_hold_that_somebody_touched_is_kept(
        self, repo: TreesUnderTest, touch: Change
    ) -> None:
        two = await _conflicting(repo)
        await two.conflict()
        touch(two.tree.path)
        before = files_below(two.tree.path)
        (kept,) = await two.tree.restore(two.start, KEEPING)
        assert kept.commit is not None
        assert await repo.history.files(kept.commit) == before

    async def test_what_a_build_was_red_on_is_not_kept_twice(self, repo: TreesUnderTest) -> None:
        """The merge commit is."""
        two = await _apart(repo)
        head = await two.merged()
        await repo.integrator.hold(two.tree, two.start, two.other, head)
        kept = await two.tree.restore(two.start, KEEPING)
        assert [one.commit for one in kept if one.commit != head] == []

    async def test_what_came_in_can_be_found_after_a_restore(self, repo: TreesUnderTest) -> None:
        two = await _conflicting(repo)
        await two.conflict()
        child = await repo.provider.open(CHILD, repo.base)
        repo.reset_in(child.path, repo.base)
        await two.tree.restore(two.start, KEEPING)
        assert await can_be_found(repo, two.other)

    # unresolved and conclude

    async def test_an_edited_file_is_resolved(self, repo: TreesUnderTest) -> None:
        two = await _conflicting(repo)
        conflict = await two.conflict()
        writes("calc.py", b"both\n")(two.tree.path)
        writes("docs/notes.txt", b"said so\n")(two.tree.path)
        writes("extra", b"extra")(two.tree.path)
        assert await repo.integrator.unresolved(two.tree, conflict) == Conflict(())
        merged = await two.conclude(conflict)
        assert isinstance(merged, Merged)
        await two.assert_rests_at_a_merge(
            merged.head, {"calc.py": b"both\n", "docs/notes.txt": b"said so\n", "extra": b"extra"}
        )
        assert await repo.history.message(merged.head) == "land left"

    @pytest.mark.parametrize(
        "left", [b"<<<<<<< HEAD\nhere\n", b"a\r\n>>>>>>> other\r\nb\r\n", b"<<<<<<<\r\n"]
    )
    async def test_a_file_with_a_marker_is_not_resolved(
        self, repo: TreesUnderTest, left: bytes
    ) -> None:
        two = await _conflicting(repo)
        conflict = await two.conflict()
        writes("calc.py", left)(two.tree.path)
        assert await two.conclude(conflict) == conflict
        await two.assert_held()
        assert (two.tree.path / "calc.py").read_bytes() == left

    @pytest.mark.parametrize(
        "text", [b"a\n=======\nb\n", b"a <<<<<<< b\n", b"<<<<<<\n", b">>>>>>>>x"]
    )
    async def test_what_only_looks_like_a_marker_is_none(
        self, repo: TreesUnderTest, text: bytes
    ) -> None:
        two = await _conflicting(repo)
        conflict = await two.conflict()
        writes("calc.py", text)(two.tree.path)
        assert isinstance(await two.conclude(conflict), Merged)

    async def test_a_file_staged_as_it_is_is_resolved(self, repo: TreesUnderTest) -> None:
        two = await parted(repo, removes("calc.py"), writes("calc.py", THERE))
        conflict = await two.conflict()
        repo.stage_in(two.tree.path, "calc.py")
        assert await repo.integrator.unresolved(two.tree, conflict) == Conflict(())
        merged = await two.conclude(conflict)
        assert isinstance(merged, Merged)
        await two.assert_rests_at_a_merge(merged.head, BASE_FILES | {"calc.py": THERE})

    async def test_markers_that_are_only_staged_are_not_resolved(
        self, repo: TreesUnderTest
    ) -> None:
        two = await _conflicting(repo)
        conflict = await two.conflict()
        repo.stage_in(two.tree.path, "calc.py")
        assert await repo.integrator.unresolved(two.tree, conflict) == conflict
        assert await two.conclude(conflict) == conflict
        await two.assert_held()

    async def test_markers_that_are_committed_are_not_resolved(self, repo: TreesUnderTest) -> None:
        two = await _conflicting(repo)
        conflict = await two.conflict()
        repo.commit_in(two.tree.path, "by hand, without a look")
        assert await two.conclude(conflict) == conflict
        await two.assert_held()
        writes("calc.py", b"both")(two.tree.path)
        merged = await two.conclude(conflict)
        assert isinstance(merged, Merged)
        await two.assert_rests_at_a_merge(merged.head, BASE_FILES | {"calc.py": b"both"})

    async def test_a_marker_that_somebody_staged_on_purpose_is_resolved(
        self, repo: TreesUnderTest
    ) -> None:
        two = await _conflicting(repo)
        conflict = await two.conflict()
        writes("calc.py", b"<<<<<<< an example\n")(two.tree.path)
        assert await repo.integrator.unresolved(two.tree, conflict) == conflict
        repo.stage_in(two.tree.path, "calc.py")
        assert isinstance(await two.conclude(conflict), Merged)

    async def test_a_file_that_was_removed_is_resolved(self, repo: TreesUnderTest) -> None:
        two = await parted(repo, removes("calc.py"), writes("calc.py", THERE))
        conflict = await two.conflict()
        removes("calc.py")(two.tree.path)
        merged = await two.conclude(conflict)
        assert isinstance(merged, Merged)
        notes = {"docs/notes.txt": BASE_FILES["docs/notes.txt"]}
        await two.assert_rests_at_a_merge(merged.head, notes)

    async def test_only_the_open_paths_are_named(self, repo: TreesUnderTest) -> None:
        def change(content: bytes) -> Change:
            return lambda tree: [writes(path, content)(tree) for path in ("calc.py", "new")]

        two = await parted(repo, change(HERE), change(THERE))
        conflict = await two.conflict()
        writes("new", b"both")(two.tree.path)
        (still,) = (await repo.integrator.unresolved(two.tree, conflict)).paths
        assert (still.path, still.kind) == ("calc.py", BOTH_CHANGED)
        assert await two.conclude(conflict) == Conflict((still,))

    async def test_a_path_of_no_conflict_is_resolved(self, repo: TreesUnderTest) -> None:
        two = await _apart(repo)
        asked = Conflict((ConflictedPath("calc.py", BOTH_CHANGED),))
        assert await repo.integrator.unresolved(two.tree, asked) == Conflict(())

    async def test_a_conclusion_that_is_there_is_taken(self, repo: TreesUnderTest) -> None:
        two = await _apart(repo)
        head = await two.merged()
        assert await two.conclude(Conflict(())) == Merged(head)
        await two.assert_rests_at_a_merge(head, SUM)

    async def test_what_is_dirty_beside_it_is_kept(self, repo: TreesUnderTest) -> None:
        """It may be what a build left that was killed."""
        two = await _apart(repo)
        head = await two.merged()
        writes("more", b"more")(two.tree.path)
        assert await two.conclude(Conflict(())) == Merged(head)
        await two.assert_rests_at_a_merge(head, SUM)
        assert b"more" in await kept_contents(repo)

    async def test_a_persons_own_commit_of_the_merge_is_taken(self, repo: TreesUnderTest) -> None:
        two = await _conflicting(repo)
        conflict = await two.conflict()
        writes("calc.py", b"both")(two.tree.path)
        head = repo.commit_in(two.tree.path, "by hand")
        assert await two.conclude(conflict) == Merged(head)
        await two.assert_rests_at_a_merge(head, BASE_FILES | {"calc.py": b"both"})

    async def test_without_a_hold_it_is_a_merge(self, repo: TreesUnderTest) -> None:
        two = await _conflicting(repo)
        conflict = await two.conflict()
        await two.tree.restore(two.start, KEEPING)
        assert await two.conclude(conflict) == conflict
        await two.assert_held()

    # hold

    async def test_a_merge_becomes_a_hold_again(self, repo: TreesUnderTest) -> None:
        two = await _apart(repo)
        head = await two.merged()
        await repo.integrator.hold(two.tree, two.start, two.other, head)
        await two.assert_held()
        assert files_below(two.tree.path) == SUM
        writes("calc.py", b"fixed")(two.tree.path)
        merged = await two.conclude(Conflict(()))
        assert isinstance(merged, Merged)
        await two.assert_rests_at_a_merge(merged.head, SUM | {"calc.py": b"fixed"})

    async def test_a_hold_on_a_parent_that_did_not_move_is_a_merge_in_the_end(
        self, repo: TreesUnderTest
    ) -> None:
        two = await parted(repo, _nothing, writes("there", THERE))
        await repo.integrator.hold(two.tree, two.start, two.other, await two.merged())
        await two.assert_held()
        merged = await two.conclude(Conflict(()))
        assert isinstance(merged, Merged)
        await two.assert_rests_at_a_merge(merged.head, BASE_FILES | {"there": THERE})
        await repo.integrator.hold(two.tree, two.start, two.other, merged.head)
        by_hand = repo.commit_in(two.tree.path, "by hand")
        await two.assert_rests_at_a_merge(by_hand, BASE_FILES | {"there": THERE})

    async def test_a_hold_is_concluded_as_it_was(self, repo: TreesUnderTest) -> None:
        two = await _apart(repo)
        child = await repo.provider.open(CHILD, repo.base)
        two.other = repo.commit_ignored_in(child.path, "x.ignored", THERE, "tracked")
        await repo.integrator.hold(two.tree, two.start, two.other, await two.merged())
        merged = await two.conclude(Conflict(()))
        assert isinstance(merged, Merged)
        await two.assert_rests_at_a_merge(merged.head, SUM | {"x.ignored": THERE})

    async def test_a_hold_that_is_there_stays(self, repo: TreesUnderTest) -> None:
        two = await _apart(repo)
        head = await two.merged()
        await repo.integrator.hold(two.tree, two.start, two.other, head)
        writes("calc.py", b"typed")(two.tree.path)
        await repo.integrator.hold(two.tree, two.start, two.other, head)
        await two.assert_held()
        assert (two.tree.path / "calc.py").read_bytes() == b"typed"

    async def test_a_tree_elsewhere_is_left_as_it_is(self, repo: TreesUnderTest) -> None:
        two = await _apart(repo)
        head = await two.merged()
        writes("more", b"more")(two.tree.path)
        tip = repo.commit_in(two.tree.path, "more")
        await repo.integrator.hold(two.tree, two.start, two.other, head)
        state = await two.tree.state()
        assert (state.head, state.clean) == (tip, True)

    async def test_a_detached_tree_is_not_held(self, repo: TreesUnderTest) -> None:
        two = await _apart(repo)
        head = await two.merged()
        repo.detach_in(two.tree.path)
        await repo.integrator.hold(two.tree, two.start, two.other, head)
        assert (await two.tree.state()).head == head
        merged = await two.conclude(Conflict(()))
        assert isinstance(merged, Merged)
        await two.assert_rests_at_a_merge(merged.head, SUM)

    async def test_a_merge_of_others_is_not_taken(self, repo: TreesUnderTest) -> None:
        two = await _apart(repo)
        head, two.start = await two.merged(), repo.base
        merged = await two.conclude(Conflict(()))
        assert isinstance(merged, Merged)
        assert merged.head != head
        await two.assert_rests_at_a_merge(merged.head, BASE_FILES | {"there": THERE})

    # begin

    async def test_a_begun_merge_waits_for_its_commit(self, repo: TreesUnderTest) -> None:
        two = await _apart(repo)
        assert await repo.integrator.begin(two.tree, two.other, KEEPING) == Conflict(())
        await two.assert_held()
        assert files_below(two.tree.path) == SUM
        head = await two.tree.commit_all(two.start, "step", KEEPING)
        await two.assert_rests_at_a_merge(head, SUM)
        assert await repo.history.message(head) == "step"

    async def test_a_tree_that_did_not_move_begins_a_merge_too(self, repo: TreesUnderTest) -> None:
        two = await parted(repo, _nothing, writes("there", THERE))
        assert await repo.integrator.begin(two.tree, two.other, KEEPING) == Conflict(())
        head = await two.tree.commit_all(two.start, "step", KEEPING)
        await two.assert_rests_at_a_merge(head, BASE_FILES | {"there": THERE})

    async def test_an_agent_resolves_a_begun_merge(self, repo: TreesUnderTest) -> None:
        two = await _conflicting(repo)
        conflict = await repo.integrator.begin(two.tree, two.other, KEEPING)
        assert [one.kind for one in conflict.paths] == [BOTH_CHANGED]
        assert await repo.integrator.unresolved(two.tree, conflict) == conflict
        writes("calc.py", b"both")(two.tree.path)
        assert await repo.integrator.unresolved(two.tree, conflict) == Conflict(())
        head = await two.tree.commit_all(two.start, "step", KEEPING)
        await two.assert_rests_at_a_merge(head, BASE_FILES | {"calc.py": b"both"})

    async def test_a_merge_that_changes_no_file_has_both_parents(
        self, repo: TreesUnderTest
    ) -> None:
        two = await _conflicting(repo)
        conflict = await repo.integrator.begin(two.tree, two.other, KEEPING)
        writes("calc.py", HERE)(two.tree.path)
        assert await repo.integrator.unresolved(two.tree, conflict) == Conflict(())
        head = await two.tree.commit_all(two.start, "ours", KEEPING)
        await two.assert_rests_at_a_merge(head, BASE_FILES | {"calc.py": HERE})

    async def test_with_nothing_to_merge_nothing_begins(self, repo: TreesUnderTest) -> None:
        two = await parted(repo, writes("here", HERE), _nothing)
        assert await repo.integrator.begin(two.tree, two.other, KEEPING) == Conflict(())
        assert (await two.tree.state()).clean

    async def test_no_merge_begins_in_a_dirty_tree(self, repo: TreesUnderTest) -> None:
        two = await _apart(repo)
        writes("more", b"more")(two.tree.path)
        with pytest.raises(StateError, match="has changes"):
            await repo.integrator.begin(two.tree, two.other, KEEPING)
        assert (two.tree.path / "more").read_bytes() == b"more"

    async def test_an_ignored_file_is_kept_before_a_merge_begins(
        self, repo: TreesUnderTest
    ) -> None:
        two = await _apart(repo)
        child = await repo.provider.open(CHILD, repo.base)
        two.other = repo.commit_ignored_in(child.path, "x.ignored", THERE, "tracked")
        writes("x.ignored", b"mine")(two.tree.path)
        await repo.integrator.begin(two.tree, two.other, KEEPING)
        assert (two.tree.path / "x.ignored").read_bytes() == THERE
        assert b"mine" in await kept_contents(repo)

    # another process, and a tree that is gone

    async def test_a_new_process_goes_on(self, repo: TreesUnderTest) -> None:
        two = await _conflicting(repo)
        conflict = await two.conflict()
        repo.integrator = repo.another_integrator()
        two.tree = await repo.another_provider().open(SCOPE, repo.base)
        await two.assert_held()
        assert await repo.integrator.unresolved(two.tree, conflict) == conflict
        writes("calc.py", b"both")(two.tree.path)
        assert isinstance(await two.conclude(conflict), Merged)

    @pytest.mark.parametrize(
        "call",
        [
            lambda two: two.merge(),
            lambda two: two.conclude(Conflict(())),
            lambda two: two.repo.integrator.begin(two.tree, two.other, KEEPING),
            lambda two: two.repo.integrator.unresolved(two.tree, Conflict(())),
            lambda two: two.repo.integrator.hold(two.tree, two.start, two.other, two.start),
        ],
        ids=["merge", "conclude", "begin", "unresolved", "hold"],
    )
    async def test_a_tree_that_is_gone_is_told(
        self, repo: TreesUnderTest, call: Callable[[Parted], Awaitable[object]]
    ) -> None:
        two = await _apart(repo)
        await two.merged()
        shutil.rmtree(two.tree.path)
        with pytest.raises(TreeVanished):
            await call(two)
        assert not two.tree.path.exists()
