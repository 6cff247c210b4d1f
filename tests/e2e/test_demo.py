"""`agl demo`, as a stranger runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from e2e.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A machine whose git has no identity."""
    world = World(tmp_path)
    for name in [name for name in world.env if name.startswith(("GIT_AUTHOR", "GIT_COMMITTER"))]:
        del world.env[name]
    (tmp_path / "temporary").mkdir()
    world.repo.mkdir()
    world.env["TMPDIR"] = str(tmp_path / "temporary")
    return world


def test_the_demo_names_what_it_shows(world: World) -> None:
    readonly = world.folder / "readonly"
    readonly.mkdir(mode=0o555)
    done = world.agl("demo", cwd=readonly)
    assert done.status == 0, done.err
    assert "agl/demo" in done.out
    assert "+    return a + b" in done.out
    assert "ledger" in done.out
    assert "kill -9" in done.out
    assert "implement, repair, review, review" in done.out
    assert "\x1b" not in done.out + done.err
    assert list(readonly.iterdir()) == []
    assert list(world.home.iterdir()) == [], "a person's own ledger is left alone"
    assert world.survivors() == []


def test_the_demo_is_one_document_with_json(world: World) -> None:
    found = world.agl("demo", "--json").json
    assert found["worked"] == ["implement", "repair", "review", "review"]
    assert found["replayed"] == 2
    assert Path(str(found["ledger"])).is_dir()


@pytest.mark.long
def test_the_demo_runs_ten_times_in_a_row(world: World) -> None:
    for _ in range(10):
        assert world.agl("demo").status == 0


def test_a_demo_that_goes_wrong_says_where_to_look(world: World) -> None:
    (world.folder / "bin").mkdir()
    (world.folder / "bin" / "git").write_text("#!/bin/sh\necho no such luck >&2\nexit 1\n")
    (world.folder / "bin" / "git").chmod(0o755)
    done = world.agl("demo", "--json", more={"PATH": f"{world.folder / 'bin'}:/usr/bin:/bin"})
    assert done.status == 6
    error = json.loads(done.out)["error"]
    assert "no such luck" in error["message"]
    assert "look into" in error["message"]


def test_without_git_the_demo_says_so_in_a_sentence(world: World) -> None:
    (world.folder / "bin").mkdir()
    done = world.agl("demo", more={"PATH": str(world.folder / "bin")})
    assert (done.status, done.out) == (6, "")
    assert done.err == "agl: git is not installed, or not on PATH; install git 2.34 or newer\n"
    assert list((world.folder / "temporary").iterdir()) == []
