"""What a step must not have touched is noticed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from adapters.git.hands import GitTrees
from agl.testing.contracts.trees import KEEPING, SCOPE


async def test_an_init_inside_a_tree_is_named_with_its_repair(repo: GitTrees) -> None:
    """Scenario C8."""
    tree = await repo.provider.open(SCOPE, repo.base)
    git_dir = repo.git("rev-parse", "--absolute-git-dir", cwd=tree.path)
    repo.git("init", "--quiet", "--bare", cwd=tree.path, env={"GIT_DIR": git_dir})
    repo.git("config", "--file", str(repo.checkout / ".git/config"), "core.bare", "true")
    broken = (await repo.guards.read(())).broken_config
    assert broken is not None
    assert "core.bare" in broken
    (tree.path / "new.txt").write_bytes(b"new")
    head = await tree.commit_all(repo.base, "step", KEEPING)
    assert await repo.history.tip(SCOPE.branch) == head
    _type_what_is_said(repo, broken)
    assert (await repo.guards.read(())).broken_config is None
    assert repo.git("status", "--porcelain") == ""


@pytest.mark.parametrize("spelling", ["bare", "BARE = yes", "bare = 1", "bare = true # really"])
async def test_each_spelling_of_bare_is_seen(repo: GitTrees, spelling: str) -> None:
    with (repo.checkout / ".git" / "config").open("a") as config:
        config.write(f"[Core]\n\t{spelling}\n")
    assert (await repo.guards.read(())).broken_config is not None


async def test_a_tree_set_for_all_is_named_with_its_repair(repo: GitTrees, tmp_path: Path) -> None:
    repo.git("config", "core.worktree", str(tmp_path))
    broken = (await repo.guards.read(())).broken_config
    assert broken is not None
    assert str(tmp_path) in broken
    _type_what_is_said(repo, broken)
    assert (await repo.guards.read(())).broken_config is None


@pytest.mark.parametrize("content", [b"", b"[core\n"])
async def test_a_config_that_cannot_be_read_is_named(repo: GitTrees, content: bytes) -> None:
    (repo.checkout / ".git" / "config").write_bytes(content)
    broken = (await repo.guards.read(())).broken_config
    assert broken is not None
    assert "config" in broken


async def test_packed_branches_are_read(repo: GitTrees) -> None:
    await repo.provider.open(SCOPE, repo.base)
    before = await repo.guards.read((SCOPE.branch,))
    repo.git("pack-refs", "--all", "--prune")
    assert await repo.guards.read((SCOPE.branch,)) == before


async def test_a_stash_in_any_tree_is_seen(repo: GitTrees) -> None:
    """Scenario D8."""
    tree = await repo.provider.open(SCOPE, repo.base)
    before = await repo.guards.read(())
    (tree.path / "calc.py").write_bytes(b"half")
    repo.stash_in(tree.path)
    assert (await repo.guards.read(())).stash != before.stash


async def test_a_shallow_file_is_seen(repo: GitTrees) -> None:
    before = await repo.guards.read(())
    (repo.checkout / ".git" / "shallow").write_text(f"{repo.base}\n")
    assert (await repo.guards.read(())).shallow != before.shallow


@pytest.mark.parametrize("key", ["core.bare", "core.worktree"])
async def test_a_repair_can_be_typed_where_a_folder_has_a_blank(tmp_path: Path, key: str) -> None:
    place = tmp_path / "it's here"
    place.mkdir()
    repo = GitTrees(place)
    repo.git("config", key, "true" if key == "core.bare" else str(tmp_path))
    broken = (await repo.guards.read(())).broken_config
    assert broken is not None
    _type_what_is_said(repo, broken)
    assert (await repo.guards.read(())).broken_config is None


def _type_what_is_said(repo: GitTrees, sentence: str) -> None:
    words = shlex.split(sentence.split("`")[1])
    assert words[0] == "git"
    repo.git(*words[1:], cwd=repo.place)
