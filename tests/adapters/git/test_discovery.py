"""Which repository a folder belongs to."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.git.hands import GitTrees
from agl.adapters.git.discovery import find_repository
from agl.ports.history import Repository


def test_a_folder_below_the_top_belongs_to_it(repo: GitTrees) -> None:
    expected = Repository(repo.checkout / ".git", repo.checkout)
    assert find_repository(repo.checkout) == find_repository(repo.checkout / "docs") == expected


def test_a_linked_tree_shares_the_common_folder(repo: GitTrees, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    repo.git("worktree", "add", "--quiet", "-b", "linked", str(linked))
    assert find_repository(linked / "docs") == Repository(repo.checkout / ".git", linked)


def test_a_bare_repository_has_no_top(repo: GitTrees, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    repo.git("clone", "--quiet", "--bare", str(repo.checkout), str(bare))
    assert find_repository(bare) == Repository(bare, None)
    around = tmp_path / "around"
    around.mkdir()
    (around / ".git").write_text("gitdir: ../bare.git\n")
    assert find_repository(around) == Repository(bare, None)


def test_a_separate_git_folder_is_found(repo: GitTrees, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    repo.git("init", "--quiet", "--separate-git-dir", str(tmp_path / "sep"), str(tree))
    assert find_repository(tree) == Repository(tmp_path / "sep", tree)


def test_no_repository_is_none(tmp_path: Path) -> None:
    assert find_repository(tmp_path) is None
    (tmp_path / ".git").write_text("gitdir: /not/there\n")
    assert find_repository(tmp_path) is None
    (tmp_path / ".git").write_text("junk")
    assert find_repository(tmp_path) is None


def test_a_tree_with_a_broken_mark_is_none_of_the_repository_around_it(repo: GitTrees) -> None:
    (repo.checkout / "docs" / ".git").write_text("gitdir: /not/there\n")
    assert find_repository(repo.checkout / "docs") is None


def test_the_environment_points_nowhere_else(
    repo: GitTrees, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scenario C7."""
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other.git"))
    assert find_repository(repo.checkout) == Repository(repo.checkout / ".git", repo.checkout)
