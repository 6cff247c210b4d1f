"""What a shell is told to complete."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from e2e.conftest import Play
from e2e.world import World


def words(world: World, *before: str) -> list[str]:
    return world.agl("completion", "words", *before).out.split()


def test_commands_labels_and_workflows_are_completed(world: World, play: Play) -> None:
    assert play(label="one").status == 0
    assert play(label="two").status == 0
    assert {"run", "resume", "completion"} <= set(words(world))
    assert words(world, "resume") == ["one", "two"]
    assert words(world, "clear", "one") == ["two"]
    assert words(world, "show", "one") == []
    assert "fix" in words(world, "run")


def test_flags_of_a_workflow_are_completed(world: World) -> None:
    flags = words(world, "run", "fix")
    assert {"--request", "--rounds", "--implementer", "-n", "--from", "--json"} <= set(flags)
    assert words(world, "run", "fix", "--rounds", "3") == flags
    assert words(world, "run", "fix", "--rounds") == []


def test_what_is_not_a_label_is_offered_none(world: World, play: Play) -> None:
    assert play(label="one").status == 0
    assert words(world, "recover") == ["one"]
    assert words(world, "recover", "--item") == []
    assert words(world, "recover", "--item", "x", "--branch") == []
    assert words(world, "resume", "--again") == []
    assert words(world, "clear", "--purge") == ["one"]


def test_bash_completes_with_the_script(world: World, play: Play) -> None:
    assert play(label="one").status == 0
    (world.folder / "bin").mkdir()
    agl = world.folder / "bin" / "agl"
    agl.write_text('#!/bin/sh\nexec python3 -m agl "$@"\n')
    agl.chmod(0o755)
    ask = (
        'eval "$(agl completion bash)"; COMP_WORDS=(agl resume o); COMP_CWORD=2; _agl;'
        ' echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", ask],
        cwd=world.repo,
        env={**world.env, "PATH": f"{world.folder / 'bin'}:{world.env['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert done.stdout.split() == ["one"], done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_script_is_one_that_its_shell_reads(world: World, shell: str) -> None:
    script = world.agl("completion", shell).out
    assert "agl completion words" in script
    if shutil.which(shell) is not None:
        done = subprocess.run([shell, "-n"], input=script, text=True, check=False, timeout=30)
        assert done.returncode == 0


def test_another_shell_is_refused(world: World) -> None:
    done = world.agl("completion", "csh")
    assert done.status == 2
    assert "fish" in done.err
