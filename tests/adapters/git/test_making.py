"""Trees are made whole or not at all, many at once, whoever dies meanwhile."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from adapters.git import makers
from adapters.git.hands import GitTrees, Killed, MortalProcesses
from agl.adapters.filesystem import FilesystemLocks
from agl.adapters.git.equipment import Equipment
from agl.adapters.git.workspaces import GitWorkspaces
from agl.adapters.shell import ShellVerifier
from agl.adapters.system import SystemClock, SystemProcesses
from agl.ports.errors import UpstreamError
from agl.ports.ids import Namespace
from agl.ports.processes import Marker
from agl.testing.contracts.trees import (
    BASE_FILES,
    KEEPING,
    SCOPE,
    files_below,
)


def equipped(
    repo: GitTrees, *, copy: tuple[str, ...] = (), setup: str | None = None, timeout_s: float = 60
) -> GitWorkspaces:
    """A provider as a new process builds it for a project with these settings."""
    found = repo.repository
    verifier = ShellVerifier(repo.processes, repo.environ)
    return GitWorkspaces(
        repo.runner,
        found,
        SCOPE.project,
        repo.trees_root,
        FilesystemLocks(found.common_dir),
        SystemClock(),
        Equipment(
            repo.runner,
            verifier,
            found.top,
            str(repo.place),
            copy=copy,
            setup=setup,
            timeout_s=timeout_s,
        ),
    )


def left_over(repo: GitTrees) -> list[str]:
    """Locks and unfinished registrations below the common directory; AGL's own locks stay, free."""
    common = repo.repository.common_dir
    found = [one for one in common.rglob("*.lock") if not one.name.startswith("agl-")]
    found += (common / "worktrees").glob("*/locked")
    return [str(one.relative_to(common)) for one in found]


def nothing_was_made(repo: GitTrees) -> bool:
    common = repo.repository.common_dir
    return (
        not repo.trees_root.exists()
        and not list((common / "worktrees").glob("*"))
        and repo.git("branch", "--list", "agl/*") == ""
        and left_over(repo) == []
    )


@pytest.mark.parametrize("each", [4, pytest.param(24, marks=pytest.mark.slow)])
def test_three_processes_make_trees_at_once(repo: GitTrees, each: int) -> None:
    """Scenario A9."""
    names = [f"n{number}" for number in range(3 * each)]
    command = [sys.executable, makers.__file__, str(repo.place), repo.base]
    makers_at_work = [
        subprocess.Popen([*command, *names[at::3]], env=repo.environ, stderr=subprocess.PIPE)
        for at in range(3)
    ]
    for one in makers_at_work:
        _, said = one.communicate(timeout=100)
        assert one.returncode == 0, said.decode()
    for name in names:
        folder = repo.provider.folder(SCOPE.child(Namespace(name)))
        assert files_below(folder) == BASE_FILES
        assert repo.git("status", "--porcelain", cwd=folder) == ""
    branches = repo.git("branch", "--list", "agl/*", "--format=%(refname:short)").split()
    assert sorted(branches) == sorted(SCOPE.child(Namespace(name)).branch for name in names)
    assert len(list((repo.repository.common_dir / "worktrees").iterdir())) == len(names)
    assert left_over(repo) == []


async def test_trees_are_filled_while_another_is_set_up(repo: GitTrees) -> None:
    slow = equipped(repo, setup="while ! [ -e ../go ]; do sleep 0.02; done")
    making = asyncio.create_task(slow.open(SCOPE, repo.base))
    marked = repo.provider.folder(SCOPE) / "calc.py"
    while not marked.exists():
        await asyncio.sleep(0.01)
    other = SCOPE.child(Namespace("other"))
    tree = await asyncio.wait_for(repo.provider.open(other, repo.base), 60)
    assert files_below(tree.path) == BASE_FILES
    assert not making.done()
    (repo.provider.folder(SCOPE).parent / "go").touch()
    await making


async def test_two_tasks_that_open_one_tree_get_the_same(repo: GitTrees) -> None:
    provider = equipped(repo, setup="sleep 0.1; echo x >> made.ignored")
    one, two = await asyncio.gather(*(provider.open(SCOPE, repo.base) for _ in range(2)))
    assert one.path == two.path
    assert (one.path / "made.ignored").read_text() == "x\n"


