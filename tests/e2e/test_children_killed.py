"""The real `agl` with children, killed anywhere and resumed: each lands once, and none is lost."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.world import World, script, shell, write

FLOW = Path(__file__).parent / "flow_of_children.py"
SCOPES = {"": "", "a": "a", "b": "b", "c": "c", "c/inner": "c/worktrees/inner"}


def the_script() -> str:
    def play(name: str, *calls: object) -> list[object]:
        return [{"calls": [shell(f"echo {name} >> $COUNTER"), *calls]}, {"text": "done"}]

    return script(
        {
            "write-a": play("write-a", write("same.txt", "a\n"), write("a.txt", "a\n")),
            "write-b": play("write-b", write("same.txt", "b\n"), write("b.txt", "b\n")),
            "write-c": play("write-c", write("c.txt", "c\n")),
            "write-inner": play("write-inner", write("inner.txt", "inner\n")),
            "repair": play("repair", write("same.txt", "both\n")),
            "last": play("last", write("last.txt", "last\n")),
        }
    )


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    world.make_repository({"same.txt": "base\n"})
    (tmp_path / "script.json").write_text(the_script())
    done = world.agl("init", "--build", "test -f same.txt")
    assert done.status == 0, done.err
    yield world
    world.kill_survivors()


def arguments(world: World) -> tuple[str, ...]:
    return ("run", str(FLOW), "-n", "x", "--script", f"scripted:{world.folder}/script.json")


def recorded_steps(world: World) -> set[str]:
    run = next(world.home.glob("projects/*/runs/x"), None)
    files = [] if run is None else run.glob("**/steps/*/*.json")
    return {json.loads(file.read_text())["name"] for file in files}


def landings(world: World) -> list[dict[str, object]]:
    """The landings that landed, of every scope."""
    run = next(world.home.glob("projects/*/runs/x"))
    read = [json.loads(file.read_text()) for file in run.glob("**/landings/*/*.json")]
    return [one for one in read if one["head_after"] != one["head_before"]]


def resumed(world: World) -> None:
    for _ in range(3):
        done = world.agl("resume", "x")
        if done.status == 3:
            done = world.agl(*arguments(world))
        if done.status == 0:
            return
    raise AssertionError(f"{done.status}: {done.err}")


def check_after_kill(world: World) -> None:
    recorded, before = recorded_steps(world), world.counted()
    resumed(world)
    after = world.counted()[len(before) :]
    assert not recorded & set(after), "a recorded step ran again"
    assert len(after) == len(set(after)), "a step ran twice in one go"
    check_end(world)


def check_end(world: World) -> None:
    names = ["a.txt", "b.txt", "c.txt", "inner.txt", "last.txt", "same.txt"]
    assert world.git("ls-tree", "--name-only", "agl/x").split() == names
    assert world.git("show", "agl/x:same.txt") == "both"
    landed = [str(one["name"]) for one in landings(world)]
    assert sorted(landed) == ["a", "b", "c", "inner"]
    merges = world.git("log", "--first-parent", "--merges", "--format=%s", "agl/x").splitlines()
    assert sorted(merges) == [f"Land {name} on agl/x" for name in ("a", "b", "c")]
    shown = world.agl("show", "x", "--json").json
    assert shown["summary"]["result"] == "landed"  # type: ignore[index]
    assert {one["state"] for one in shown["children"]} == {"landed"}  # type: ignore[attr-defined]
    assert world.survivors() == []
    assert world.git("status", "--porcelain") == ""
    own = world.repo / ".git" / "agl"
    assert not [lock for lock in world.repo.rglob("*.lock") if own not in lock.parents]


def test_an_uninterrupted_run_is_what_it_is_compared_with(world: World) -> None:
    done = world.agl(*arguments(world), "--json")
    assert done.status == 0, done.err
    check_end(world)
    assert sorted(world.counted()) == sorted(set(world.counted()))


def points(total: int, step: int) -> list[object]:
    """Every point, those between the sampled ones only in the long run of the tests."""
    return [
        pytest.param(n, marks=() if n % step == 1 else pytest.mark.long)
        for n in range(1, total + 1)
    ]


GIT_CALLS, RENAMES = 110, 110


def killed(world: World, more: dict[str, str]) -> bool:
    done = world.agl(*arguments(world), more=more)
    assert done.status in (-9, 0), done.err
    return done.status == -9


@pytest.mark.slow
@pytest.mark.parametrize(("more", "n"), [("git", GIT_CALLS), ("rename", RENAMES)])
def test_the_points_go_beyond_the_end_of_the_run(world: World, more: str, n: int) -> None:
    assert not killed(world, world.arm(git=n) if more == "git" else world.arm(rename=n))
    check_end(world)


@pytest.mark.slow
@pytest.mark.parametrize("n", points(GIT_CALLS, 15))
def test_children_killed_at_a_git_process(world: World, n: int) -> None:
    if killed(world, world.arm(git=n) | {"PYTHONHASHSEED": str(n)}):
        check_after_kill(world)
    else:
        check_end(world)


@pytest.mark.slow
@pytest.mark.parametrize("n", points(RENAMES, 19))
def test_children_killed_at_a_write_of_the_ledger(world: World, n: int) -> None:
    if killed(world, world.arm(rename=n) | {"PYTHONHASHSEED": str(n)}):
        check_after_kill(world)
    else:
        check_end(world)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=() if n < 3 else pytest.mark.long) for n in range(12)]
)
def test_children_killed_again_and_again_at_any_time(world: World, seed: int) -> None:
    chance = random.Random(seed)
    first = True
    for _ in range(5):
        recorded, before = recorded_steps(world), world.counted()
        begun = bool(list(world.home.glob("projects/*/runs/x/run.json")))
        go = arguments(world) if first or not begun else ("resume", "x")
        first = False
        process = world.start(*go, more={"PYTHONHASHSEED": str(seed)})
        time.sleep(chance.uniform(0.2, 1.6))
        process.kill()
        process.wait()
        assert not recorded & set(world.counted()[len(before) :])
    check_after_kill(world)
