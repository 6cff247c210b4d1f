"""Making trees, finding them again, and refusing what is not ours."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
from pathlib import Path

import pytest

from adapters.git.hands import IDENTITY, GitTrees
from agl.adapters.filesystem import FilesystemLocks
from agl.ports.errors import AglError, StateError, UpstreamError
from agl.ports.ids import Label, Namespace, Scope
from agl.testing.contracts.trees import BASE_FILES, CHILD, KEEPING, SCOPE, can_be_found, files_below


def _registrations(repo: GitTrees) -> list[str]:
    folder = repo.repository.common_dir / "worktrees"
    return sorted(one.name for one in folder.iterdir()) if folder.is_dir() else []


async def test_a_dead_registration_is_dropped_and_others_stay(repo: GitTrees) -> None:
    """Scenario A2."""
    other = repo.place / "other"
    repo.git("worktree", "add", "--quiet", "-b", "other", str(other))
    shutil.rmtree(other)
    tree = await repo.provider.open(SCOPE, repo.base)
    shutil.rmtree(tree.path)
    tree = await repo.another_provider().open(SCOPE, repo.base)
    assert files_below(tree.path) == BASE_FILES
    assert _registrations(repo) == ["_base", "other"]


async def test_what_only_a_vanished_tree_held_is_kept(repo: GitTrees) -> None:
    tree = await repo.provider.open(SCOPE, repo.base)
    repo.detach_in(tree.path)
    (tree.path / "one.txt").write_bytes(b"1")
    tip = repo.commit_in(tree.path, "one")
    repo.git("checkout", "--quiet", SCOPE.branch, cwd=tree.path)
    shutil.rmtree(tree.path)
    await repo.another_provider().open(SCOPE, repo.base)
    assert await can_be_found(repo, tip)


async def test_a_tree_that_lost_its_mark_is_taken_up_again(repo: GitTrees) -> None:
    tree = await repo.provider.open(SCOPE, repo.base)
    (tree.path / "typed.txt").write_bytes(b"typed")
    (tree.path / ".git").unlink()
    tree = await repo.another_provider().open(SCOPE, repo.base)
    assert not (await tree.state()).clean
    head = await tree.commit_all(repo.base, "step", KEEPING)
    assert (await repo.history.files(head))["typed.txt"] == b"typed"


async def test_a_tree_that_points_elsewhere_is_not_ours(repo: GitTrees) -> None:
    tree = await repo.provider.open(SCOPE, repo.base)
    (tree.path / ".git").unlink()
    repo.git("init", "--quiet", cwd=tree.path)
    with pytest.raises(StateError, match="not a tree of"):
        await repo.another_provider().open(SCOPE, repo.base)


async def test_what_a_vanished_tree_had_staged_is_kept(repo: GitTrees) -> None:
    tree = await repo.provider.open(SCOPE, repo.base)
    (tree.path / "staged.txt").write_bytes(b"staged")
    repo.git("add", "staged.txt", cwd=tree.path)
    shutil.rmtree(tree.path)
    await repo.another_provider().open(SCOPE, repo.base)
    (item,) = await repo.kept.items()
    assert item.folder is not None
    was = item.folder.with_name(item.folder.name + "@git")
    listed = repo.git(
        "ls-files", "--stage", "staged.txt", env={"GIT_INDEX_FILE": str(was / "index")}
    )
    assert repo.git("cat-file", "blob", listed.split()[1]) == "staged"


@pytest.mark.parametrize("what", ["a file", "a link", "a mark that is a link", "a dead link"])
async def test_what_stands_in_the_place_of_a_tree_moves_with_what_is_said(
    repo: GitTrees, what: str
) -> None:
    tree = await repo.provider.open(SCOPE, repo.base)
    away = tree.path.with_name("elsewhere")
    if what == "a mark that is a link":
        (tree.path / ".git").rename(away)
        (tree.path / ".git").symlink_to(away)
    else:
        tree.path.rename(away)
    if what == "a file":
        tree.path.write_bytes(b"precious")
    elif what == "a link":
        tree.path.symlink_to(repo.checkout)
    elif what == "a dead link":
        tree.path.symlink_to("nothing")
    with pytest.raises(StateError, match="not a tree of") as refused:
        await repo.another_provider().open(SCOPE, repo.base)
    words = shlex.split(str(refused.value).split("`")[1])
    assert words[0] == "mv"
    Path(words[1]).rename(words[2])
    tree = await repo.another_provider().open(SCOPE, repo.base)
    assert files_below(tree.path) == BASE_FILES
    assert os.path.lexists(words[2])


async def test_a_half_made_tree_is_made_again(repo: GitTrees) -> None:
    tree = await repo.provider.open(SCOPE, repo.base)
    git_dir = Path(repo.git("rev-parse", "--absolute-git-dir", cwd=tree.path))
    (git_dir / "locked").write_text("initializing\n")
    (tree.path / "calc.py").unlink()
    tree = await repo.another_provider().open(SCOPE, repo.base)
    assert files_below(tree.path) == BASE_FILES
    assert (await tree.state()).clean


@pytest.mark.parametrize("name", ["here", "it's here"])
async def test_a_branch_checked_out_elsewhere_frees_with_what_is_said(
    tmp_path: Path, name: str
) -> None:
    """Scenario A5."""
    (tmp_path / name).mkdir()
    repo = GitTrees(tmp_path / name)
    repo.branch_in(repo.checkout, SCOPE.branch)
    with pytest.raises(StateError) as refused:
        await repo.provider.open(SCOPE, repo.base)
    assert shlex.join(["git", "-C", str(repo.checkout), "checkout", "--detach"]) in str(
        refused.value
    )
    _type_what_is_said(repo, refused.value)
    assert (await (await repo.provider.open(SCOPE, repo.base)).state()).attached


@pytest.mark.parametrize("how", ["--merge", "--apply"])
async def test_a_branch_that_is_being_rebased_elsewhere_is_refused(
    repo: GitTrees, how: str
) -> None:
    repo.branch_in(repo.checkout, SCOPE.branch)
    (repo.checkout / "calc.py").write_bytes(b"ours")
    repo.commit_in(repo.checkout, "ours")
    repo.switch_in(repo.checkout, "main")
    (repo.checkout / "calc.py").write_bytes(b"theirs")
    repo.commit_in(repo.checkout, "theirs")
    with pytest.raises(AssertionError):
        repo.git("rebase", how, "main", SCOPE.branch)
    with pytest.raises(StateError, match="checked out at"):
        await repo.provider.open(SCOPE, repo.base)


async def test_a_trees_root_that_cannot_be_written_leaves_nothing(repo: GitTrees) -> None:
    """Scenario A6."""
    repo.trees_root.write_bytes(b"a file in its place")
    repo.connect()
    with pytest.raises(UpstreamError, match="trees_root"):
        await repo.provider.check(SCOPE.label)
    with pytest.raises(AglError):
        await repo.provider.open(SCOPE, repo.base)
    assert await repo.history.tip(SCOPE.branch) is None
    assert _registrations(repo) == []
    assert repo.git("status", "--porcelain", "--ignored") == ""


@pytest.mark.parametrize("inside", [".", "trees", ".git/trees"])
async def test_a_trees_root_inside_the_repository_is_refused(repo: GitTrees, inside: str) -> None:
    repo.trees_root = repo.checkout / inside
    repo.connect()
    with pytest.raises(StateError, match="inside the repository"):
        await repo.provider.check(SCOPE.label)


async def test_24_trees_are_made_at_once(repo: GitTrees) -> None:
    """Scenario A9, in two processes."""
    providers = [repo.another_provider(), repo.another_provider()]
    scopes = [SCOPE.child(Namespace(f"n{number}")) for number in range(24)]
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(providers[number % 2].open(scope, repo.base))
            for number, scope in enumerate(scopes)
        ]
    for task in tasks:
        assert files_below(task.result().path) == BASE_FILES
    assert len(_registrations(repo)) == 24


async def test_a_tree_is_made_once_nobody_else_makes_one(repo: GitTrees) -> None:
    locks = FilesystemLocks(repo.repository.common_dir)
    with locks.hold(("agl-trees",), wait_s=0):
        making = asyncio.create_task(repo.provider.open(SCOPE, repo.base))
        await asyncio.sleep(0.2)
        assert not making.done()
        assert not repo.provider.folder(SCOPE).exists()
    assert files_below((await making).path) == BASE_FILES


async def test_locks_that_a_dead_git_left_are_gone_from_an_opened_tree(repo: GitTrees) -> None:
    tree = await repo.provider.open(SCOPE, repo.base)
    git_dir = Path(repo.git("rev-parse", "--absolute-git-dir", cwd=tree.path))
    (git_dir / "index.lock").touch()
    (repo.repository.common_dir / "refs/heads" / f"{SCOPE.branch}.lock").touch()
    await repo.another_provider().open(SCOPE, repo.base)
    repo.commit_in(tree.path, "by the agent")


async def test_a_creation_that_fails_leaves_nothing(repo: GitTrees) -> None:
    commit = repo.git("rev-parse", f"{repo.base}:calc.py")
    file = repo.repository.common_dir / "objects" / commit[:2] / commit[2:]
    file.chmod(0o600)
    file.write_bytes(b"damaged")
    with pytest.raises(UpstreamError):
        await repo.provider.open(SCOPE, repo.base)
    assert await repo.history.tip(SCOPE.branch) is None
    assert _registrations(repo) == []
    assert not repo.trees_root.exists()


@pytest.mark.parametrize("name", ["bare.git", "proj/.git"])
async def test_a_bare_repository_has_trees(repo: GitTrees, tmp_path: Path, name: str) -> None:
    """Scenario A13."""
    bare = tmp_path / name
    repo.git("clone", "--quiet", "--bare", str(repo.checkout), str(bare))
    for key, value in IDENTITY.items():
        repo.git("config", f"user.{key}", value, cwd=bare)
    linked = bare.parent / "linked"
    repo.git("worktree", "add", "--quiet", str(linked), "main", cwd=bare)
    around = bare.parent if bare.name == ".git" else bare
    for start, top in ((around, None), (linked, linked)):
        repo.connect(start)
        assert (repo.repository.common_dir, repo.repository.top) == (bare, top)
        await repo.history.check_ready()
        await repo.provider.check(Label("new"))
        assert await repo.history.resolve("HEAD") == repo.base
        assert (await repo.guards.read(())).broken_config is None
        tree = await repo.provider.open(SCOPE, repo.base)
        (tree.path / f"from-{start.name}").write_bytes(b"new")
        start_at = (await tree.state()).head
        head = await tree.commit_all(start_at, "step", KEEPING)
        assert await repo.history.checked_out_at(SCOPE.branch) == tree.path
        assert head != start_at
    assert await repo.history.checked_out_at("main") == linked


async def test_a_symbolic_link_leads_to_the_same_trees(repo: GitTrees, tmp_path: Path) -> None:
    """Scenario A15."""
    tree = await repo.provider.open(SCOPE, repo.base)
    before = repo.repository
    link = tmp_path / "link"
    link.symlink_to(repo.checkout)
    roots = tmp_path / "trees-link"
    roots.symlink_to(repo.trees_root)
    repo.trees_root = roots
    repo.connect(link / "docs")
    assert repo.repository == before
    again = await repo.provider.open(SCOPE, repo.base)
    assert again.path == tree.path
    assert (await again.state()).attached


async def test_the_users_checkout_reads_as_before(repo: GitTrees) -> None:
    """Scenario A17."""
    (repo.checkout / "calc.py").write_bytes(b"typing")
    (repo.checkout / "draft.txt").write_bytes(b"draft")
    repo.git("add", "draft.txt")
    before = repo.git("status", "--porcelain=v2", "--branch", "--ignored")
    tree = await repo.provider.open(SCOPE, repo.base)
    (tree.path / "calc.py").write_bytes(b"fixed")
    await tree.commit_all(repo.base, "step", KEEPING)
    await tree.detach()
    await repo.provider.clear((SCOPE,))
    assert repo.git("status", "--porcelain=v2", "--branch", "--ignored") == before


async def test_a_hook_that_fails_makes_no_creation_fail(repo: GitTrees) -> None:
    """Scenario A19."""
    hook = repo.checkout / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    tree = await repo.provider.open(SCOPE, repo.base)
    assert (await tree.state()).clean


@pytest.mark.parametrize("packed", [False, True])
async def test_a_branch_called_agl_is_freed_by_what_is_said(repo: GitTrees, packed: bool) -> None:
    """Scenario A22."""
    repo.git("branch", "agl")
    if packed:
        repo.git("pack-refs", "--all")
    with pytest.raises(StateError) as refused:
        await repo.provider.check(SCOPE.label)
    _type_what_is_said(repo, refused.value)
    await repo.provider.check(SCOPE.label)
    await repo.provider.open(SCOPE, repo.base)


@pytest.mark.parametrize(
    "branch", ["agl/fix", "agl/Fix", "agl/fix/deep", "agl/_work/fix/left", "agl/fix/it's"]
)
async def test_a_branch_in_the_way_is_freed_by_what_is_said(repo: GitTrees, branch: str) -> None:
    repo.git("branch", branch)
    with pytest.raises(StateError) as refused:
        await repo.provider.check(SCOPE.label)
    _type_what_is_said(repo, refused.value)
    await repo.provider.check(SCOPE.label)
    for scope in (SCOPE, CHILD):
        await repo.provider.open(scope, repo.base)


@pytest.mark.parametrize("remote", ["up", "o up"])
async def test_a_mirror_fetch_is_refused_until_what_is_said_was_done(
    repo: GitTrees, remote: str
) -> None:
    repo.git("config", f"remote.{remote}.url", "/nowhere")
    repo.git("config", f"remote.{remote}.fetch", "+refs/*:refs/*")
    with pytest.raises(StateError) as refused:
        await repo.provider.check(SCOPE.label)
    _type_what_is_said(repo, refused.value)
    await repo.provider.check(SCOPE.label)


def _type_what_is_said(repo: GitTrees, error: Exception) -> None:
    words = shlex.split(str(error).split("`")[1])
    assert words[0] == "git"
    repo.git(*words[1:])


async def test_a_local_submodule_is_there(repo: GitTrees, tmp_path: Path) -> None:
    """Scenario A10."""
    _add_submodule(repo, tmp_path)
    config = (repo.checkout / ".git" / "config").read_bytes()
    tree = await repo.provider.open(SCOPE, repo.git("rev-parse", "HEAD"))
    assert tree.warnings == ()
    assert (tree.path / "lib" / "lib.txt").read_bytes() == b"library"
    assert (await tree.state()).clean
    assert (repo.checkout / ".git" / "config").read_bytes() == config


async def test_a_submodule_that_cannot_be_filled_is_named(repo: GitTrees, tmp_path: Path) -> None:
    _add_submodule(repo, tmp_path)
    shutil.rmtree(repo.checkout / ".git" / "modules" / "lib" / "objects")
    tree = await repo.provider.open(SCOPE, repo.git("rev-parse", "HEAD"))
    assert [warning for warning in tree.warnings if "'lib'" in warning]


async def test_a_submodule_does_not_come_from_a_tree_that_is_not_whole(
    repo: GitTrees, tmp_path: Path
) -> None:
    _add_submodule(repo, tmp_path)
    base = repo.git("rev-parse", "HEAD")
    tree = await repo.provider.open(SCOPE, base)
    git_dir = Path(repo.git("rev-parse", "--absolute-git-dir", cwd=tree.path))
    repo.git("submodule", "--quiet", "deinit", "--all")
    shutil.rmtree(repo.checkout / ".git" / "modules")
    other = await repo.provider.open(CHILD, base)
    assert (other.path / "lib" / "lib.txt").read_bytes() == b"library"
    (git_dir / "locked").write_text("agl: being made")
    other_dir = Path(repo.git("rev-parse", "--absolute-git-dir", cwd=other.path))
    (other_dir / "locked").write_text("agl: being made")
    third = await repo.provider.open(SCOPE.child(Namespace("third")), base)
    assert not (third.path / "lib" / "lib.txt").exists()


@pytest.mark.parametrize("recurse", ["false", "true"])
async def test_what_was_typed_in_a_submodule_is_kept(
    repo: GitTrees, tmp_path: Path, recurse: str
) -> None:
    _add_submodule(repo, tmp_path)
    repo.git("config", "submodule.recurse", recurse)
    base = repo.git("rev-parse", "HEAD")
    tree = await repo.provider.open(SCOPE, base)
    (tree.path / "lib" / "lib.txt").write_bytes(b"committed")
    tip = repo.commit_in(tree.path / "lib", "inner")
    (tree.path / "lib" / "typed.txt").write_bytes(b"typed")
    await tree.restore(base, KEEPING)
    assert (await tree.state()).clean
    assert (tree.path / "lib" / "lib.txt").read_bytes() == b"library"
    kept = [file for item in await repo.kept.items() for file in _files(item.folder)]
    assert b"typed" in kept
    assert tip in repo.git("log", "--glob=refs/agl/kept", "--format=%H", cwd=tree.path / "lib")


@pytest.mark.parametrize("recurse", ["false", "true"])
async def test_a_submodule_that_the_target_lacks_is_kept_whole(
    repo: GitTrees, tmp_path: Path, recurse: str
) -> None:
    _add_submodule(repo, tmp_path)
    repo.git("config", "submodule.recurse", recurse)
    tree = await repo.provider.open(SCOPE, repo.git("rev-parse", "HEAD"))
    await tree.restore(repo.base, KEEPING)
    assert files_below(tree.path) == BASE_FILES
    kept = [file for item in await repo.kept.items() for file in _files(item.folder)]
    assert b"library" in kept


def _files(folder: Path | None) -> list[bytes]:
    return list(files_below(folder).values()) if folder else []


def _add_submodule(repo: GitTrees, place: Path) -> None:
    library = place / "library"
    library.mkdir()
    repo.git("init", "--quiet", "--initial-branch=main", cwd=library)
    (library / "lib.txt").write_bytes(b"library")
    (repo.place / "gitconfig").write_text(
        "".join(["[user]\n", *(f"\t{key} = {value}\n" for key, value in IDENTITY.items())])
    )
    repo.commit_in(library, "library")
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "lib")
    repo.commit_in(repo.checkout, "with a library")


async def test_labels_of_other_runs_do_not_meet(repo: GitTrees) -> None:
    other = Scope(SCOPE.project, Label("fix2"))
    trees = [await repo.provider.open(scope, repo.base) for scope in (SCOPE, other, CHILD)]
    assert len({tree.path for tree in trees}) == 3