async def test_a_maker_killed_anywhere_leaves_what_the_next_makes_whole(tmp_path: Path) -> None:
    processes = MortalProcesses()
    repo = GitTrees(tmp_path, processes)
    (repo.checkout / "x.ignored").write_bytes(b"x")
    repo.connect()
    for at in count():
        processes.left = at
        try:
            await equipped(repo, copy=("*.ignored",), setup="touch made.ignored").open(
                SCOPE, repo.base
            )
            break
        except Killed:
            processes.left = None
        tree = await equipped(repo, copy=("*.ignored",), setup="touch made.ignored").open(
            SCOPE, repo.base
        )
        assert files_below(tree.path) == BASE_FILES | {"x.ignored": b"x", "made.ignored": b""}
        assert (await tree.state()).clean
        assert left_over(repo) == []
        assert await repo.kept.items() == ()
        await repo.another_provider().clear((SCOPE,))
        await repo.kept.purge(SCOPE.label, None)
    assert at == 5, "add, fill, list, set up, look"


@pytest.mark.parametrize("how", ["exit 1", "kill -KILL $PPID"])
async def test_a_checkout_that_dies_leaves_nothing(repo: GitTrees, how: str) -> None:
    (repo.checkout / ".gitattributes").write_text("*.txt filter=odd\n")
    base = repo.commit_in(repo.checkout, "with a filter")
    repo.git("config", "filter.odd.smudge", f"sh -c '{how}'")
    repo.git("config", "filter.odd.required", "true")
    with pytest.raises(UpstreamError):
        await repo.provider.open(SCOPE, base)
    assert nothing_was_made(repo)
    for way in ("smudge", "clean"):
        repo.git("config", f"filter.odd.{way}", "cat")
    tree = await repo.provider.open(SCOPE, base)
    assert (await tree.state()).clean


async def test_a_setup_that_fails_leaves_nothing_and_says_why(repo: GitTrees) -> None:
    setup = "mkdir -p shut/in; chmod 500 shut; seq 30; echo broken >&2; exit 3"
    with pytest.raises(UpstreamError) as failed:
        await equipped(repo, setup=setup).open(SCOPE, repo.base)
    first, *said = str(failed.value).splitlines()
    assert "exit status 3" in first
    assert "agl init --setup" in first
    assert said == [*map(str, range(22, 31)), "broken"]
    assert nothing_was_made(repo)
    tree = await equipped(repo, setup="true").open(SCOPE, repo.base)
    assert files_below(tree.path) == BASE_FILES


async def test_a_setup_that_takes_too_long_leaves_nothing(repo: GitTrees) -> None:
    with pytest.raises(UpstreamError, match=r"time limit of 0\.2 s"):
        await equipped(repo, setup="sleep 60", timeout_s=0.2).open(SCOPE, repo.base)
    assert nothing_was_made(repo)


async def test_a_failed_setup_leaves_a_branch_that_was_there(repo: GitTrees) -> None:
    await repo.provider.open(SCOPE, repo.base)
    tree = repo.provider.folder(SCOPE)
    (tree / "one.txt").write_bytes(b"1")
    tip = repo.commit_in(tree, "one")
    tree.rename(tree.with_name("away"))
    with pytest.raises(UpstreamError):
        await equipped(repo, setup="false").open(SCOPE, repo.base)
    assert await repo.history.tip(SCOPE.branch) == tip
    assert left_over(repo) == []
    again = await repo.another_provider().open(SCOPE, repo.base)
    assert (await again.state()).head == tip


async def test_a_maker_that_is_cancelled_leaves_nothing(repo: GitTrees) -> None:
    making = asyncio.create_task(equipped(repo, setup="sleep 60").open(SCOPE, repo.base))
    while not (repo.provider.folder(SCOPE) / "calc.py").exists():
        await asyncio.sleep(0.01)
    making.cancel()
    with pytest.raises(asyncio.CancelledError):
        await making
    assert nothing_was_made(repo)
    assert await SystemProcesses().end(Marker(f"{repo.place}/{SCOPE.label}")) == ()


async def test_a_tree_that_was_not_whole_is_cleared_without_a_leftover(repo: GitTrees) -> None:
    tree = await repo.provider.open(SCOPE, repo.base)
    git_dir = Path(repo.git("rev-parse", "--absolute-git-dir", cwd=tree.path))
    (git_dir / "locked").write_text("agl: being made")
    (git_dir / "index").unlink()
    (tree.path / "calc.py").unlink()
    (cleared,) = await repo.another_provider().clear((SCOPE,))
    assert [item.commit for item in cleared.kept] == [repo.base]
    assert not git_dir.exists()


