"""Registering real repositories: bare ones, linked trees, links, and those that are not ready."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import pytest

from agl.api.projects import find, init
from agl.config import container
from agl.config.settings import Settings
from agl.ports.errors import InputError, StateError


@pytest.fixture(autouse=True)
def _git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A Person")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "person@example.org")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(tmp_path / "home")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "calc"
    git(tmp_path, "init", "-q", "-b", "main", "calc")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def git(folder: Path, *words: str) -> None:
    subprocess.run(("git", "-C", str(folder), *words), check=True, capture_output=True)


async def test_a_repository_is_one_project_from_wherever_it_is_seen(
    settings: Settings, repo: Path, tmp_path: Path
) -> None:
    made = (await init(settings, repo, "make")).project
    (repo / "inner").mkdir()
    (tmp_path / "link").symlink_to(repo)
    git(repo, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "other")
    for place in (repo, repo / "inner", tmp_path / "link", tmp_path / "linked"):
        assert find(settings, place)[0] == made
    assert find(settings, tmp_path / "linked")[1].top == tmp_path / "linked"
    again = await init(settings, tmp_path / "linked", "make")
    assert (again.project, again.created, again.changed) == (made, False, False)


async def test_a_bare_clone_and_its_trees_are_one_project(
    settings: Settings, repo: Path, tmp_path: Path
) -> None:
    bare = tmp_path / "clones" / "calc.git"
    git(tmp_path, "clone", "-q", "--bare", str(repo), str(bare))
    git(bare, "worktree", "add", "-q", str(tmp_path / "elsewhere"), "main")
    done = await init(settings, tmp_path / "elsewhere", no_build=True)
    assert (done.project.name, done.project.folder) == ("calc", bare)
    assert done.trees == tmp_path / "clones" / ".agl-trees"
    assert find(settings, bare)[0] == done.project


async def test_a_submodule_is_a_project_of_its_own(
    settings: Settings, repo: Path, tmp_path: Path
) -> None:
    outer = tmp_path / "outer"
    git(tmp_path, "init", "-q", "outer")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repo), "lib")
    done = await init(settings, outer / "lib", no_build=True)
    assert (done.project.name, done.project.folder) == ("lib", outer / "lib")


async def test_a_repository_without_a_commit_is_refused(settings: Settings, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "empty")
    with pytest.raises(InputError, match="first commit"):
        await init(settings, tmp_path / "empty", no_build=True)
    assert not settings.home.exists()


async def test_what_new_trees_get_is_changed_alone(settings: Settings, repo: Path) -> None:
    await init(settings, repo, "make")
    done = await init(settings, repo, setup="npm ci", copy=(".env",))
    assert (done.created, done.changed) == (False, True)
    assert (done.project.build, done.project.setup, done.project.copy) == (
        "make",
        "npm ci",
        (".env",),
    )
    again = await init(settings, repo, copy=(".env",))
    assert (again.project, again.changed) == (done.project, False)
    assert (await init(settings, repo, no_build=True)).project.setup == "npm ci"


@pytest.mark.parametrize(
    "wrong", [{"setup": "a\nb"}, {"copy": ("../x",)}, {"copy": ("/x",)}, {"copy": ("a", " ")}]
)
async def test_what_new_trees_cannot_get_is_refused(
    settings: Settings, repo: Path, wrong: dict[str, str]
) -> None:
    await init(settings, repo, "make")
    with pytest.raises(InputError, match=r"--setup has several|--copy is"):
        await init(settings, repo, **wrong)  # type: ignore[arg-type]


async def test_two_that_register_take_turns(settings: Settings, repo: Path) -> None:
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        with container.locks(settings).hold(("projects",), wait_s=0.0):
            holding.set()
            done.wait(0.2)

    other = threading.Thread(target=hold)
    other.start()
    holding.wait()
    try:
        assert (await init(settings, repo, no_build=True)).created
    finally:
        done.set()
        other.join()


async def test_a_build_is_kept_until_another_is_said(settings: Settings, repo: Path) -> None:
    first = await init(settings, repo, "make")
    assert (first.created, first.project.build) == (True, "make")
    told = await init(settings, repo)
    assert (told.created, told.changed, told.project.build) == (False, False, "make")
    changed = await init(settings, repo, no_build=True)
    assert (changed.changed, changed.project.build) == (True, None)


async def test_somebody_who_registers_for_long_is_named(settings: Settings, repo: Path) -> None:
    with (
        container.locks(settings).hold(("projects",), wait_s=0.0),
        pytest.raises(StateError, match="is registering a project; try again"),
    ):
        await init(settings, repo, no_build=True, wait_s=0.05)
