"""A run's branch, and a person's own work on it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from e2e.conftest import FLOW, Play, prepared
from e2e.world import World, script, shell, wait_for, write


def commit_on_branch(world: World) -> str:
    (world.folder / "answers.json").write_text('{"Go on?": "yes"}')
    tree = next((world.folder / ".agl-trees").rglob("_base"))
    (tree / "mine.txt").write_text("mine\n")
    world.git("add", "-A", cwd=tree)
    world.git("commit", "-q", "-m", "my own", cwd=tree)
    return world.git("rev-parse", "HEAD", cwd=tree)


def test_a_persons_commit_on_the_branch_is_refused_with_what_keeps_it(
    world: World, play: Play
) -> None:
    assert play(more=("--ask",)).status == 6
    mine = commit_on_branch(world)
    answers = ("--answers", str(world.folder / "answers.json"))
    done = world.agl("resume", "x", *answers)
    assert done.status == 4
    assert "my own" in done.err
    commands = done.err.split("`")[1::2]
    for command in commands[:2]:
        subprocess.run(command.split(), cwd=world.repo, env=world.env, check=True)
    assert commands[2] == "agl resume x"
    done = world.agl("resume", "x", *answers)
    assert done.status == 0, done.err
    assert world.git("rev-parse", "my-work") == mine
    assert "mine.txt" not in world.git("ls-tree", "--name-only", "agl/x")


def test_a_persons_commit_on_a_childs_branch_is_told_with_what_keeps_it(world: World) -> None:
    file = world.folder / "script.json"
    plays = {name: [{"calls": [write("same.txt", f"{name}\n")]}, {"text": "done"}] for name in "ab"}
    file.write_text(script(plays))
    flow = FLOW.parent / "flow_of_landing.py"
    names = ("--name", "a", "--name", "b")
    done = world.agl("run", str(flow), "-n", "x", "--script", f"scripted:{file}", *names)
    assert done.status == 6, done.err
    assert "not AGL's" not in world.agl("resume", "x").err
    tree = next((world.folder / ".agl-trees").rglob("b"))
    (tree / "mine.txt").write_text("mine\n")
    world.git("add", "-A", cwd=tree)
    world.git("commit", "-q", "-m", "my own", cwd=tree)
    mine = world.git("rev-parse", "HEAD", cwd=tree)
    shown = world.agl("show", "x").out
    assert f"agl/_work/x/b at {mine[:10]}; AGL's last is" in shown
    (world.folder / "answers.json").write_text('{"settle a": "abort", "settle b": "abort"}')
    done = world.agl("resume", "x", "--answers", str(world.folder / "answers.json"))
    assert done.status == 0, done.err
    (said,) = (line for line in done.err.splitlines() if "not AGL's" in line)
    assert "my own" in said
    world.git(*said.split("`")[1].split()[1:])
    assert world.git("rev-parse", "my-work") == mine


def test_a_persons_edit_in_the_tree_is_kept(world: World, play: Play) -> None:
    assert play(more=("--ask",)).status == 6
    tree = next((world.folder / ".agl-trees").rglob("_base"))
    (tree / "mine.txt").write_text("mine\n")
    (world.folder / "answers.json").write_text('{"Go on?": "yes"}')
    answers = ("--answers", str(world.folder / "answers.json"))
    done = world.agl("resume", "x", *answers, "--json")
    assert done.status == 0, done.err
    kept = done.json["kept"]
    assert isinstance(kept, list)
    assert len(kept) == 1
    assert world.git("show", f"refs/agl/kept/{kept[0]}:mine.txt") == "mine"


def test_an_agents_commit_of_a_killed_step_is_kept_and_not_refused(world: World) -> None:
    own = "echo half > a.txt && git add -A && git commit -qm half"
    own = f"{own} && echo > ../../../../begun; sleep 30"
    process = world.start(*prepared(world, shell(own)))
    wait_for((world.folder / "begun").exists)
    process.kill()
    process.wait()
    half = world.git("rev-parse", "agl/x")
    prepared(world)
    done = world.agl("resume", "x", "--json")
    assert done.status == 0, done.err
    assert world.git("show", "agl/x:a.txt") == "a"
    kept = world.git("for-each-ref", "--format=%(refname)", "--contains", half, "refs/agl/kept")
    assert kept.startswith("refs/agl/kept/x/")


def test_a_person_standing_in_the_tree_is_named_and_not_signalled(world: World, play: Play) -> None:
    """E11b."""
    assert play(more=("--ask",)).status == 6
    tree = next((world.folder / ".agl-trees").rglob("_base"))
    person = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"], cwd=tree, env={"PATH": "/usr/bin"}
    )
    try:
        done = world.agl("clear", "x")
        assert done.status == 0, done.err
        assert str(person.pid) in done.out
        assert person.poll() is None
    finally:
        person.kill()
        person.wait()
    assert not tree.exists()
    assert list(Path(world.folder / ".agl-trees").rglob("_kept/**/a.txt"))


def test_a_branch_that_a_person_made_under_a_cleared_name_is_theirs(
    world: World, play: Play
) -> None:
    assert play().status == 0
    assert world.agl("clear", "x").status == 0
    item = world.git("for-each-ref", "--format=%(refname)", "refs/agl/kept/x")
    world.git("branch", "agl/x", item)
    theirs = world.git("rev-parse", "agl/x")
    assert world.agl("clear", "x", "--purge").status == 0
    assert world.git("rev-parse", "agl/x") == theirs


def test_homes_that_share_a_repository_share_its_lock_for_trees(world: World, play: Play) -> None:
    assert play().status == 0
    assert (world.repo / ".git" / "agl" / "agl-trees.lock").exists()


def test_a_checkout_that_git_cannot_read_stops_no_run(world: World, play: Play) -> None:
    (world.repo / ".git" / "index").write_bytes(b"junk")
    done = play()
    assert done.status == 0, done.err
    assert world.git("show", "agl/x:a.txt") == "a"


FORGETFUL = """
import asyncio
from dataclasses import dataclass
from agl.sdk import ModelId, Role, Run, arg, workflow

@dataclass(frozen=True)
class Params:
    script: ModelId = arg("--script")

@workflow(version="1")
async def forgetful(run: Run[Params]) -> None:
    role = Role(name="work", instructions="Work.").on(run.params.script)
    task = asyncio.ensure_future(run.step(role, commit="x"))
    await asyncio.sleep(600)
    await task
"""


def test_h12_a_signal_also_ends_the_agent_of_a_task_that_nobody_awaits(world: World) -> None:
    flow = world.folder / "forgetful.py"
    flow.write_text(FORGETFUL)
    run, _, *more = prepared(world, shell("sleep 599; true"))
    agl = world.start(run, str(flow), *more)
    wait_for(lambda: len(world.survivors()) >= 2)
    agl.send_signal(signal.SIGTERM)
    assert agl.wait(60) == -signal.SIGTERM
    assert world.survivors() == []


def test_a_workflow_in_the_checkout_leaves_nothing_beside_it(world: World) -> None:
    (world.repo / "flow.py").write_text(
        FLOW.read_text().replace("import annotations", "import annotations\nimport mine")
    )
    (world.repo / "mine.py").write_text("")
    world.git("add", "-A")
    world.git("commit", "-q", "-m", "a workflow")
    run, _, *more = prepared(world)
    done = world.agl(run, "./flow.py", *more)
    assert done.status == 0, done.err
    assert world.git("status", "--porcelain") == ""