async def test_a_registration_without_a_place_is_removed_if_it_is_ours(repo: GitTrees) -> None:
    worktrees = repo.repository.common_dir / "worktrees"
    for name, reason in (("ours", "agl: being made"), ("theirs", "on a stick")):
        (worktrees / name).mkdir(parents=True)
        (worktrees / name / "locked").write_text(reason)
    await repo.provider.open(SCOPE, repo.base)
    assert sorted(one.name for one in worktrees.iterdir()) == ["_base", "theirs"]


# what comes with a tree


async def test_ignored_files_come_along_and_nothing_else(repo: GitTrees) -> None:
    checkout = repo.checkout
    for name in ("a.ignored", "deep/b.ignored", "deep/er/c.ignored", "not-asked.ignored", "new"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_bytes(name.encode())
    (checkout / "a.ignored").chmod(0o750)
    (checkout / "link.ignored").symlink_to("nowhere/at/all")
    (checkout / "calc.py").write_bytes(b"typing")
    patterns = ("a.ignored", "deep", "link.*", "calc.py", "new", "no such*", ":(exclude)a.ignored")
    tree = await equipped(repo, copy=patterns).open(SCOPE, repo.base)
    assert files_below(tree.path) == BASE_FILES | {
        "a.ignored": b"a.ignored",
        "deep/b.ignored": b"deep/b.ignored",
        "deep/er/c.ignored": b"deep/er/c.ignored",
        "link.ignored": b"nowhere/at/all",
    }
    assert (tree.path / "link.ignored").is_symlink()
    assert (tree.path / "a.ignored").stat().st_mode & 0o777 == 0o750
    nothing = [f"copy {one!r} brought nothing" for one in patterns[3:]]
    assert [told.split(",")[0] for told in tree.warnings] == nothing
    child = await equipped(repo, copy=patterns).open(SCOPE.child(Namespace("a")), repo.base)
    assert child.warnings == ()


async def test_a_star_stands_for_no_slash_and_two_for_any_folders(repo: GitTrees) -> None:
    for name in ("a.ignored", "x/b.ignored", "x/y/c.ignored"):
        (repo.checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (repo.checkout / name).write_bytes(b"")
    tree = await equipped(repo, copy=("*.ignored",)).open(SCOPE, repo.base)
    assert files_below(tree.path).keys() - BASE_FILES.keys() == {"a.ignored"}
    other = SCOPE.child(Namespace("other"))
    tree = await equipped(repo, copy=("**/*.ignored",)).open(other, repo.base)
    assert len(files_below(tree.path)) == len(BASE_FILES) + 3


async def test_what_the_commit_holds_is_not_overwritten(repo: GitTrees) -> None:
    outside = repo.place / "outside"
    outside.mkdir()
    (repo.checkout / "conf").symlink_to(outside)
    base = repo.commit_ignored_in(repo.checkout, "own.ignored", b"committed", "odd")
    repo.git("add", "conf")
    base = repo.commit_in(repo.checkout, "odder")
    repo.reset_in(repo.checkout, repo.base)
    (repo.checkout / "conf").mkdir()
    (repo.checkout / "conf" / "x.ignored").write_bytes(b"mine")
    (repo.checkout / "own.ignored").write_bytes(b"mine")
    tree = await equipped(repo, copy=("**/*.ignored",)).open(SCOPE, base)
    assert (tree.path / "own.ignored").read_bytes() == b"committed"
    assert list(outside.iterdir()) == []


async def test_a_setup_runs_in_the_new_tree_with_the_runs_mark(repo: GitTrees) -> None:
    tree = await equipped(repo, setup='echo "$PWD $AGL_RUN" > made.ignored').open(SCOPE, repo.base)
    assert (tree.path / "made.ignored").read_text() == f"{tree.path} {repo.place}/fix\n"
    (tree.path / "made.ignored").unlink()
    await equipped(repo, setup="touch again.ignored").open(SCOPE, repo.base)
    assert files_below(tree.path) == BASE_FILES, "a tree that is there is not set up again"


@pytest.mark.parametrize(
    ("made", "line"),
    [
        ("mkdir -p lib/deep; touch lib/deep/x lib/y", "/lib/"),
        ("touch 'docs/*.tmp'", "/docs/\\*.tmp"),
        ("touch 'end '", "/end\\ "),
        ("touch '#odd' ", "/#odd"),
        ("mkdir docs/sub; touch docs/sub/x", "/docs/sub/"),
    ],
)
async def test_what_a_setup_leaves_unignored_is_named_with_its_line(
    repo: GitTrees, made: str, line: str
) -> None:
    tree = await equipped(repo, setup=made).open(SCOPE, repo.base)
    (told,) = tree.warnings
    assert repr(line) in told
    ignore = tree.path / ".gitignore"
    ignore.write_text(line + "\n")
    assert repo.git("status", "--porcelain", cwd=tree.path) == "?? .gitignore"


async def test_a_folder_of_ignored_files_alone_is_not_named(repo: GitTrees) -> None:
    (repo.checkout / "config").mkdir()
    (repo.checkout / "config" / "dev.ignored").write_bytes(b"x")
    setup = "mkdir dist; touch dist/x"
    tree = await equipped(repo, copy=("config/*.ignored",), setup=setup).open(SCOPE, repo.base)
    assert (tree.path / "config" / "dev.ignored").exists()
    (told,) = tree.warnings
    assert told.startswith("'dist/' ")


async def test_what_a_setup_changes_is_named(repo: GitTrees) -> None:
    setup = "echo x >> calc.py; touch 1 2 3 4 5 6"
    tree = await equipped(repo, setup=setup).open(SCOPE, repo.base)
    assert "'calc.py'" in tree.warnings[0]
    assert tree.warnings[-1].startswith("2 more")
    await tree.restore(repo.base, KEEPING)
    assert files_below(tree.path) == BASE_FILES


# sparse checkouts


async def _open_in(repo: GitTrees, start: Path, name: str) -> set[str]:
    repo.connect(start)
    scope = SCOPE.child(Namespace(name))
    tree = await repo.provider.open(scope, repo.git("rev-parse", "main"))
    assert (await tree.state()).clean
    files = set(files_below(tree.path))
    git_dir = Path(repo.git("rev-parse", "--absolute-git-dir", cwd=tree.path))
    leaves_out = files != set(await repo.history.files("main"))
    assert (git_dir / "info" / "sparse-checkout").exists() == leaves_out
    return files


async def test_a_tree_is_as_sparse_as_the_checkout(repo: GitTrees) -> None:
    (repo.checkout / "big").mkdir()
    (repo.checkout / "big" / "file").write_bytes(b"big")
    everything = {*BASE_FILES, "big/file"}
    base = repo.commit_in(repo.checkout, "big")
    linked = repo.place / "linked"
    repo.git("worktree", "add", "--quiet", "--detach", str(linked), "main")
    assert await _open_in(repo, repo.checkout, "one") == everything
    repo.git("sparse-checkout", "set", "--cone", "docs")
    config = (repo.checkout / ".git" / "config").read_bytes()
    assert await _open_in(repo, repo.checkout, "two") == set(BASE_FILES)
    assert await _open_in(repo, linked, "three") == everything
    repo.git("sparse-checkout", "set", "--cone", "big", cwd=linked)
    assert await _open_in(repo, linked, "four") == {"calc.py", "big/file"}
    repo.connect()
    tree = await repo.provider.open(SCOPE.child(Namespace("two")), base)
    (tree.path / "docs" / "notes.txt").write_bytes(b"changed")
    head = await tree.commit_all(base, "step", KEEPING)
    assert set(await repo.history.files(head)) == everything
    assert (repo.checkout / ".git" / "config").read_bytes() == config
    repo.git("sparse-checkout", "disable")
    assert await _open_in(repo, repo.checkout, "five") == everything


async def test_a_sparse_repository_without_settings_per_tree_is_followed(repo: GitTrees) -> None:
    """As git before 2.35, and other tools, set it up."""
    (repo.checkout / ".git" / "info" / "sparse-checkout").write_text("/*\n!/*/\n")
    for key in ("core.sparseCheckout", "core.sparseCheckoutCone"):
        repo.git("config", key, "true")
    assert await _open_in(repo, repo.checkout, "one") == {"calc.py"}
