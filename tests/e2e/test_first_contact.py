"""A repository that AGL has not seen before, with and without a person at the terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import subprocess
import sys
import termios

from e2e.conftest import prepared
from e2e.world import World


def at_a_terminal(world: World, *args: str, types: str) -> tuple[int, str]:
    """The command at a terminal at which somebody types; its status and what was to be seen."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "agl", *args],
        cwd=world.repo,
        env=world.env,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(terminal)
    seen = b""
    while b"or 'none'" not in seen:
        seen += os.read(controller, 65536)
    os.write(controller, types.encode())
    while True:
        try:
            read = os.read(controller, 65536)
        except OSError:
            break
        if not read:
            break
        seen += read
    os.close(controller)
    return process.wait(30), seen.decode()


def builds(world: World) -> list[str]:
    return [
        line.split("=", 1)[1].strip()
        for file in world.home.glob("projects/*.toml")
        for line in file.read_text().splitlines()
        if line.startswith("build")
    ]


def test_init_says_what_it_found_and_takes_enter_for_it(bare_world: World) -> None:
    bare_world.make_repository({"Makefile": "test:\n\ttrue\n"})
    status, seen = at_a_terminal(bare_world, "init", types="\n")
    assert status == 0, seen
    assert "Makefile has a target 'test'" in seen
    assert builds(bare_world) == ['"make test"']


def test_a_person_may_type_another_command(bare_world: World) -> None:
    bare_world.make_repository({"Makefile": "test:\n\ttrue\n"})
    assert at_a_terminal(bare_world, "init", types="./check\n")[0] == 0
    assert builds(bare_world) == ['"./check"']


def test_a_person_may_say_that_there_is_none(bare_world: World) -> None:
    bare_world.make_repository({"Makefile": "test:\n\ttrue\n"})
    assert at_a_terminal(bare_world, "init", types="none\n")[0] == 0
    assert builds(bare_world) == []


def test_ctrl_c_at_the_question_ends_it_at_once(bare_world: World) -> None:
    bare_world.make_repository({"Makefile": "test:\n\ttrue\n"})
    status, seen = at_a_terminal(bare_world, "init", types="\x03")
    assert status == -2, seen
    assert "Traceback" not in seen
    assert builds(bare_world) == []


def test_ctrl_d_at_the_question_is_no_answer(bare_world: World) -> None:
    bare_world.make_repository({"Makefile": "test:\n\ttrue\n"})
    status, seen = at_a_terminal(bare_world, "init", types="\x04")
    assert status == 2, seen
    assert builds(bare_world) == []


def test_without_a_terminal_the_command_is_named(bare_world: World) -> None:
    bare_world.make_repository({"Makefile": "test:\n\ttrue\n"})
    done = bare_world.agl("init")
    assert done.status == 2
    assert "agl init --build 'make test'" in done.err
    assert "Makefile" in done.err
    done = bare_world.agl(*prepared(bare_world))
    assert done.status == 3
    assert "agl init" in done.err


def test_a_run_in_a_new_repository_registers_it_first(bare_world: World) -> None:
    bare_world.make_repository({"Makefile": "test:\n\ttrue\n"})
    status, seen = at_a_terminal(bare_world, *prepared(bare_world), types="\n")
    assert status == 0, seen
    assert builds(bare_world) == ['"make test"']
    assert bare_world.git("show", "agl/x:a.txt") == "a"
