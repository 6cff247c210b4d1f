"""`agl doctor`: what is missing, and what to type for it."""

from __future__ import annotations

import os
import pty
import struct
import subprocess
import sys
import termios
from fcntl import ioctl

import pytest

from e2e.world import Ended, World, script

PROGRAMS = ("claude_code", "codex")


def found(done: Ended) -> dict[str, bool]:
    checks = done.json["checks"]
    assert isinstance(checks, list)
    return {check["name"]: check["ok"] for check in checks if check["name"] not in PROGRAMS}


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
    assert found(done) == {"Python": True, "home": True, "git": False, "sandbox": True}
    said = bare_world.agl("doctor", cwd=bare_world.folder)
    assert said.out.count("is not in a git repository") == 1
    assert said.err == "agl: not in order: git\n"


def test_no_problem_hides_another(bare_world: World) -> None:
    bare_world.repo.mkdir()
    bare_world.git("init", "-q")
    for name in [name for name in bare_world.env if "COMMITTER" in name or "AUTHOR" in name]:
        del bare_world.env[name]
    said = bare_world.agl("doctor")
    lines = [line.split()[:2] for line in said.out.splitlines()]
    assert [line for line in lines if line[1] not in PROGRAMS] == [
        ["ok", "Python"],
        ["ok", "home"],
        ["no", "git"],
        ["no", "git"],
        ["no", "project"],
        ["ok", "sandbox"],
    ]
    assert "does not know who commits" in said.out
    assert "has no commit yet" in said.out
    assert said.err == "agl: not in order: git, project\n"


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
    lines = done.out.splitlines()
    doubts = [line for line in lines if line[0] == "?" and line.split()[1] not in PROGRAMS]
    how = "`agl init --build CMD` changes it"
    said = f"?   build        a shell finds no {missing!r} in {str(world.repo)!r}; {how}"
    assert doubts == ([said] if missing else [])


def test_a_doubt_is_not_ok_and_nothing_is_missing_for_it(world: World) -> None:
    world.agl("init", "--build", "no-such-program --check")
    done = world.agl("doctor", "--json")
    told = [check for check in done.json["checks"] if check["name"] == "build"]  # type: ignore[attr-defined]
    assert [(check["ok"], check["doubtful"]) for check in told] == [(False, True)]
    assert (done.status, done.err) == (0, "")


def test_a_vendors_program_that_is_not_here_is_doubted(world: World) -> None:
    """Without its name on the PATH, and with nobody logged in."""
    done = world.agl("doctor", "--json", more={"PATH": "/usr/bin:/bin"})
    told = {check["name"]: check for check in done.json["checks"]}  # type: ignore[attr-defined]
    assert (told["codex"]["ok"], told["codex"]["doubtful"]) == (False, True)
    assert (done.status, done.err) == (0, "")
    assert "\n?   codex " in world.agl("doctor", more={"PATH": "/usr/bin:/bin"}).out


def test_it_fits_a_terminal(world: World) -> None:
    world.agl("init", "--build", "no-such-program-of-a-long-name --check")
    wide = world.agl("doctor").out.split()
    shown = at_a_terminal(world, 80, "doctor")
    assert shown.split() == wide
    lines = shown.splitlines()
    assert len(lines) > 7
    assert all(len(line) <= 80 or " " not in line[17:].strip() for line in lines)


def at_a_terminal(world: World, columns: int, *words: str) -> str:
    """What a command prints on a terminal of that width."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    command = [sys.executable, "-m", "agl", *words]
    subprocess.run(command, cwd=world.repo, env=world.env, stdout=theirs, check=True)
    os.close(theirs)
    said = os.read(ours, 100_000).decode().replace("\r\n", "\n")
    os.close(ours)
    return said


def test_a_model_is_asked_for_one_turn(world: World) -> None:
    (world.folder / "calls.json").write_text(script({}))
    (world.folder / "says.json").write_text(script({"doctor": [{"text": "hello"}]}))
    calls, says = (f"scripted:{world.folder}/{name}.json" for name in ("calls", "says"))
    done = world.agl("doctor", "--models", calls)
    assert done.status == 0, done.out
    assert "called its tool in" in done.out
    done = world.agl("doctor", "--json", "--models", calls, says, "none:such")
    assert done.status == 6
    told = {check["name"]: check for check in done.json["checks"]}  # type: ignore[attr-defined]
    assert [told[name]["ok"] for name in (calls, says, "none:such")] == [True, False, False]
    assert "did not call its tool" in told[says]["said"]
    assert "no backend" in told["none:such"]["said"]


def test_without_models_nothing_is_paid_for(world: World) -> None:
    """A vendor's program is named, or what brings it."""
    done = world.agl("doctor", "--json")
    told = {check["name"]: check for check in done.json["checks"]}  # type: ignore[attr-defined]
    for name in PROGRAMS:
        assert told[name]["ok"] or told[name]["doubtful"]
        assert name.partition("_")[0] in told[name]["said"]


def test_a_model_that_is_not_spelled_so_is_refused(world: World) -> None:
    done = world.agl("doctor", "--models", "opus")
    assert done.status == 2
    assert "provider:name" in done.err


def test_a_run_is_refused_with_all_that_is_missing(world: World) -> None:
    for name in [name for name in world.env if "COMMITTER" in name or "AUTHOR" in name]:
        del world.env[name]
    models = ("--implementer", "scripted:/no/such.json", "--reviewer", "none:such")
    done = world.agl("run", "fix", "-n", "x", "-r", "fix it", *models)
    assert done.status == 6
    git, implementer, reviewer = done.err.splitlines()
    assert "does not know who commits" in git
    assert implementer.startswith("--implementer: ")
    assert "/no/such.json" in implementer
    assert reviewer.startswith("--reviewer: no backend for model 'none:such'")
    assert world.agl("list", "--json").json["runs"] == []
