"""The real `agl`, killed anywhere and resumed, repeats nothing, leaves nobody behind, and ends
where an uninterrupted run ends."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.world import World, script, shell, write

FLOW = Path(__file__).parent / "flow_of_twenty.py"


def counting(name: str) -> dict[str, object]:
    return shell(f"echo {name} >> $COUNTER")


def the_script() -> str:
    steps: dict[str, list[object]] = {
        f"write{turn}": [
            {"calls": [counting(f"write{turn}"), write(f"{turn}.txt", f"{turn}\n")]},
            {"text": "done"},
        ]
        for turn in range(10)
    }
    for name in (*(f"read{turn}" for turn in range(9) if turn != 7), "last"):
        steps[name] = [{"calls": [counting(name)]}]
    steps["write2"] = [
        {
            "calls": [
                counting("write2"),
                write("2.txt", "2\n"),
                shell("setsid sleep 300 >/dev/null 2>&1 & echo left"),
            ]
        }
    ]
    steps["write4"] = [
        {"calls": [counting("write4"), write("4.txt", "4\n")]},
        {"calls": [shell("command -p git add -A && command -p git commit -q -m own")]},
        {"calls": [write("4b.txt", "4b\n")]},
    ]
    steps["report"] = [
        {"calls": [counting("report"), {"tool": "hand_in", "arguments": {"text": "seen"}}]}
    ]
    return script(steps)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    world.make_repository({"calc.py": "def add(a, b):\n    return a + b\n"})
    (tmp_path / "script.json").write_text(the_script())
    (tmp_path / "answers.json").write_text(json.dumps({"Go on?": "yes"}))
    done = world.agl("init", "--build", "test -f calc.py")
    assert done.status == 0, done.err
    yield world
    world.kill_survivors()


def arguments(world: World) -> tuple[str, ...]:
    given = ("--answers", str(world.folder / "answers.json"))
    return ("run", str(FLOW), "-n", "x", "--script", f"scripted:{world.folder}/script.json", *given)


def resumed(world: World) -> None:
    """Resumes, as a person would, until the run has ended; a run that was never begun is begun."""
    for _ in range(3):
        done = world.agl("resume", "x", "--answers", str(world.folder / "answers.json"))
        if done.status == 3:
            done = world.agl(*arguments(world))
        if done.status == 0:
            return
    raise AssertionError(f"{done.status}: {done.err}")


def shape(world: World) -> tuple[str, list[tuple[object, ...]], list[str]]:
    """The final tree, the chain, and the subjects on the branch."""
    chain: list[tuple[object, ...]] = [
        (entry["kind"], entry["name"], entry["ordinal"], json.dumps(entry["value"]))
        for entry in world.entries("x")
    ]
    tree = world.git("rev-parse", "agl/x^{tree}")
    return tree, chain, world.git("log", "--format=%s", "agl/x").splitlines()


EXPECTED = [f"{turn}.txt" for turn in range(10)] + ["4b.txt", "calc.py"]


def check_after_kill(world: World) -> None:
    recorded = {str(entry["name"]) for entry in world.entries("x") if entry["kind"] == "step"}
    before = world.counted()
    resumed(world)
    after = world.counted()[len(before) :]
    assert not recorded & set(after), "a recorded step ran again"
    assert len(after) == len(set(after)), "a step ran twice in one go"
    check_end(world)


def check_end(world: World) -> None:
    tree, chain, subjects = shape(world)
    names = [name for kind, name, _, _ in chain if kind == "step"]
    wanted = [
        name
        for turn in range(10)
        for name in (
            f"write{turn}",
            *(() if turn == 9 else ("report" if turn == 7 else f"read{turn}",)),
        )
    ] + ["last"]
    assert names == wanted
    assert [kind for kind, *_ in chain].count("verify") == 1
    assert [kind for kind, *_ in chain].count("ask") == 1
    assert sorted(world.git("ls-tree", "--name-only", "agl/x").splitlines()) == sorted(EXPECTED)
    assert subjects == [
        *(f"write {turn}" for turn in range(9, 4, -1)),
        "write 4",
        "own",
        *(f"write {turn}" for turn in range(3, -1, -1)),
        "first",
    ]
    for turn in range(10):
        assert world.git("show", f"agl/x:{turn}.txt") == str(turn)
    assert world.survivors() == []
    assert world.git("status", "--porcelain") == ""
    own = world.repo / ".git" / "agl"
    assert not [lock for lock in world.repo.rglob("*.lock") if lock.parent != own]
    assert tree


def test_an_uninterrupted_run_is_what_it_is_compared_with(world: World) -> None:
    done = world.agl(*arguments(world), "--json")
    assert done.status == 0, done.err
    check_end(world)
    assert sorted(world.counted()) == sorted(set(world.counted()))


def killed(world: World, more: dict[str, str]) -> bool:
    """Whether the armed run died; it does not when it has ended before its moment came."""
    done = world.agl(*arguments(world), more=more)
    assert done.status in (-9, 0), done.err
    return done.status == -9


def points(total: int, step: int) -> list[object]:
    """Every point, those between the sampled ones only in the long run of the tests."""
    return [
        pytest.param(n, marks=() if n % step == 1 else pytest.mark.long)
        for n in range(1, total + 1)
    ]


GIT_CALLS, RENAMES = 80, 140


@pytest.mark.slow
@pytest.mark.parametrize(("more", "n"), [("git", GIT_CALLS), ("rename", RENAMES)])
def test_the_points_go_beyond_the_end_of_the_run(world: World, more: str, n: int) -> None:
    """So that every point of the run is among them."""
    assert not killed(world, world.arm(git=n) if more == "git" else world.arm(rename=n))
    check_end(world)


@pytest.mark.slow
@pytest.mark.parametrize("n", points(GIT_CALLS, 11))
def test_killed_at_a_git_process(world: World, n: int) -> None:
    if killed(world, world.arm(git=n) | {"PYTHONHASHSEED": str(n)}):
        check_after_kill(world)
    else:
        check_end(world)


@pytest.mark.slow
@pytest.mark.parametrize("n", points(RENAMES, 15))
def test_killed_at_a_write_of_the_ledger(world: World, n: int) -> None:
    if killed(world, world.arm(rename=n) | {"PYTHONHASHSEED": str(n)}):
        check_after_kill(world)
    else:
        check_end(world)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=() if n < 4 else pytest.mark.long) for n in range(24)]
)
def test_killed_again_and_again_at_any_time(world: World, seed: int) -> None:
    chance = random.Random(seed)
    first = True
    for _ in range(4):
        recorded = {str(one["name"]) for one in world.entries("x") if one["kind"] == "step"}
        before = world.counted()
        begun = bool(list(world.home.glob("projects/*/runs/x/run.json")))
        given = ("--answers", str(world.folder / "answers.json"))
        go = arguments(world) if first or not begun else ("resume", "x", *given)
        first = False
        process = world.start(*go, more={"PYTHONHASHSEED": str(seed)})
        time.sleep(chance.uniform(0.1, 1.5))
        process.kill()
        process.wait()
        assert not recorded & set(world.counted()[len(before) :])
    check_after_kill(world)
