"""`agl run split` on real git, with a scripted model."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from e2e.world import World, script, shell, write

LINES = "".join(f"{n}\n" for n in range(9))
CHUNKS: list[dict[str, object]] = [
    {"id": "a", "title": "Do a", "task": "Change the list."},
    {"id": "b", "title": "Do b", "task": "Change the list, too.", "needs": []},
    {"id": "c", "title": "Do c", "task": "Write c.", "needs": ["a"]},
    {"id": "d", "title": "Do d", "task": "Write d.", "needs": ["b", "c"]},
]
BUILD = "test -f list.txt && ! grep -q '<<<<' list.txt"


def writing(name: str, path: str, text: str) -> Sequence[object]:
    """A step that counts itself outside of every tree, writes, and hands in."""
    hand_in = {"tool": "hand_in", "arguments": {"summary": "done"}}
    return [
        {"calls": [shell(f"echo {name} >> $COUNTER"), write(path, text)]},
        {"calls": [hand_in]},
    ]


def planning(chunks: Sequence[Mapping[str, object]]) -> Sequence[object]:
    return [{"calls": [{"tool": "hand_in", "arguments": {"chunks": chunks}}]}]


STEPS: dict[str, Sequence[object]] = {
    "plan": planning(CHUNKS),
    "implement@a": writing("a", "list.txt", f"from a\n{LINES}"),
    "implement@b": writing("b", "list.txt", f"from b\n{LINES}"),
    "implement@c": writing("c", "c.txt", "c\n"),
    "implement@d": writing("d", "d.txt", "d\n"),
    "repair": writing("repair", "list.txt", f"from a and b\n{LINES}"),
}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    world.make_repository({"list.txt": LINES})
    (tmp_path / "agent.json").write_text(script(STEPS))
    done = world.agl("init", "--build", BUILD)
    assert done.status == 0, done.err
    yield world
    world.kill_survivors()


def arguments(world: World, *more: str) -> tuple[str, ...]:
    model = f"scripted:{world.folder}/agent.json"
    models = ("--planner", model, "--implementer", model)
    return ("run", "split", "-n", "x", "-r", "Do it all", *models, *more)


def files(world: World) -> dict[str, str]:
    names = world.git("ls-tree", "-r", "--name-only", "agl/x").splitlines()
    return {name: world.git("show", f"agl/x:{name}").splitlines()[0] for name in names}


def recorded(world: World) -> set[str]:
    """The steps in the ledger, by the name under which they count themselves."""
    found = set()
    for file in world.home.glob("projects/*/runs/x/worktrees/*/steps/*/*.json"):
        entry = json.loads(file.read_text())
        found.add("repair" if entry["name"] == "repair" else file.parts[-4])
    return found


def check_end(world: World) -> None:
    assert files(world) == {"list.txt": "from a and b", "c.txt": "c", "d.txt": "d"}
    subjects = world.git("log", "--format=%s", "--first-parent", "agl/x").splitlines()
    assert sorted(subjects) == [*(f"Land {name} on agl/x" for name in "abcd"), "first"]
    assert recorded(world) == {"a", "b", "c", "d", "repair"}
    assert world.survivors() == []
    assert world.git("status", "--porcelain") == ""
    own = world.repo / ".git" / "agl"
    assert not [lock for lock in world.repo.rglob("*.lock") if own not in lock.parents]


REPAIR = ("--on-conflict", "repair")


def test_chunks_land_and_an_agent_repairs_what_conflicts(world: World) -> None:
    done = world.agl(*arguments(world, *REPAIR))
    assert done.status == 0, done.err
    assert "x       landed on agl/x\n" in done.out
    for chunk in CHUNKS:
        assert f"  {chunk['id']}  landed  {chunk['title']}\n" in done.err
    check_end(world)
    assert sorted(world.counted()) == ["a", "b", "c", "d", "repair"]
    subjects = set(world.git("log", "--format=%s", "agl/x").splitlines())
    assert {chunk["title"] for chunk in CHUNKS} < subjects
    assert subjects & {"Do a (repair 1)", "Do b (repair 1)"}


def test_a_person_resolves_a_conflict_in_the_runs_tree(world: World) -> None:
    done = world.agl(*arguments(world), "--json")
    assert done.status == 6, done.err
    questions = done.json["questions"]
    assert isinstance(questions, list)
    assert questions in (["a: conflict (1)"], ["b: conflict (1)"])
    before, known = world.counted(), recorded(world)
    held = Path(str(world.agl("show", "x", "--json").json["tree"])) / "list.txt"
    assert "<<<<<<<" in held.read_text()
    held.write_text("from a and b\n")
    answers = world.folder / "answers.json"
    answers.write_text(json.dumps(dict.fromkeys(questions, "retry")))
    done = world.agl("resume", "x", "--answers", str(answers))
    assert done.status == 0, done.err
    assert files(world) == {"list.txt": "from a and b", "c.txt": "c", "d.txt": "d"}
    assert not known & set(world.counted()[len(before) :])
    assert "repair" not in world.counted()


def test_a_red_build_is_skipped_and_what_was_given_up_lands_later(world: World) -> None:
    _, b, c, d = CHUNKS
    three = [b, c | {"needs": ["b"]}, d | {"needs": ["c"]}]
    (world.folder / "agent.json").write_text(script({**STEPS, "plan": planning(three)}))
    assert world.agl("init", "--build", "! test -f c.txt").status == 0
    done = world.agl(*arguments(world, "--on-conflict", "skip"))
    assert done.status == 7, done.err
    assert done.err.splitlines()[-4:] == [
        "agl: not all has landed: 1 landed, 2 given up",
        "  c: red build: the build failed with status 1",
        "  d: it needs 'c', which was given up",
        "`agl resume x --again 'c/'` tries it once more",
    ]
    assert files(world) == {"list.txt": "from b"}
    assert world.agl("init", "--build", BUILD).status == 0
    done = world.agl("resume", "x", "--again", "c/")
    assert done.status == 0, done.err
    assert files(world) == {"list.txt": "from b", "c.txt": "c", "d.txt": "d"}
    assert sorted(world.counted()) == ["b", "c", "d"]


def test_an_agent_that_resolves_nothing_has_its_rounds(world: World) -> None:
    hand_in = {"tool": "hand_in", "arguments": {"summary": "done"}}
    idle = [{"calls": [shell("echo repair >> $COUNTER"), hand_in]}]
    (world.folder / "agent.json").write_text(script({**STEPS, "repair": idle}))
    done = world.agl(*arguments(world, *REPAIR, "--rounds", "2"))
    assert done.status == 7, done.err
    assert " conflict after 2 rounds of repair: list.txt: changed on both sides\n" in done.err
    assert world.counted().count("repair") == 2
    assert files(world)["list.txt"] in ("from a", "from b")


def resumed(world: World) -> None:
    """Resumes, as a person would, until the run has ended; one that was never begun is begun."""
    for _ in range(3):
        done = world.agl("resume", "x")
        if done.status == 3:
            done = world.agl(*arguments(world, *REPAIR))
        if done.status == 0:
            return
    raise AssertionError(f"{done.status}: {done.err}")


def check_after_kill(world: World) -> None:
    known, before = recorded(world), world.counted()
    resumed(world)
    after = world.counted()[len(before) :]
    assert not known & set(after), "a recorded step ran again"
    assert len(after) == len(set(after)), "a step ran twice in one go"
    check_end(world)


def points(total: int, step: int) -> list[object]:
    """Every point, those between the sampled ones only in the long run of the tests."""
    return [
        pytest.param(n, marks=() if n % step == 1 else pytest.mark.long)
        for n in range(1, total + 1)
    ]


GIT_CALLS, RENAMES = 60, 100


@pytest.mark.slow
@pytest.mark.parametrize("n", points(GIT_CALLS, 9))
def test_killed_at_a_git_process(world: World, n: int) -> None:
    done = world.agl(*arguments(world, *REPAIR), more=world.arm(git=n))
    assert done.status in (-9, 0), done.err
    check_after_kill(world)


@pytest.mark.slow
@pytest.mark.parametrize("n", points(RENAMES, 15))
def test_killed_at_a_write_of_the_ledger(world: World, n: int) -> None:
    done = world.agl(*arguments(world, *REPAIR), more=world.arm(rename=n))
    assert done.status in (-9, 0), done.err
    check_after_kill(world)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=() if n < 3 else pytest.mark.long) for n in range(24)]
)
def test_killed_again_and_again_at_any_time(world: World, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(4):
        known, before = recorded(world), world.counted()
        begun = any(world.home.glob("projects/*/runs/x/run.json"))
        process = world.start(*(("resume", "x") if begun else arguments(world, *REPAIR)))
        time.sleep(chance.uniform(0.2, 2))
        process.kill()
        process.wait()
        assert not known & set(world.counted()[len(before) :])
    check_after_kill(world)
