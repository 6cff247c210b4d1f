"""Landings that fail, wait, or are cut off, through the real `agl` on real git."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from e2e.world import Ended, World, script, shell, wait_for, write

FLOW = Path(__file__).parent / "flow_of_landing.py"
SAME: dict[str, list[object]] = {name: [write("calc.py", f"{name}\n")] for name in ("a", "b")}


def begin(
    world: World,
    steps: dict[str, list[object]],
    *,
    build: str | None = None,
    more: Sequence[str] = (),
) -> tuple[str, ...]:
    """The command line of a run with a child for each step, its build registered."""
    file = world.folder / "script.json"
    file.write_text(
        script(
            {
                name: [
                    {"calls": [shell(f"echo {name} >> $COUNTER"), *calls]},
                    {"text": "done"},
                ]
                for name, calls in steps.items()
            }
        )
    )
    if build is not None:
        assert world.agl("init", "--build", build).status == 0
    names = [part for name in steps if name != "first" for part in ("--name", name)]
    first = ["--first"] if "first" in steps else []
    return ("run", str(FLOW), "-n", "x", "--script", f"scripted:{file}", *names, *first, *more)


def answered(world: World, **answers: str) -> tuple[str, ...]:
    """The flag that answers how each child's landing is settled."""
    file = world.folder / "answers.json"
    file.write_text(json.dumps({f"settle {name}": text for name, text in answers.items()}))
    return ("--answers", str(file))


def tree_of(world: World, name: str = "_base") -> Path:
    return world.folder / ".agl-trees" / "shop" / "x" / name


def state_of(world: World, child: str) -> str:
    shown = world.agl("show", "x", "--json").json["children"]
    (found,) = (one for one in shown if one["namespace"] == child)  # type: ignore[attr-defined]
    return str(found["state"])


def merges(world: World) -> list[str]:
    return world.git("log", "--merges", "--format=%s", "agl/x").splitlines()


def held(world: World) -> Ended:
    """A run of two children, the second of which waits with a conflict in calc.py."""
    done = world.agl(*begin(world, SAME))
    assert done.status == 6, done.err
    return done


def second(world: World) -> str:
    return next(name for name in ("a", "b") if state_of(world, name) == "held")


@pytest.mark.parametrize("count", [pytest.param(n, marks=pytest.mark.long) for n in range(10)])
def test_a9_e14_twenty_four_children_at_once_all_land(world: World, count: int) -> None:
    names = [f"c{number}" for number in range(24)]
    done = world.agl(*begin(world, {one: [write(f"{one}.txt", one)] for one in names}))
    assert done.status == 0, done.err
    assert sorted(merges(world)) == sorted(f"Land {one} on agl/x" for one in names)
    files = world.git("ls-tree", "--name-only", "agl/x").split()
    assert sorted(files) == sorted(["calc.py", *(f"{one}.txt" for one in names)])
    assert world.survivors() == []
    own = world.repo / ".git" / "agl"
    assert not [lock for lock in world.repo.rglob("*.lock") if own not in lock.parents]
    branches = world.git("for-each-ref", "--format=%(refname:short)", "refs/heads/agl").split()
    assert sorted(branches) == sorted(["agl/x", *(f"agl/_work/x/{one}" for one in names)])
    assert world.agl("clear", "x").status == 0
    assert world.git("for-each-ref", "refs/heads/agl") == ""
    assert len(world.git("worktree", "list").splitlines()) == 1


def test_a_person_resolves_in_the_held_tree_and_resumes(world: World) -> None:
    held(world)
    file = tree_of(world) / "calc.py"
    assert "<<<<<<<" in file.read_text()
    file.write_text("both\n")
    done = world.agl("resume", "x", *answered(world, a="retry", b="retry"))
    assert done.status == 0, done.err
    assert world.git("show", "agl/x:calc.py") == "both"
    assert len(merges(world)) == 2
    assert sorted(world.counted()) == ["a", "b"]


def test_a_retry_of_what_nobody_resolved_waits_again(world: World) -> None:
    held(world)
    done = world.agl("resume", "x", *answered(world, a="retry", b="retry"))
    assert done.status == 6, done.err
    assert state_of(world, second(world)) == "held"
    assert "<<<<<<<" in (tree_of(world) / "calc.py").read_text()


def test_e5_what_was_typed_is_kept_when_the_landing_is_given_up(world: World) -> None:
    held(world)
    child = second(world)
    (tree_of(world) / "calc.py").write_text("typed by hand\n")
    done = world.agl("resume", "x", *answered(world, a="abort", b="abort"))
    assert done.status == 0, done.err
    assert f"{child} did not land" in done.out
    again = world.agl("resume", "x")
    assert "finished already" in again.out
    assert f"{child} did not land" in again.out
    refs = world.git("for-each-ref", "--format=%(refname)", "refs/agl/kept/x").split()
    texts = [world.git("show", f"{ref}:calc.py") for ref in refs]
    assert "typed by hand" in texts
    assert world.git("show", "agl/x:calc.py") in ("a", "b")
    assert world.git("rev-parse", f"agl/_work/x/{child}")


