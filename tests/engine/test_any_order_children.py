"""Replay in any order with children, landings, grandchildren and holds."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agl.ports.errors import Overloaded
from agl.ports.ids import Namespace
from agl.ports.ledger import entry_address
from agl.sdk import Run
from agl.sdk._engine.ledger import Ledger
from engine.model import (
    ROOT,
    Asked,
    At,
    Item,
    Leaf,
    Nest,
    Process,
    Program,
    Stage,
    World,
    along,
    calling,
    gathered,
    leaves,
)

kinds = st.sampled_from(("write", "write", "tell", "look", "idle", "verify", "ask", "record"))
touches = st.sampled_from(("", "", "x", "x", "y", "red"))
leaf = st.builds(
    Leaf, kinds, st.sampled_from(("s", "t")), st.integers(0, 1), st.booleans(), touches
)
ends = st.sampled_from(("abort", "person", "person", "repair", "repair", "forget", "leave"))


def nests(inner: st.SearchStrategy[Item]) -> st.SearchStrategy[Nest]:
    body = st.lists(inner, min_size=1, max_size=3).map(tuple)
    names = st.sampled_from((("a", False), ("a", False), ("b", False), ("z", True)))
    return st.builds(lambda name, body, end: Nest(name[0], body, end, name[1]), names, body, ends)


def parallel(one: st.SearchStrategy[Leaf | Nest]) -> st.SearchStrategy[Item]:
    return st.lists(st.lists(one, min_size=1, max_size=2).map(tuple), min_size=2, max_size=3).map(
        tuple
    )


grandchild = nests(leaf)
child = nests(st.one_of(leaf, leaf, grandchild, parallel(leaf)))
item = st.one_of(leaf, child, parallel(st.one_of(leaf, child)))
programs = st.lists(item, min_size=1, max_size=4).map(tuple)


def edited(program: Program, place: int, item: Item, how: str) -> Program:
    """The program with an item changed, inserted or removed, here or in a child."""
    at = place % (len(program) + 1)
    match how:
        case "inside":
            for index in range(len(program)):
                one = program[(at + index) % len(program)]
                if isinstance(one, Nest):
                    body = edited(one.body, place // 2, item, ("change", "insert")[place % 2])
                    where = (at + index) % len(program)
                    return (
                        *program[:where],
                        replace(one, body=body),
                        *program[where + 1 :],
                    )
            return program
        case "insert":
            return (*program[:at], item, *program[at:])
        case "remove" if len(program) > 1:
            return (*program[:at], *program[at + 1 :])
        case "change":
            return (*program[:at], item, *program[at + 1 :])
    return program


edits = st.tuples(
    st.sampled_from(("same", "same", "same", "change", "insert", "remove", "inside", "revert")),
    st.integers(0, 9),
    st.one_of(leaf, child),
)
cuts = st.tuples(
    st.sampled_from(("s", "t", "a/", "verify", "a/s", "a/t", "b/s", "a-0/s", "a-1/s", "a/a/s")),
    st.integers(1, 2),
)
stages = st.builds(
    Stage,
    seed=st.integers(0, 2**16),
    lag=st.integers(0, 4),
    kill=st.one_of(st.none(), st.integers(0, 120)),
    faults=st.sampled_from(("", "", "caught", "raised")),
    again=st.one_of(st.none(), st.none(), cuts),
)


@pytest.mark.parametrize("examples", [250, pytest.param(5000, marks=pytest.mark.long)])
@pytest.mark.timeout(1200)
def test_children_in_any_order(examples: int) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(programs, st.lists(st.tuples(edits, stages), max_size=6), st.integers(0, 2**16))
    def check(
        first: Program, history: list[tuple[tuple[str, int, Item], Stage]], seed: int
    ) -> None:
        with TemporaryDirectory() as folder:
            world = World(Path(folder))
            program, earlier = first, [first]
            world.run(program, replace(history[0][1], again=None) if history else Stage())
            for (how, place, new), stage in history:
                assert not world.wrong, world.wrong
                program = (
                    earlier[place % len(earlier)]
                    if how == "revert"
                    else edited(program, place, new, how)
                )
                earlier.append(program)
                world.run(program, stage)
            assert not world.wrong, world.wrong
            report = world.run(program, Stage(seed=seed, lag=3))
            assert not world.wrong, world.wrong
            assert report is not None
            assert report.outcome == "finished", report.message

    check()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def executed(world: World) -> list[str]:
    """The words of what the last finished process ran, in order."""
    assert world.last is not None
    return [one.key[1] for one in world.last.executed]


def test_what_a_retry_landed_is_landed_after_an_edit(world: World) -> None:
    red = Nest("a", (Leaf("write", touch="red"),), "repair")
    world.run((red,))
    world.run((red, Leaf("write")))
    assert executed(world) == ["s/write/0"]
    assert not world.wrong


@pytest.mark.parametrize("begins_first", [True, False])
def test_again_runs_what_children_were_told_again(world: World, begins_first: bool) -> None:
    told = Nest("z", (Leaf("write", "b", takes=True), Leaf("write", "c")), based=True)
    before = (Nest("z", (Leaf("write", "a"),), "leave", based=True),) if begins_first else ()
    program: Program = (*before, Leaf("look", "plan"), told)
    world.run(program)
    world.run(program, Stage(again=("plan", 1)))
    assert executed(world) == ["plan/look/0", "b/write/0", "c/write/0"]
    assert not world.wrong


def test_again_runs_what_children_took_over_again(world: World) -> None:
    child = Nest("z", (Leaf("write", "b"), Leaf("write", "c")), based=True)
    world.run((child,))
    world.run((Leaf("look", "plan"), child))
    assert executed(world) == ["plan/look/0"]
    world.run((Leaf("look", "plan"), child), Stage(again=("plan", 1)))
    assert executed(world) == ["plan/look/0", "b/write/0", "c/write/0"]
    assert not world.wrong


def test_a_repair_that_merged_what_an_edit_took_away_is_made_again(world: World) -> None:
    clashing = Nest("z", (Leaf("write", touch="x"),), "repair", based=True)
    world.run((Leaf("write", "p", touch="x"), clashing))
    world.run((Leaf("write", "p", text=1, touch="x"), clashing))
    assert executed(world) == ["p/write/1!x", "r/repair/0"]
    assert not world.wrong


def test_after_an_edit_a_child_begins_behind_what_its_task_has_verified(world: World) -> None:
    async def walk(process: Process, run: Run[None]) -> None:
        written, begun = asyncio.Event(), asyncio.Event()

        async def writes() -> None:
            if process.world.epoch == 1:
                await begun.wait()
            await process.call(run, Leaf("write"), "", At())
            written.set()
            await begun.wait()

        async def begins() -> None:
            if process.world.epoch > 1:
                await written.wait()
            await along(process, run, process.program, "", At(), ROOT)
            begun.set()

        async with asyncio.TaskGroup() as group:
            group.create_task(writes())
            group.create_task(begins())

    child = Nest("a", (Leaf("look"),), "leave")
    world.run((Leaf("verify"), child), Stage(), walk)
    world.run((Leaf("verify"), child, Leaf("record")), Stage(), walk)
    assert not world.wrong


def test_again_in_a_child_undoes_what_another_merged_of_it(tmp_path: Path) -> None:
    clashing = (Leaf("write", touch="x"),)
    program: Program = (((Nest("a", clashing),), (Nest("b", clashing, "repair"),)),)
    repaired = 0
    for seed in range(12):
        world = World(tmp_path)
        world.run(program, Stage(seed, lag=3))
        repaired += any("repair" in words for words in executed(world))
        report = world.run(program, Stage(seed, lag=3, again=("a-0/s", 1)))
        assert report is not None
        assert world.last is not None
        assert set(world.repo.tokens(report.head)) == world.last.contents[ROOT]
        assert not world.wrong
    assert repaired


def test_a_kill_in_a_step_while_a_child_begins_does_not_lock_the_run(tmp_path: Path) -> None:
    program: Program = (((Leaf("write"),), (Nest("a", (Leaf("look"),), "leave"),)),)
    for seed, kill in product(range(8), range(5, 25)):
        world = World(tmp_path)
        world.run(program, Stage(seed, lag=3, kill=kill))
        assert world.run(program) is not None
        assert not world.wrong


def test_a_kill_after_a_kill_and_an_edit_does_not_lock_the_run(tmp_path: Path) -> None:
    """The third process is killed once it took over what the first one recorded, and before it
    needs the tree in which the second one was killed."""
    program: Program = (Leaf("write", "a"), Leaf("look", "a"))
    last = Nest("b", (Leaf("write"),))
    for kill, later in product(range(10, 26), range(5, 8)):
        world = World(tmp_path)
        world.run(program)
        world.run((*program, last), Stage(seed=kill, kill=kill))
        world.run((*program, last, Leaf("record")), Stage(kill=later))
        assert world.run((*program, last, Leaf("record"))) is not None
        assert not world.wrong


def test_a_step_that_failed_beside_one_of_a_child_is_no_breach(tmp_path: Path) -> None:
    async def walk(process: Process, run: Run[None]) -> None:
        async def failing() -> None:
            for _ in range(process.stage.seed % 16):
                await asyncio.sleep(0)
            with suppress(Overloaded):
                await process.call(run, Leaf("write"), "", At())

        async def looking() -> None:
            child = run.worktree("a")
            for _ in range(3):
                await process.call(child, Leaf("look"), "", At(), ROOT.child(child.namespace))

        async with asyncio.TaskGroup() as group:
            group.create_task(looking())
            group.create_task(failing())

    for seed in range(90):
        report = World(tmp_path).run((), Stage(seed, lag=4, failing="s/write/0"), walk)
        assert report is not None
        assert report.outcome == "finished", report.message


def test_a_landing_that_was_cut_off_lands_on_what_came_since(tmp_path: Path) -> None:
    program: Program = (((Nest("a", (Leaf("write"),)),), (Leaf("write"), Leaf("write"))),)
    for seed, kill in product(range(6), range(8, 40)):
        world = World(tmp_path)
        world.run(program, Stage(seed, lag=2, kill=kill))
        assert world.run(program, Stage(seed + 9, lag=4)) is not None
        assert not world.wrong


def test_a_step_that_was_lost_after_its_landing_lands_again(world: World) -> None:
    program: Program = (
        Nest("a", (((Leaf("write", "b"),), (Leaf("write", "c"),)),)),
        Leaf("look", "last"),
    )
    world.run(program, Stage(failing="last/look/0"))
    child = ROOT.child(Namespace("a"))
    broken = Ledger(world.store, ROOT).entries(child)[-1]
    world.store.put_text(entry_address(child, broken), "{")
    world.lost = {one.result for one in world.every if one.name == broken.name}
    report = world.run(program)
    assert report is not None
    assert world.last is not None
    again, _ = world.last.executed
    assert again.result in world.repo.tokens(report.head)


def test_a_hold_of_a_dead_process_is_kept_for_its_landing(tmp_path: Path) -> None:
    held = Nest("a", (Leaf("write", touch="red"),), "person")

    async def walk(process: Process, run: Run[None]) -> None:
        async def landing() -> None:
            await process.pause()
            await process.nest(run, held, "", At(), ROOT)

        async with asyncio.TaskGroup() as group:
            group.create_task(landing())
            if process.stage.kill is None:
                group.create_task(process.call(run, Leaf("write"), "", At()))

    for kill in range(10, 24):
        world = World(tmp_path)
        world.run((held,), Stage(kill=kill), walk)
        assert world.run((held,), Stage(seed=kill, lag=90), walk) is not None
        assert not world.wrong
        assert sum(bool(one.places) for one in world.every if "resolve" in one.key[1]) == 1


def test_a_retry_that_failed_goes_on_from_where_the_parent_is(world: World) -> None:
    async def walk(process: Process, run: Run[None]) -> None:
        child, inner = run.worktree("a"), ROOT.child(Namespace("a"))
        await process.call(child, Leaf("write", touch="red"), "", At(), inner)
        calling.set(Asked(("landing", "a", ""), None))
        landing = await child.integrate()
        await process.call(child, Leaf("repair", "r"), "", At(), inner, onto=run)
        calling.set(Asked(("landing", "a", ""), None))
        with suppress(Overloaded):
            await landing.retry()
        if process.stage.failing:
            await process.call(run, Leaf("write"), "", At())
            raise RuntimeError("at the very end")
        assert landing.landed
        await process.call(run, Leaf("write"), "", At())

    world.run((), Stage(failing="build 2"), walk)
    assert not world.wrong
    report = world.run((), Stage(faults="caught"), walk)
    assert report is not None
    assert report.outcome == "finished", report.message
    assert len(world.repo.tokens(report.head)) == 3


def crowd(count: int) -> Program:
    """Side by side: a step in a child that lands, a step in the parent, and a child that lands
    before a step in the parent."""
    parts: list[tuple[Leaf | Nest, ...]] = []
    for index in range(count):
        inner = Nest("c", (Leaf("write", text=index),))
        parts += [(inner,), (Leaf("write", "p", text=index),), (inner, Leaf("tell", "p"))]
    return (tuple(parts[:count]),)


def steps_recorded(world: World) -> int:
    return sum(bool(one.places) for one in world.every)


@pytest.mark.parametrize(
    ("count", "seed"),
    [
        *((12, seed) for seed in range(10)),
        (100, 0),
        *(pytest.param(150, seed, marks=pytest.mark.long) for seed in range(50)),
    ],
)
def test_when_one_of_a_crowd_fails_a_resume_runs_it_alone(
    world: World, count: int, seed: int
) -> None:
    program, chance = crowd(count), Random(seed)
    total = sum(1 for _ in leaves(program))
    middle = count // 6 * 3
    failing = f"s/write/{middle // 3}@{middle}"
    kills = [chance.randrange(3, 4 * count) for _ in range(chance.randrange(4))]
    for kill in (*kills, None):
        stage = Stage(chance.randrange(999), lag=9, kill=kill, failing=failing)
        world.run(program, stage, gathered)
        assert not world.wrong, world.wrong
    assert steps_recorded(world) == total - 1
    report = world.run(program, Stage(chance.randrange(999), lag=9))
    assert not world.wrong, world.wrong
    assert report is not None
    assert (report.replayed, report.ran) == (total - 1, 1)
    assert executed(world) == [failing]
    assert report.unlanded == ()
    assert len(world.repo.tokens(report.head)) == total


@pytest.mark.parametrize(
    ("count", "seed"),
    [
        *((12, seed) for seed in range(10)),
        (100, 0),
        *(pytest.param(150, seed, marks=pytest.mark.long) for seed in range(50)),
    ],
)
def test_a_crowd_killed_at_random_goes_on_in_another_order(
    world: World, count: int, seed: int
) -> None:
    program, chance = crowd(count), Random(seed)
    total, before = sum(1 for _ in leaves(program)), 0
    for _ in range(4):
        kill, faults = chance.randrange(3, 3 * count), chance.choice(("", "raised"))
        world.run(program, Stage(chance.randrange(999), lag=9, kill=kill, faults=faults))
        assert not world.wrong, world.wrong
        before = steps_recorded(world)
    report = world.run(program, Stage(chance.randrange(999), lag=9))
    assert not world.wrong, world.wrong
    assert report is not None
    assert (report.replayed, report.ran) == (before, total - before)
    assert steps_recorded(world) == total
    assert report.unlanded == ()
    assert len(world.repo.tokens(report.head)) == total
