"""`agl doctor`: what is missing, and what to type for it."""

from __future__ import annotations

import pytest

from e2e.world import Ended, World


def found(done: Ended) -> dict[str, bool]:
    checks = done.json["checks"]
    assert isinstance(checks, list)
    return {check["name"]: check["ok"] for check in checks}


def test_where_nothing_is_missing_it_says_so(world: World) -> None:
    done = world.agl("doctor", "--json")
    assert done.status == 0, done.out
    assert set(found(done).values()) == {True}


def test_each_missing_thing_is_named_with_what_to_type(bare_world: World) -> None:
    bare_world.make_repository({"calc.py": "1\n"})
    for name in [name for name in bare_world.env if "COMMITTER" in name or "AUTHOR" in name]:
        del bare_world.env[name]
    (bare_world.home / "config.toml").write_text("keep_days = 'many'\n")
    done = bare_world.agl("doctor", "--json")
    assert done.status == 6
    assert found(done) == {"Python": True, "home": False, "git": False}
    text = bare_world.agl("doctor")
    assert "keep_days" in text.out
    assert "git config" in text.out
    assert "Traceback" not in text.err


def test_what_several_looks_meet_is_said_once(bare_world: World) -> None:
    done = bare_world.agl("doctor", "--json", cwd=bare_world.folder)
    assert done.status == 6
    assert found(done) == {"Python": True, "home": True, "git": False}
    said = bare_world.agl("doctor", cwd=bare_world.folder)
    assert said.out.count("is not in a git repository") == 1
    assert said.err == "agl: missing: git\n"


def test_no_problem_hides_another(bare_world: World) -> None:
    bare_world.repo.mkdir()
    bare_world.git("init", "-q")
    for name in [name for name in bare_world.env if "COMMITTER" in name or "AUTHOR" in name]:
        del bare_world.env[name]
    said = bare_world.agl("doctor")
    assert [line.split()[:2] for line in said.out.splitlines()] == [
        ["ok", "Python"],
        ["ok", "home"],
        ["no", "git"],
        ["no", "git"],
        ["no", "project"],
    ]
    assert "does not know who commits" in said.out
    assert "has no commit yet" in said.out
    assert said.err == "agl: missing: git, project\n"


def test_what_is_right_in_the_same_words_is_said_each_time(world: World) -> None:
    done = world.agl("doctor", "--json", more={"AGL_TREES_ROOT": str(world.home)})
    assert done.status == 0
    assert found(done)["trees"]


def test_a_trees_root_that_cannot_be_made_is_named(world: World) -> None:
    (world.folder / "file").write_text("in the way")
    done = world.agl("doctor", "--json", more={"AGL_TREES_ROOT": str(world.folder / "file" / "x")})
    assert done.status == 6
    assert not found(done)["trees"]


@pytest.mark.parametrize(
    ("build", "missing"),
    [
        ("no-such-program --check", "no-such-program"),
        ("CI=1 ./check", "./check"),
        ("make test", ""),
        ("./there", ""),
        ("test -d x || npm ci", ""),
        ("{ true; } && true", ""),
        ('"$HOME/x"', ""),
        ("(cd x; make)", ""),
    ],
)
def test_a_build_that_is_not_there_is_doubted(world: World, build: str, missing: str) -> None:
    (world.repo / "there").write_text("#!/bin/sh\n")
    (world.repo / "there").chmod(0o755)
    assert world.agl("init", "--build", build).status == 0
    done = world.agl("doctor")
    assert done.status == 0, done.out
    doubts = [line for line in done.out.splitlines() if line.startswith("?")]
    how = "`agl init --build CMD` changes it"
    said = f"?   build    a shell finds no {missing!r} in {str(world.repo)!r}; {how}"
    assert doubts == ([said] if missing else [])