def test_e6_a_deletion_against_an_edit_is_no_resolution(world: World) -> None:
    steps: dict[str, list[object]] = {
        "a": [shell("rm calc.py")],
        "b": [write("calc.py", "edited\n")],
    }
    done = world.agl(*begin(world, steps))
    assert done.status == 6, done.err
    assert "deleted" in done.err
    done = world.agl("resume", "x", *answered(world, a="retry", b="retry"))
    assert done.status == 6
    assert len(merges(world)) == 1


def test_e1_the_users_uncommitted_changes_survive_a_landing(world: World) -> None:
    (world.repo / "calc.py").write_text("my own\n")
    (world.repo / "new.txt").write_text("mine\n")
    done = world.agl(*begin(world, {"a": SAME["a"]}))
    assert done.status == 0, done.err
    assert (world.repo / "calc.py").read_text() == "my own\n"
    assert world.git("status", "--porcelain") == "M calc.py\n?? new.txt"


def test_e8_a_child_without_a_change_makes_no_commit(world: World) -> None:
    done = world.agl(*begin(world, {"a": []}))
    assert done.status == 0, done.err
    assert merges(world) == []
    assert state_of(world, "a") == "nothing"


def test_e3_a_parent_that_moved_is_merged_with(world: World) -> None:
    steps: dict[str, list[object]] = {
        **SAME,
        "first": [write("first.txt", "1\n")],
        "a": [write("a.txt", "a\n")],
    }
    done = world.agl(*begin(world, steps))
    assert done.status == 0, done.err
    assert sorted(merges(world)) == ["Land a on agl/x", "Land b on agl/x"]


def test_a_red_build_takes_the_landing_back_and_waits(world: World) -> None:
    done = world.agl(*begin(world, {"a": [write("a.txt", "a\n")]}, build="test ! -f a.txt"))
    assert done.status == 6, done.err
    assert world.git("rev-parse", "agl/x") == world.git("rev-parse", "main")
    assert state_of(world, "a") == "held"
    assert (tree_of(world) / "a.txt").read_text() == "a\n"
    (tree_of(world) / "a.txt").rename(tree_of(world) / "b.txt")
    done = world.agl("resume", "x", *answered(world, a="retry"))
    assert done.status == 0, done.err
    assert world.git("ls-tree", "--name-only", "agl/x").split() == ["b.txt", "calc.py"]


def test_e12_killed_before_the_verdict_and_red_after_is_back_at_the_last_gated_head(
    world: World,
) -> None:
    gate = world.folder / "gate"
    build = f"echo $$ > {gate}; test ! -f {gate}.red && sleep 60; false"
    run = world.start(*begin(world, {"a": [write("a.txt", "a\n")]}, build=build))
    wait_for(gate.exists)
    run.send_signal(signal.SIGKILL)
    run.wait()
    gate.with_suffix(".red").touch()
    done = world.agl("resume", "x")
    assert done.status == 6, done.err
    assert world.git("rev-parse", "agl/x") == world.git("rev-parse", "main")
    assert world.counted() == ["a"]
    assert world.survivors() == []


def test_e11b_a_persons_process_in_a_held_tree_is_named_and_left_alone(world: World) -> None:
    held(world)
    editor = subprocess.Popen(["sleep", "60"], cwd=tree_of(world), start_new_session=True)
    try:
        done = world.agl("resume", "x", *answered(world, a="abort", b="abort"))
        assert done.status == 0, done.err
        assert f"process {editor.pid}" in done.err
        cleared = world.agl("clear", "x")
        assert cleared.status == 0, cleared.err
        assert f"process {editor.pid}" in cleared.out
        assert editor.poll() is None
    finally:
        os.kill(editor.pid, signal.SIGKILL)
        editor.wait()


def test_two_resumes_and_a_clear_of_a_live_run_are_refused(world: World) -> None:
    steps: dict[str, list[object]] = {**SAME, "b": [shell("sleep 60")]}
    run = world.start(*begin(world, steps))
    wait_for(lambda: (tree_of(world, "a") / "calc.py").exists())
    wait_for(lambda: "a" in world.counted() and "b" in world.counted())
    for command in ("resume", "clear"):
        refused = world.agl(command, "x")
        assert refused.status == 4, refused.err
        assert f"process {run.pid}" in refused.err
    run.send_signal(signal.SIGINT)
    assert run.wait() in (130, -signal.SIGINT)
    assert world.survivors() == []
    assert world.agl("clear", "x").status == 0
    assert world.git("for-each-ref", "refs/heads/agl") == ""


