"""What only real git can get wrong in a merge."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from adapters.git.hands import CountedProcesses, GitTrees, Killed, MortalProcesses
from agl.adapters.filesystem import FilesystemLocks
from agl.ports.errors import InternalError, StateError, UpstreamError
from agl.ports.ids import Namespace
from agl.ports.integrator import (
    BOTH_ADDED,
    BOTH_CHANGED,
    DELETED_THERE,
    FOLDER_RENAMED,
    RENAMED_TWICE,
    SUBMODULE_MOVED,
    Conflict,
    Merged,
    NothingToMerge,
)
from agl.testing.contracts.integrator import (
    HERE,
    SUM,
    THERE,
    Change,
    Parted,
    parted,
    removes,
    writes,
)
from agl.testing.contracts.trees import BASE_FILES, CHILD, KEEPING, SCOPE, kept_contents

LINES = b"".join(b"line %d of a file\n" % n for n in range(20))


def renames(old: str, new: str) -> Change:
    def change(tree: Path) -> None:
        (tree / new).parent.mkdir(parents=True, exist_ok=True)
        (tree / old).rename(tree / new)

    return change


async def apart(repo: GitTrees) -> Parted:
    return await parted(repo, writes("here", HERE), writes("there", THERE))


async def conflicting(repo: GitTrees) -> Parted:
    return await parted(repo, writes("calc.py", HERE), writes("calc.py", THERE))


def parents(repo: GitTrees, commit: str) -> list[str]:
    return repo.git("rev-list", "--parents", "-1", commit).split()[1:]


def git_dir(repo: GitTrees, tree: Path) -> Path:
    return Path(repo.git("rev-parse", "--absolute-git-dir", cwd=tree))


def heads(repo: GitTrees) -> Path:
    return repo.repository.common_dir / "refs" / "heads"


# a person's settings


async def test_a_persons_settings_have_no_effect(repo: GitTrees) -> None:
    hang = repo.place / "hang"
    hang.write_text("#!/bin/sh\nexec sleep 600\n")
    hang.chmod(0o755)
    hooks = repo.place / "hooks"
    hooks.mkdir()
    for name in ("pre-merge-commit", "commit-msg", "prepare-commit-msg", "post-merge"):
        (hooks / name).write_text(f"#!/bin/sh\necho {name} >> {repo.place / 'ran'}\nexit 1\n")
        (hooks / name).chmod(0o755)
    (repo.place / "template").write_text("a template\n")
    two = await parted(repo, writes("calc.py", HERE), writes("calc.py", THERE))
    for key, value in {
        "branch.agl/fix.mergeOptions": "--squash --no-commit -X theirs",
        "commit.gpgsign": "true",
        "commit.template": str(repo.place / "template"),
        "core.hooksPath": str(hooks),
        "gpg.program": str(hang),
        "merge.autoStash": "true",
        "merge.conflictStyle": "zdiff3",
        "merge.default": "union",
        "merge.directoryRenames": "false",
        "merge.ff": "only",
        "merge.log": "true",
        "merge.renames": "false",
        "merge.verifySignatures": "true",
        "pull.ff": "only",
        "pull.rebase": "true",
        "rerere.autoUpdate": "true",
        "rerere.enabled": "true",
    }.items():
        repo.git("config", "--global", key, value)
    conflict = await two.conflict()
    assert b"|||||||" not in (two.tree.path / "calc.py").read_bytes()
    writes("calc.py", b"both\n")(two.tree.path)
    merged = await two.conclude(conflict)
    assert isinstance(merged, Merged)
    assert repo.git("log", "-1", "--format=%B", merged.head) == "land left"
    assert not (repo.repository.common_dir / "rr-cache").exists()
    child = await repo.provider.open(CHILD, repo.base)
    writes("more", b"more")(child.path)
    two.start, two.other = merged.head, await child.commit_all(two.other, "more", KEEPING)
    head = await two.merged()
    assert parents(repo, head) == [two.start, two.other]
    assert repo.git("log", "-1", "--format=%B", head) == "land left"
    assert not (repo.place / "ran").exists()


RENAMES = {
    "diff.renameLimit": "1",
    "diff.renames": "false",
    "merge.directoryRenames": "true",
    "merge.renameLimit": "1",
    "merge.renames": "false",
}


async def test_a_hold_that_nobody_touched_is_told_by_agls_own_settings(repo: GitTrees) -> None:
    repo.git("config", "merge.conflictStyle", "diff3")
    two = await conflicting(repo)
    await two.conflict()
    assert await two.tree.restore(two.start, KEEPING) == ()


@pytest.mark.parametrize(("key", "value"), RENAMES.items(), ids=RENAMES.keys())
async def test_a_persons_settings_for_renames_have_no_effect(
    repo: GitTrees, key: str, value: str
) -> None:
    repo.git("config", key, value)
    for n in range(3):
        writes(f"old/{n}", LINES + b"%d\n" % n)(repo.checkout)
    repo.base = repo.commit_in(repo.checkout, "lines")

    def moves_and_changes(tree: Path) -> None:
        (tree / "old").rename(tree / "new")
        for n in range(3):
            (tree / "new" / str(n)).unlink()
            writes(f"new/{n}-now", LINES + b"%d\nmine\n" % n)(tree)

    def changes_and_adds(tree: Path) -> None:
        writes("old/0", b"yours\n" + LINES + b"0\n")(tree)
        writes("old/more", b"more")(tree)

    two = await parted(repo, moves_and_changes, changes_and_adds)
    conflict = await two.conflict()
    assert [(one.path, one.kind) for one in conflict.paths] == [("new/more", FOLDER_RENAMED)]
    now = (two.tree.path / "new" / "0-now").read_bytes()
    assert now == b"yours\n" + LINES + b"0\nmine\n"


async def test_a_resolution_from_before_is_not_replayed(repo: GitTrees) -> None:
    repo.git("config", "rerere.enabled", "true")
    two = await conflicting(repo)
    conflict = await two.conflict()
    writes("calc.py", b"both\n")(two.tree.path)
    repo.git("rerere", cwd=two.tree.path)
    merged = await two.conclude(conflict)
    assert isinstance(merged, Merged)
    repo.reset_in(two.tree.path, two.start)
    assert await two.merge() == conflict
    assert b"<<<<<<<" in (two.tree.path / "calc.py").read_bytes()


async def test_a_message_stays_as_it_is(repo: GitTrees) -> None:
    two = await apart(repo)
    message = "land left\n\n# not a comment\n\n\ntwo blank lines above"
    merged = await repo.integrator.merge(two.tree, two.start, two.other, message, KEEPING)
    assert isinstance(merged, Merged)
    assert await repo.history.message(merged.head) == message


# kinds of conflict that need git


async def test_a_file_renamed_on_both_sides_is_told(repo: GitTrees) -> None:
    writes("old", LINES)(repo.checkout)
    repo.base = repo.commit_in(repo.checkout, "lines")
    two = await parted(repo, renames("old", "mine"), renames("old", "yours"))
    conflict = await two.conflict()
    assert {one.path: one.kind for one in conflict.paths} == dict.fromkeys(
        ("old", "mine", "yours"), RENAMED_TWICE
    )
    assert {one.path: one.left is None for one in conflict.paths} == {
        "old": True,
        "mine": False,
        "yours": False,
    }
    still = await repo.integrator.unresolved(two.tree, conflict)
    assert [one.path for one in still.paths] == ["mine", "yours"]
    removes("yours")(two.tree.path)
    repo.stage_in(two.tree.path, "mine")
    merged = await two.conclude(conflict)
    assert isinstance(merged, Merged)
    await two.assert_rests_at_a_merge(merged.head, BASE_FILES | {"mine": LINES})


async def test_a_renamed_file_takes_the_other_sides_change(repo: GitTrees) -> None:
    writes("old", LINES)(repo.checkout)
    repo.base = repo.commit_in(repo.checkout, "lines")
    two = await parted(repo, renames("old", "new"), writes("old", LINES + b"more\n"))
    assert (await repo.history.files(await two.merged()))["new"] == LINES + b"more\n"


async def test_a_file_renamed_here_and_deleted_there_is_told(repo: GitTrees) -> None:
    writes("old", LINES)(repo.checkout)
    repo.base = repo.commit_in(repo.checkout, "lines")
    two = await parted(repo, renames("old", "new"), removes("old"))
    conflict = await two.conflict()
    assert [(one.path, one.kind) for one in conflict.paths] == [("new", DELETED_THERE)]


async def test_two_files_renamed_to_one_are_told(repo: GitTrees) -> None:
    writes("one", LINES)(repo.checkout)
    writes("two", LINES[::-1])(repo.checkout)
    repo.base = repo.commit_in(repo.checkout, "lines")
    two = await parted(repo, renames("one", "new"), renames("two", "new"))
    conflict = await two.conflict()
    assert [(one.path, one.kind) for one in conflict.paths] == [("new", BOTH_ADDED)]


async def test_a_file_in_a_folder_that_was_renamed_is_told(repo: GitTrees) -> None:
    for n in range(3):
        writes(f"old/{n}", LINES + b"%d" % n)(repo.checkout)
    repo.base = repo.commit_in(repo.checkout, "lines")

    def moves_the_folder(tree: Path) -> None:
        (tree / "old").rename(tree / "new")

    two = await parted(repo, moves_the_folder, writes("old/more", b"more"))
    conflict = await two.conflict()
    assert [(one.path, one.kind) for one in conflict.paths] == [("new/more", FOLDER_RENAMED)]


async def test_one_file_is_merged_line_by_line(repo: GitTrees) -> None:
    writes("lines", LINES)(repo.checkout)
    repo.base = repo.commit_in(repo.checkout, "lines")
    two = await parted(
        repo, writes("lines", b"first\n" + LINES), writes("lines", LINES + b"last\n")
    )
    files = await repo.history.files(await two.merged())
    assert files["lines"] == b"first\n" + LINES + b"last\n"


async def test_a_name_that_is_no_text_is_right(repo: GitTrees) -> None:
    name = os.fsdecode(b"caf\xe9")
    two = await parted(repo, writes(name, HERE), writes(name, THERE))
    (one,) = (await two.conflict()).paths
    assert (one.path, one.kind) == (name, BOTH_ADDED)


# refusals


async def test_a_branch_that_another_tree_has_too_is_not_moved(repo: GitTrees) -> None:
    two = await apart(repo)
    head = await two.merged()
    repo.git("checkout", "--quiet", "--ignore-other-worktrees", SCOPE.branch)
    calls: list[Awaitable[object]] = [
        two.merge(),
        repo.integrator.hold(two.tree, two.start, two.other, head),
    ]
    for call in calls:
        with pytest.raises(StateError, match="is checked out at"):
            await call
        assert repo.git("rev-parse", SCOPE.branch) == head
        assert repo.git("status", "--porcelain") == ""


async def test_histories_that_have_nothing_in_common_are_refused(repo: GitTrees) -> None:
    two = await apart(repo)
    tree = repo.git("rev-parse", f"{two.other}^{{tree}}")
    two.other = repo.git("commit-tree", tree, "-m", "orphan")
    with pytest.raises(UpstreamError, match="unrelated histories"):
        await two.merge()
    state = await two.tree.state()
    assert (state.head, state.clean) == (two.start, True)


async def test_a_commit_that_is_not_there_is_refused(repo: GitTrees) -> None:
    two = await apart(repo)
    two.other = "0123456789abcdef0123456789abcdef01234567"
    with pytest.raises(UpstreamError, match="0123456789abcdef"):
        await two.merge()
    assert (await two.tree.state()).clean


async def test_without_an_identity_no_merge_is_claimed(repo: GitTrees) -> None:
    two = await conflicting(repo)
    conflict = await two.conflict()
    writes("calc.py", HERE)(two.tree.path)
    repo.git("config", "--unset", "user.email")
    with pytest.raises(UpstreamError, match="commit failed"):
        await two.conclude(conflict)
    await two.assert_held()
    repo.git("config", "user.email", "person@example.org")
    merged = await two.conclude(conflict)
    assert isinstance(merged, Merged)
    assert parents(repo, merged.head) == [two.start, two.other]


async def test_a_tree_of_another_kind_is_our_bug(repo: GitTrees, tmp_path: Path) -> None:
    from adapters.memory.memory_trees import memory_trees

    (tmp_path / "memory").mkdir()
    memory = memory_trees(tmp_path / "memory")
    tree = await memory.provider.open(SCOPE, memory.base)
    with pytest.raises(InternalError):
        await repo.integrator.unresolved(tree, Conflict(()))


# what a kill leaves


KILLS_GIT = "kill -9 $PPID; exit 1"


@pytest.mark.parametrize("where", ["merge.deadly.driver", "filter.deadly.smudge"])
async def test_a_git_killed_inside_a_merge_loses_nothing(repo: GitTrees, where: str) -> None:
    attribute = "merge=deadly" if where.startswith("merge") else "filter=deadly"
    writes(".gitattributes", f"calc.py {attribute}\n".encode())(repo.checkout)
    repo.base = repo.commit_in(repo.checkout, "attributes")
    two = await parted(repo, writes("calc.py", HERE), writes("calc.py", THERE))
    writes("x.ignored", b"mine")(two.tree.path)
    child = await repo.provider.open(CHILD, repo.base)
    two.other = repo.commit_ignored_in(child.path, "x.ignored", THERE, "tracked")
    repo.git("config", where, KILLS_GIT)
    with pytest.raises(UpstreamError, match="git merge failed"):
        await two.merge()
    repo.git("config", "--unset", where)
    two.tree = await repo.another_provider().open(SCOPE, repo.base)
    conflict = await two.conflict()
    assert [one.path for one in conflict.paths] == ["calc.py"]
    writes("calc.py", b"both")(two.tree.path)
    merged = await two.conclude(conflict)
    assert isinstance(merged, Merged)
    assert parents(repo, merged.head) == [two.start, two.other]
    assert (await repo.history.files(merged.head))["x.ignored"] == THERE
    assert b"mine" in await kept_contents(repo)


async def test_a_merge_killed_before_it_said_so_is_made_again(repo: GitTrees) -> None:
    two = await apart(repo)
    repo.git("merge", "--no-commit", "--no-ff", two.other, cwd=two.tree.path)
    place = git_dir(repo, two.tree.path)
    for name in ("MERGE_HEAD", "MERGE_MODE", "MERGE_MSG"):
        (place / name).unlink()
    (place / "index.lock").touch()
    (heads(repo) / "agl" / "fix.lock").touch()
    await two.assert_rests_at_a_merge(await two.merged(), SUM)


async def test_half_a_checkout_is_made_whole(repo: GitTrees) -> None:
    two = await apart(repo)
    writes("there", THERE[:2])(two.tree.path)
    (git_dir(repo, two.tree.path) / "index").write_bytes(b"DIRC")
    await two.assert_rests_at_a_merge(await two.merged(), SUM)


async def test_a_commit_whose_end_was_not_noted_is_taken(repo: GitTrees) -> None:
    two = await apart(repo)
    head = await two.merged()
    (git_dir(repo, two.tree.path) / "MERGE_HEAD").write_text(two.other + "\n")
    assert not (await two.tree.state()).clean
    assert await two.conclude(Conflict(())) == Merged(head)
    await two.assert_rests_at_a_merge(head, SUM)


async def test_a_hold_that_was_half_made_is_finished(repo: GitTrees) -> None:
    two = await apart(repo)
    head = await two.merged()
    (git_dir(repo, two.tree.path) / "MERGE_HEAD").write_text(two.other + "\n")
    for lock in (git_dir(repo, two.tree.path) / "HEAD.lock", heads(repo) / "agl" / "fix.lock"):
        lock.touch()
    await repo.integrator.hold(two.tree, two.start, two.other, head)
    await two.assert_held()


async def test_a_merge_begins_beside_a_dead_gits_lock(repo: GitTrees) -> None:
    two = await apart(repo)
    (git_dir(repo, two.tree.path) / "index.lock").touch()
    await repo.integrator.begin(two.tree, two.other, KEEPING)
    await two.assert_held()


async def test_a_restore_that_was_killed_resolves_nothing(repo: GitTrees) -> None:
    two = await conflicting(repo)
    conflict = await two.conflict()
    repo.git("add", "--all", cwd=two.tree.path)
    assert await two.conclude(conflict) == conflict


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
async def test_what_is_hidden_beside_a_conclusion_is_kept(repo: GitTrees, flag: str) -> None:
    two = await apart(repo)
    head = await two.merged()
    repo.git("update-index", flag, "calc.py", cwd=two.tree.path)
    writes("calc.py", b"hidden")(two.tree.path)
    assert await two.conclude(Conflict(())) == Merged(head)
    await two.assert_rests_at_a_merge(head, SUM)
    assert b"hidden" in await kept_contents(repo)


async def _merge(two: Parted, _: Conflict) -> None:
    assert isinstance(await two.merge(), Merged | Conflict)


async def _conclude(two: Parted, conflict: Conflict) -> None:
    await two.conclude(conflict)


async def _hold(two: Parted, _: Conflict) -> None:
    head = (await two.tree.state()).head
    if head != two.start:
        await two.repo.integrator.hold(two.tree, two.start, two.other, head)


async def _begin(two: Parted, _: Conflict) -> None:
    await two.tree.restore(two.start, KEEPING)
    await two.repo.integrator.begin(two.tree, two.other, KEEPING)


Call = Callable[[Parted, Conflict], Awaitable[None]]
KILLED: dict[str, tuple[Call, str]] = {
    "merge of a dirty tree": (_merge, "dirty"),
    "merge in a held tree": (_merge, "held"),
    "conclude": (_conclude, "held"),
    "conclude beside a merge": (_conclude, "merged"),
    "hold": (_hold, "merged"),
    "begin": (_begin, "dirty"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("call", "before"), KILLED.values(), ids=KILLED.keys())
async def test_killed_at_any_process_it_is_finished_by_the_next(
    tmp_path: Path, call: Call, before: str
) -> None:
    at, ended = 0, False
    while not ended:
        place = tmp_path / str(at)
        place.mkdir()
        processes = MortalProcesses()
        repo = GitTrees(place, processes)
        two = await conflicting(repo)
        conflict = Conflict(())
        if before == "held":
            conflict = await two.conflict()
        if before == "merged":
            held = await two.conflict()
            writes("calc.py", b"first\n")(two.tree.path)
            assert isinstance(await two.conclude(held), Merged)
        writes("calc.py", b"typed\n")(two.tree.path)
        writes("new", b"typed too\n")(two.tree.path)
        writes("x.ignored", b"ignored\n")(two.tree.path)
        processes.left = at
        try:
            await call(two, conflict)
            ended = True
        except Killed:
            pass
        processes.left = None
        two.tree = await repo.another_provider().open(SCOPE, repo.base)
        two.repo.integrator = repo.another_integrator()
        await call(two, conflict)
        await _assert_all_is_there(repo, two)
        if call is _begin:
            writes("calc.py", b"both\n")(two.tree.path)
            head = await two.tree.commit_all(two.start, "step", KEEPING)
        else:
            merged = await two.conclude(conflict)
            if isinstance(merged, Conflict):
                writes("calc.py", b"both\n")(two.tree.path)
                merged = await two.conclude(merged)
            assert isinstance(merged, Merged)
            head = merged.head
        assert parents(repo, head) == [two.start, two.other]
        state = await two.tree.state()
        assert (state.head, state.attached, state.clean) == (head, True, True)
        await _assert_all_is_there(repo, two)
        at += 1
    assert at > 1


async def _assert_all_is_there(repo: GitTrees, two: Parted) -> None:
    head = (await two.tree.state()).head
    found = await kept_contents(repo)
    found |= {file.read_bytes() for file in two.tree.path.rglob("*") if file.is_file()}
    found |= set((await repo.history.files(head)).values())
    assert {b"typed\n", b"typed too\n", b"ignored\n"} <= found


# turns


async def _child(repo: GitTrees, name: str) -> str:
    child = await repo.provider.open(SCOPE.child(Namespace(name)), repo.base)
    writes(name, name.encode())(child.path)
    return await child.commit_all(repo.base, name, KEEPING)


async def test_landings_at_once_take_turns(repo: GitTrees) -> None:
    tree = await repo.provider.open(SCOPE, repo.base)
    names = ["one", "two", "three"]
    others = [await _child(repo, name) for name in names]
    landed = await asyncio.gather(
        *(
            repo.another_integrator().merge(tree, repo.base, other, f"land {name}", KEEPING)
            for name, other in zip(names, others, strict=True)
        )
    )
    assert all(isinstance(one, Merged) for one in landed)
    head = (await tree.state()).head
    assert await repo.history.files(head) == BASE_FILES | {name: name.encode() for name in names}
    assert repo.git("rev-list", "--merges", "--count", head) == "3"
    assert await repo.kept.items() == ()


@pytest.mark.slow
async def test_landings_of_processes_take_turns(repo: GitTrees) -> None:
    tree = await repo.provider.open(SCOPE, repo.base)
    others = [await _child(repo, name) for name in ("one", "two")]
    turn = ("agl-merges", git_dir(repo, tree.path).name)
    with FilesystemLocks(repo.repository.common_dir).hold(turn, wait_s=0):
        landings = [await _landing(repo, other) for other in others]
        for one in landings:
            assert one.stdout is not None
            assert await one.stdout.readline() == b"waiting\n"
    for one in landings:
        said, _ = await one.communicate()
        assert said.split()[-1] == b"Merged"
    head = (await tree.state()).head
    assert await repo.history.files(head) == BASE_FILES | {"one": b"one", "two": b"two"}
    assert await repo.kept.items() == ()


async def _landing(repo: GitTrees, other: str) -> asyncio.subprocess.Process:
    script = Path(__file__).with_name("landing_of_one.py")
    return await asyncio.create_subprocess_exec(
        *(sys.executable, str(script), str(repo.place), repo.base, other),
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=asyncio.subprocess.PIPE,
    )


# submodules


def with_submodule(repo: GitTrees) -> None:
    origin = repo.place / "origin"
    origin.mkdir()
    repo.git("init", "--quiet", "--initial-branch=main", cwd=origin)
    repo.git("config", "--global", "user.name", "A Person")
    repo.git("config", "--global", "user.email", "person@example.org")
    writes("lib.py", b"lib")(origin)
    repo.commit_in(origin, "lib")
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(origin), "sub")
    repo.base = repo.commit_in(repo.checkout, "with a submodule")


async def test_a_commit_of_a_submodule_is_brought_and_told(repo: GitTrees) -> None:
    with_submodule(repo)

    def change(tree: Path) -> None:
        writes("sub/lib.py", b"better lib")(tree)
        repo.commit_in(tree / "sub", "better")

    two = await parted(repo, writes("here", HERE), change)
    merged = await two.merge()
    assert isinstance(merged, Merged)
    (told,) = merged.warnings
    inner = repo.git("rev-parse", f"{merged.head}:sub")
    assert "'sub'" in told
    assert inner in told
    assert (two.tree.path / "sub" / "lib.py").read_bytes() == b"better lib"
    assert (await two.tree.state()).clean
    child = await repo.provider.open(CHILD, repo.base)
    assert repo.git("rev-parse", "HEAD", cwd=child.path / "sub") == inner


async def test_a_submodule_that_moved_survives_a_conflict_elsewhere(repo: GitTrees) -> None:
    with_submodule(repo)

    def change(tree: Path) -> None:
        writes("sub/lib.py", b"better lib")(tree)
        repo.commit_in(tree / "sub", "better")
        writes("calc.py", THERE)(tree)

    two = await parted(repo, writes("calc.py", HERE), change)
    conflict = await two.conflict()
    assert [one.path for one in conflict.paths] == ["calc.py"]
    writes("calc.py", b"both")(two.tree.path)
    merged = await two.conclude(conflict)
    assert isinstance(merged, Merged)
    assert len(merged.warnings) == 1
    assert repo.git("rev-parse", f"{merged.head}:sub") == repo.git("rev-parse", f"{two.other}:sub")


async def test_a_submodule_that_moved_on_both_sides_is_told(repo: GitTrees) -> None:
    with_submodule(repo)

    def moves(content: bytes) -> Change:
        def change(tree: Path) -> None:
            writes("sub/lib.py", content)(tree)
            repo.commit_in(tree / "sub", "moved")

        return change

    two = await parted(repo, moves(b"mine"), moves(b"yours"))
    conflict = await two.conflict()
    assert [(one.path, one.kind) for one in conflict.paths] == [("sub", SUBMODULE_MOVED)]
    assert await two.conclude(conflict) == conflict
    theirs = repo.git("rev-parse", f"{two.other}:sub")
    repo.git("checkout", "--quiet", theirs, cwd=two.tree.path / "sub")
    merged = await two.conclude(conflict)
    assert isinstance(merged, Merged)
    assert repo.git("rev-parse", f"{merged.head}:sub") == theirs


async def test_a_commit_of_a_submodule_that_is_known_needs_no_word(repo: GitTrees) -> None:
    with_submodule(repo)
    origin = repo.place / "origin"
    writes("lib.py", b"newer lib")(origin)
    newer = repo.commit_in(origin, "newer")
    repo.git("fetch", "--quiet", "origin", cwd=repo.checkout / "sub")

    def change(tree: Path) -> None:
        repo.git("fetch", "--quiet", str(origin), cwd=tree / "sub")
        repo.git("checkout", "--quiet", newer, cwd=tree / "sub")

    two = await parted(repo, writes("here", HERE), change)
    merged = await two.merge()
    assert merged == Merged((await two.tree.state()).head)
    assert (two.tree.path / "sub" / "lib.py").read_bytes() == b"newer lib"


async def test_a_new_submodule_is_brought_and_told(repo: GitTrees) -> None:
    with_submodule(repo)
    repo.reset_in(repo.checkout, "HEAD~1")
    repo.base = repo.git("rev-parse", "HEAD")

    def change(tree: Path) -> None:
        repo.git(
            *("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "--name", "lib"),
            *(str(repo.place / "origin"), "lib"),
            cwd=tree,
        )

    two = await parted(repo, writes("here", HERE), change)
    merged = await two.merge()
    assert isinstance(merged, Merged)
    assert len(merged.warnings) == 1
    assert (two.tree.path / "lib" / "lib.py").read_bytes() == b"lib"
    assert (await two.tree.state()).clean


async def test_a_bare_link_to_a_commit_is_told(repo: GitTrees) -> None:
    two = await apart(repo)
    child = await repo.provider.open(CHILD, repo.base)
    repo.nest_in(child.path, "inner", with_commit=True)
    two.other = repo.commit_in(child.path, "a link, no submodule")
    merged = await two.merge()
    assert isinstance(merged, Merged)
    (told,) = merged.warnings
    assert "'inner'" in told


# figures


async def test_a_landing_costs_few_processes(tmp_path: Path) -> None:
    processes = CountedProcesses()
    repo = GitTrees(tmp_path, processes)
    tree = await repo.provider.open(SCOPE, repo.base)
    processes.started.clear()
    child = await repo.provider.open(CHILD, repo.base)
    writes("there", THERE)(child.path)
    other = await child.commit_all(repo.base, "there", KEEPING)
    before = len(processes.started)
    merged = await repo.integrator.merge(tree, repo.base, other, "land", KEEPING)
    assert isinstance(merged, Merged)
    assert len(processes.started) - before == 3
    assert len(processes.started) <= 14, "a child's tree, its step's commit, its landing"
    processes.started.clear()
    nothing = await repo.integrator.merge(tree, merged.head, other, "land", KEEPING)
    assert nothing == NothingToMerge()
    assert len(processes.started) == 3, "nothing to merge"


async def test_a_conflict_costs_few_processes(tmp_path: Path) -> None:
    processes = CountedProcesses()
    repo = GitTrees(tmp_path, processes)
    two = await conflicting(repo)
    processes.started.clear()
    conflict = await two.conflict()
    assert [one.kind for one in conflict.paths] == [BOTH_CHANGED]
    assert len(processes.started) == 4, "the merge"
    processes.started.clear()
    await repo.integrator.unresolved(two.tree, conflict)
    assert len(processes.started) == 1, "what is open"
    writes("calc.py", b"both")(two.tree.path)
    processes.started.clear()
    assert isinstance(await two.conclude(conflict), Merged)
    assert len(processes.started) == 7, "its end"
