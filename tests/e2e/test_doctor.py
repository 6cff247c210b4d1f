"""`agl doctor`: what is missing, and what to type for it."""

from __future__ import annotations

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
    assert found(done) == {
        "Python": True,
        "home": False,
        "git": False,
        "project": False,
        "trees": False,
    }
    text = bare_world.agl("doctor")
    assert "keep_days" in text.out
    assert "git config" in text.out
    assert "Traceback" not in text.err


def test_outside_of_a_repository_it_goes_on(bare_world: World) -> None:
    done = bare_world.agl("doctor", "--json", cwd=bare_world.folder)
    assert done.status == 6
    assert found(done)["home"]
    assert not found(done)["git"]


def test_a_trees_root_that_cannot_be_made_is_named(world: World) -> None:
    (world.folder / "file").write_text("in the way")
    done = world.agl("doctor", "--json", more={"AGL_TREES_ROOT": str(world.folder / "file" / "x")})
    assert done.status == 6
    assert not found(done)["trees"]