def test_h11_a_cancelled_siblings_agent_writes_nothing_late(world: World) -> None:
    late = "trap '' TERM; for i in 1 2 3 4 5 6 7 8; do sleep 0.3; echo late > late.txt; done"
    steps: dict[str, list[object]] = {
        "a": [shell(f"{late} & sleep 30")],
        "b": [shell("sleep 0.5")],
    }
    arguments = begin(world, steps)
    text = json.loads((world.folder / "script.json").read_text())
    text["steps"]["b"].append({"error": {"kind": "auth"}})
    text["steps"]["b"][1], text["steps"]["b"][2] = text["steps"]["b"][2], text["steps"]["b"][1]
    (world.folder / "script.json").write_text(json.dumps(text))
    done = world.agl(*arguments)
    assert done.status == 5, done.err
    assert world.survivors() == []
    before = (tree_of(world, "a") / "late.txt").exists()
    subprocess.run(["sleep", "1"], check=True)
    assert (tree_of(world, "a") / "late.txt").exists() is before


def test_a_resolution_that_the_person_committed_is_taken(world: World) -> None:
    held(world)
    (tree_of(world) / "calc.py").write_text("both\n")
    world.git("commit", "-q", "-a", "-m", "resolved by hand", cwd=tree_of(world))
    assert world.agl("resume", "x").status == 6
    done = world.agl("resume", "x", *answered(world, a="retry", b="retry"))
    assert done.status == 0, done.err
    assert world.git("show", "agl/x:calc.py") == "both"
    assert "resolved by hand" in merges(world)


def test_what_a_red_build_left_does_not_land_with_the_next_one(world: World) -> None:
    gate = world.folder / "ok"
    build = f"echo log > report.log; echo broken >> calc.py; test -f {gate}"
    done = world.agl(*begin(world, {"a": [write("a.txt", "a\n")]}, build=build))
    assert done.status == 6, done.err
    gate.touch()
    done = world.agl("resume", "x", *answered(world, a="retry"))
    assert done.status == 0, done.err
    assert world.git("ls-tree", "--name-only", "agl/x").split() == ["a.txt", "calc.py"]
    assert world.git("show", "agl/x:calc.py") == "1"


def test_what_a_killed_build_left_does_not_land(world: World) -> None:
    gate = world.folder / "gate"
    build = f"echo log > report.log; test -f {gate}.slow && touch {gate} && sleep 60; true"
    done = world.agl(*begin(world, SAME, build=build))
    assert done.status == 6, done.err
    (tree_of(world) / "calc.py").write_text("both\n")
    gate.with_suffix(".slow").touch()
    run = world.start("resume", "x", *answered(world, a="retry", b="retry"))
    wait_for(gate.exists)
    run.send_signal(signal.SIGKILL)
    run.wait()
    gate.with_suffix(".slow").unlink()
    done = world.agl("resume", "x", *answered(world, a="retry", b="retry"))
    assert done.status == 0, done.err
    assert world.git("ls-tree", "--name-only", "agl/x").split() == ["calc.py"]
    assert world.git("show", "agl/x:calc.py") == "both"


def test_a_red_landing_is_shown_with_the_end_of_its_output(world: World) -> None:
    steps: dict[str, list[object]] = {"a": [write("a.txt", "a\n")]}
    done = world.agl(*begin(world, steps, build="echo why it is red; false"))
    assert done.status == 6, done.err
    assert "why it is red" in world.agl("show", "x").out


def test_a_stray_folder_in_the_ledger_hides_no_run(world: World) -> None:
    held(world)
    (landings,) = (path for path in world.home.rglob("landings") if path.is_dir())
    (landings / "a copy").mkdir()
    assert world.agl("list").out.splitlines()[1].startswith("x ")


def test_an_edit_between_a_conflict_and_its_resolution_runs_no_step_again(world: World) -> None:
    """In which order they land then is open, so what was typed may be set aside, and is told."""
    names = ["a", "b", "c", "d"]
    steps: dict[str, list[object]] = {name: [write(f"{name}.txt", name)] for name in names}
    arguments = begin(world, {**steps, **SAME})
    flow = world.folder / "flow.py"
    flow.write_text(FLOW.read_text())
    done = world.agl(*(str(flow) if one == str(FLOW) else one for one in arguments))
    assert done.status == 6, done.err
    (tree_of(world) / "calc.py").write_text("both\n")
    flow.write_text(f"{FLOW.read_text()}\n# edited\n")
    done = world.agl("resume", "x", *answered(world, a="retry", b="retry"), "--json")
    assert sorted(world.counted()) == names
    kept = [str(name) for name in done.json["kept"]]  # type: ignore[attr-defined]
    found = [f"refs/agl/kept/{name}:calc.py" for name in kept] + ["agl/x:calc.py"]
    assert "both" in [world.git("show", one) for one in found]


def test_what_was_typed_and_is_set_aside_is_told(world: World) -> None:
    """The merge was given up by hand, so the retry merges anew."""
    held(world)
    world.git("merge", "--abort", cwd=tree_of(world))
    (tree_of(world) / "calc.py").write_text("typed after all\n")
    done = world.agl("resume", "x", *answered(world, a="retry", b="retry"), "--json")
    assert done.status == 6, done.err
    texts = [world.git("show", f"refs/agl/kept/{name}:calc.py") for name in done.json["kept"]]  # type: ignore[attr-defined]
    assert "typed after all" in texts
    assert "kept x/" in done.err
