"""A repository in which AGL could not commit is refused first."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.git.hands import CountedProcesses, GitTrees
from agl.adapters.git.discovery import find_repository
from agl.adapters.git.history import GitHistory
from agl.adapters.git.runner import Git
from agl.ports.errors import InputError, UpstreamError

IDENTITY = {
    f"GIT_{who}_{what}": "a@example.org"
    for who in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}


async def test_a_repository_without_a_commit_is_refused(repo: GitTrees, tmp_path: Path) -> None:
    """Scenario A1."""
    empty = tmp_path / "empty"
    repo.git("init", "--quiet", str(empty))
    found = find_repository(empty)
    assert found is not None
    before = sorted(str(path) for path in empty.rglob("*"))
    repo.environ |= IDENTITY
    repo.connect()
    with pytest.raises(InputError, match="make a first commit"):
        await GitHistory(repo.runner, found).check_ready()
    assert sorted(str(path) for path in empty.rglob("*")) == before


async def test_all_that_is_missing_is_told_at_once(repo: GitTrees, tmp_path: Path) -> None:
    repo.git("init", "--quiet", str(tmp_path / "empty"))
    found = find_repository(tmp_path / "empty")
    assert found is not None
    problems = await GitHistory(repo.runner, found).problems()
    said = [(type(problem), str(problem).partition(";")[2]) for problem in problems]
    assert said == [
        (
            UpstreamError,
            " set `git config --global user.name NAME` and"
            " `git config --global user.email ADDRESS`",
        ),
        (InputError, " make a first commit with `git commit`"),
    ]


@pytest.mark.parametrize("said", ["git version 2.33.9", "git version 1.8.3.1", "something else"])
async def test_an_old_git_is_refused(repo: GitTrees, said: str) -> None:
    """Scenario A21."""
    folder = repo.place / "bin"
    folder.mkdir()
    (folder / "git").write_text(f"#!/bin/sh\necho '{said}'\n")
    (folder / "git").chmod(0o755)
    git = Git(CountedProcesses(), repo.environ | {"PATH": f"{folder}:{repo.environ['PATH']}"})
    with pytest.raises(UpstreamError, match=r"2\.34"):
        await GitHistory(git, repo.repository).check_ready()


@pytest.mark.parametrize("missing", ["user.name", "user.email"])
async def test_no_identity_is_refused_by_the_settings_name(repo: GitTrees, missing: str) -> None:
    """Scenario C6."""
    repo.git("config", "--unset", missing)
    with pytest.raises(UpstreamError, match=missing):
        await repo.history.check_ready()


async def test_an_identity_of_the_environment_is_enough(repo: GitTrees) -> None:
    for name in ("user.name", "user.email"):
        repo.git("config", "--unset", name)
    repo.environ |= IDENTITY
    repo.connect()
    await repo.history.check_ready()


async def test_a_broken_config_is_called_that(repo: GitTrees) -> None:
    (repo.checkout / ".git" / "config").write_bytes(b"[core\n")
    with pytest.raises(UpstreamError, match="bad config line"):
        await repo.history.check_ready()
    with pytest.raises(UpstreamError, match="bad config line"):
        await repo.history.resolve("HEAD")


@pytest.mark.parametrize("ref", ["@{u}", "config", "main@{upstream}"])
async def test_a_name_of_no_commit_is_the_persons_matter(repo: GitTrees, ref: str) -> None:
    with pytest.raises(InputError, match="names no commit"):
        await repo.history.resolve(ref)


async def test_odd_names_are_told_as_they_are(repo: GitTrees) -> None:
    """Scenario A23."""
    names = ["a b", 'quo"te', "tab\t", "new\nline", "ümlaut"]
    for name in names:
        (repo.checkout / name).write_bytes(b"x")
    assert sorted(await repo.history.uncommitted(repo.checkout)) == sorted(names)


async def test_the_head_of_the_tree_one_stands_in_is_meant(repo: GitTrees, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    repo.git("worktree", "add", "--quiet", "-b", "linked", str(linked))
    tip = repo.commit_in(linked, "linked")
    repo.connect(linked)
    assert await repo.history.resolve("HEAD") == tip
