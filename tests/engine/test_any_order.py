"""Replay goes by content and scope, never by position or completion order."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count, product
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agl.ports.errors import Overloaded
from agl.ports.ids import Scope
from agl.ports.ledger import Entry, entry_address
from agl.sdk import ModelId, Role, Run, Screen, TextInput, tool, workflow
from agl.sdk._engine.ledger import Ledger
from agl.testing import Play, harness
from engine.model import (
    LABEL,
    PROJECT,
    Asked,
    At,
    Item,
    Leaf,
    Process,
    Program,
    Stage,
    Walk,
    World,
    calling,
    gathered,
    in_order,
    silent,
    telling,
)

kinds = st.sampled_from(("write", "tell", "look", "idle", "verify", "ask", "record"))
leaf = st.builds(Leaf, kinds, st.sampled_from(("s", "t")), st.integers(0, 1), st.booleans())
branch = st.lists(leaf, min_size=1, max_size=3).map(tuple)
parallel = st.lists(branch, min_size=2, max_size=3).map(tuple)
item = st.one_of(leaf, leaf, parallel)
programs = st.lists(item, min_size=1, max_size=5).map(tuple)


def edited(program: Program, place: int, item: Item, how: str) -> Program:
    """The program with an item changed, inserted or removed."""
    at = place % (len(program) + 1)
    match how:
        case "insert":
            return (*program[:at], item, *program[at:])
        case "remove" if len(program) > 1:
            return (*program[:at], *program[at + 1 :])
        case "change":
            return (*program[:at], item, *program[at + 1 :])
    return program


edits = st.tuples(
    st.sampled_from(("same", "same", "change", "insert", "remove", "revert")),
    st.integers(0, 9),
    item,
)
stages = st.builds(
    Stage,
    seed=st.integers(0, 2**16),
    lag=st.integers(0, 4),
    kill=st.one_of(st.none(), st.integers(0, 60)),
    faults=st.sampled_from(("", "caught", "raised")),
    again=st.one_of(
        st.none(), st.none(), st.tuples(st.sampled_from(("s", "t")), st.integers(1, 3))
    ),
)


@settings(
    max_examples=400,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate, Phase.shrink),
)
@given(programs, st.lists(st.tuples(edits, stages), max_size=6), st.integers(0, 2**16))
def test_any_order(
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
        assert report.outcome == "finished"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize("ticks", range(40))
def test_a_step_cancelled_in_its_ending_is_given_when_asked_again(world: World, ticks: int) -> None:
    program: Program = (Leaf("write"),)

    async def walk(process: Process, run: Run[None]) -> None:
        async def spoil() -> None:
            for _ in range(ticks):
                await asyncio.sleep(0)
            raise RuntimeError("a sibling failed")

        at = At()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(process.call(run, Leaf("write"), "", at))
                group.create_task(spoil())
        except* RuntimeError:
            pass
        if not process.calls:
            await process.call(run, Leaf("write"), "", at)

    report = world.run(program, Stage(seed=1, lag=4), walk)
    assert report is not None
    assert not world.wrong
    assert sum(bool(one.places) for one in world.every) == 1


def side_by_side(count: int) -> Program:
    kinds = ("write", "tell", "look", "idle")
    return (tuple((Leaf(kinds[index % 4], text=index),) for index in range(count)),)


def recorded(world: World) -> int:
    return sum(bool(one.places) for one in world.every)


def executed(world: World) -> list[str]:
    """The words of what the last finished process ran, in order."""
    assert world.last is not None
    return [one.key[1] for one in world.last.executed]


@pytest.mark.parametrize("count", [3, 100])
def test_when_the_middle_one_fails_a_resume_runs_it_alone(world: World, count: int) -> None:
    middle = count // 2
    program = side_by_side(count)
    failing = f"s/{('write', 'tell', 'look', 'idle')[middle % 4]}/{middle}@{middle}"
    world.run(program, Stage(seed=1, lag=9, failing=failing), gathered)
    assert recorded(world) == count - 1
    report = world.run(program, Stage(seed=2, lag=9), gathered)
    assert report is not None
    assert (report.replayed, report.ran) == (count - 1, 1)
    assert executed(world) == [failing]
    assert not world.wrong


@pytest.mark.parametrize("seed", range(5))
def test_a_hundred_side_by_side_killed_anywhere_run_once_each(world: World, seed: int) -> None:
    program, chance = side_by_side(100), Random(seed)
    for _ in range(4):
        kill, faults = chance.randrange(20, 70), chance.choice(("", "raised"))
        world.run(program, Stage(chance.randrange(999), lag=9, kill=kill, faults=faults))
    before = recorded(world)
    report = world.run(program, Stage(chance.randrange(999), lag=9))
    assert report is not None
    assert 0 < before < 100
    assert (report.replayed, report.ran) == (before, 100 - before)
    assert recorded(world) == 100
    assert not world.wrong


@pytest.mark.parametrize("seed", range(3))
def test_three_side_by_side_killed_at_each_write_have_one_outcome(
    tmp_path: Path, seed: int
) -> None:
    program: Program = (((Leaf("write"),), (Leaf("tell"), Leaf("verify")), (Leaf("ask"),)),)
    for kill in count():
        world = World(tmp_path)
        killed = world.run(program, Stage(seed, lag=4, kill=kill)) is None
        assert world.run(program, Stage(seed + 7, lag=4)) is not None
        assert recorded(world) == 4
        assert not world.wrong
        if not killed:
            break
    assert kill > 10


def test_fifty_kills_on_the_way_have_one_outcome(world: World) -> None:
    program = (*side_by_side(20), Leaf("verify"), Leaf("ask"), Leaf("record"))
    reports = [world.run(program, Stage(seed, lag=4, kill=seed % 6)) for seed in range(50)]
    assert reports[0] is None
    assert world.run(program, Stage(99, lag=4)) is not None
    assert recorded(world) == 23
    assert not world.wrong


def test_a_cancelled_run_goes_on_behind_its_last_entry(world: World) -> None:
    program: Program = tuple(Leaf("write", text=index) for index in range(4))

    async def interrupted(process: Process, run: Run[None]) -> None:
        at = At()
        for leaf in program[:2]:
            assert isinstance(leaf, Leaf)
            await process.call(run, leaf, "", at)
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await process.call(run, Leaf("write", text=2), "", at)

    with pytest.raises(asyncio.CancelledError):
        world.run(program, Stage(), interrupted)
    report = world.run(program)
    assert report is not None
    assert (report.replayed, report.ran) == (2, 2)
    assert not world.wrong


def test_steps_and_questions_in_turn_are_each_done_once(tmp_path: Path) -> None:
    program: Program = (Leaf("write"), Leaf("ask"), Leaf("tell"), Leaf("ask", text=1))
    for kill in count():
        world = World(tmp_path)
        killed = world.run(program, Stage(kill=kill)) is None
        done = recorded(world)
        world.run(program)
        assert world.last is not None
        assert len(world.last.executed) == 4 - done * killed
        assert recorded(world) == 4
        assert not world.wrong
        if not killed:
            break


def test_what_took_a_changed_value_runs_again(world: World) -> None:
    program: Program = (Leaf("look", "a"), Leaf("write", "b", takes=True), Leaf("write", "c"))
    world.run(program)
    world.run((Leaf("look", "a", text=1), *program[1:]))
    assert executed(world) == ["a/look/1", "b/write/0", "c/write/0"]
    world.run((Leaf("look", "a", text=1), program[1], Leaf("write", "c", text=1)))
    assert executed(world) == ["c/write/1"]
    assert not world.wrong


def test_a_source_that_returns_is_paid_for_no_second_time(world: World) -> None:
    program: Program = (Leaf("tell", "a"), Leaf("verify"), Leaf("write", "b", takes=True))
    other: Program = (Leaf("tell", "a", text=1), *program[1:])
    for source in (program, other, program, other):
        world.run(source)
    assert executed(world) == []
    assert world.epoch == 4
    assert recorded(world) == 6
    assert not world.wrong


def test_a_step_that_moved_behind_a_change_runs_on_the_new_tree(world: World) -> None:
    program: Program = (Leaf("look", "a"), Leaf("write", "b"), Leaf("verify"), Leaf("look", "c"))
    world.run(program)
    world.run((program[0], Leaf("write", "new"), *program[1:]))
    assert executed(world) == ["new/write/0", "b/write/0", "s/verify/0", "c/look/0"]
    assert not world.wrong


def test_a_step_behind_one_that_changed_nothing_is_served(world: World) -> None:
    program: Program = (Leaf("write", "a"), Leaf("write", "b"))
    world.run(program)
    world.run((program[0], Leaf("look", "new"), program[1]))
    assert executed(world) == ["new/look/0"]
    assert not world.wrong


def test_again_runs_the_step_and_all_behind_it_and_nothing_before(world: World) -> None:
    program: Program = (
        Leaf("write", "a"),
        Leaf("write", "b"),
        Leaf("ask"),
        Leaf("write", "b"),
        Leaf("verify"),
        Leaf("record"),
        Leaf("look", "c"),
    )
    world.run(program)
    world.run(program, Stage(again=("b", 2)))
    assert executed(world) == ["b/write/0", "s/verify/0", "c/look/0"]
    world.run(program, Stage(again=("b", 1)))
    assert executed(world) == ["b/write/0", "b/write/0", "s/verify/0", "c/look/0"]
    world.run((*program, Leaf("write", "d")))
    assert executed(world) == ["d/write/0"]
    assert not world.wrong


def test_again_holds_in_the_epoch_that_the_same_resume_opens(world: World) -> None:
    program: Program = (Leaf("write", "a"), Leaf("look", "b"), Leaf("look", "c"))
    world.run(program)
    world.run((*program, Leaf("look", "d")), Stage(again=("b", 1)))
    assert executed(world) == ["b/look/0", "c/look/0", "d/look/0"]
    assert not world.wrong


def test_again_holds_for_what_an_older_epoch_recorded_before_the_step_was_there(
    world: World,
) -> None:
    program: Program = (Leaf("look", "b"),)
    world.run(program)
    world.run((Leaf("look", "a"), *program))
    assert executed(world) == ["a/look/0"]
    world.run((Leaf("look", "a"), *program), Stage(again=("a", 1)))
    assert executed(world) == ["a/look/0", "b/look/0"]
    assert not world.wrong


def test_again_of_a_step_that_is_not_recorded_is_refused(world: World) -> None:
    program: Program = (Leaf("write", "a"),)
    world.run(program)
    assert world.run(program, Stage(again=("a", 2))) is None
    assert not world.wrong


def test_an_answer_during_a_step_that_is_cut_off_does_not_lock_the_run(tmp_path: Path) -> None:
    program: Program = (((Leaf("write"), Leaf("write")), (Leaf("look"), Leaf("ask"))),)
    for seed, kill in product(range(6), range(25)):
        world = World(tmp_path)
        world.run(program, Stage(seed, lag=3, kill=kill))
        assert world.run(program) is not None
        assert not world.wrong


def test_an_entry_whose_commit_is_gone_runs_again_with_all_behind_it(world: World) -> None:
    program: Program = (Leaf("write", "a"), Leaf("write", "b"), Leaf("look", "c"))
    world.run(program, Stage(failing="c/look/0"))
    repo = world.repo
    lost = repo.branches["agl/run"]
    (repo.branches["agl/run"],) = repo.commits.pop(lost).parents
    repo.written.clear()
    world.lost = {one.result for one in world.every if one.name == "b"}
    world.run(program)
    assert executed(world) == ["b/write/0", "c/look/0"]
    assert not world.wrong


def test_equal_steps_side_by_side_are_counted(world: World) -> None:
    program: Program = tuple(Leaf("write") for _ in range(5))

    async def alike(process: Process, run: Run[None]) -> None:
        async def one() -> None:
            await process.pause()
            await run.step(silent("s", "s/write/0"), commit="one of five")

        calling.set(Asked(("step", "s/write/0", ""), None))
        async with asyncio.TaskGroup() as group:
            for _ in range(5):
                group.create_task(one())

    for seed in range(2):
        world.run(program, Stage(seed, lag=4, kill=7), alike)
    before = recorded(world)
    assert 0 < before < 5
    world.wrong.clear()
    report = world.run(program, Stage(5, lag=4), alike)
    assert report is not None
    assert (report.replayed, report.ran) == (before, 5 - before)
    assert len(world.repo.tokens(report.head)) == 5


def entries(world: World) -> tuple[Entry, ...]:
    return Ledger(world.store, Scope(PROJECT, LABEL)).entries(Scope(PROJECT, LABEL))


def unfinished(world: World, program: Program, stage: Stage, walk: Walk) -> None:
    """Goes through it all and fails at the very end, so that a resume goes through it again."""

    async def failing(process: Process, run: Run[None]) -> None:
        await walk(process, run)
        raise RuntimeError("at the very end")

    report = world.run(program, replace(stage, failing="none"), failing)
    assert report is not None
    assert report.outcome == "failed"


def test_a_verdict_goes_to_the_task_that_it_was_given_on(world: World) -> None:
    verdicts: list[dict[int, str]] = []

    async def walk(process: Process, run: Run[None]) -> None:
        found: dict[int, str] = {}

        async def branch(number: int) -> None:
            at = At()
            await process.call(run, Leaf("write"), f"@{number}", at)
            await process.pause()
            calling.set(Asked(("verify", "check", ""), run.head))
            found[number] = (await run.verify("check")).tail

        async with asyncio.TaskGroup() as group:
            for number in range(4):
                group.create_task(branch(number))
        verdicts.append(found)

    for seed in range(6):
        unfinished(world, (), Stage(seed, lag=4), walk)
    assert all(found == verdicts[0] for found in verdicts)
    assert len(set(verdicts[0].values())) == 4


def test_an_adopted_verdict_is_found_again_in_its_new_epoch(world: World) -> None:
    program: Program = (((Leaf("write"),), (Leaf("look"),)), Leaf("verify"))
    world.run(program)
    longer = (program[0], Leaf("look"), Leaf("verify"), Leaf("write"))
    unfinished(world, longer, Stage(), in_order)
    world.run(longer)
    assert executed(world) == []
    assert sum(one.key[0] == "verify" for one in world.every) == 1
    assert not world.wrong


@pytest.mark.parametrize("kind", ["look", "verify"])
def test_a_broken_entry_among_equal_ones_costs_one_run(world: World, kind: str) -> None:
    async def alike(process: Process, run: Run[None]) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(process.call(run, Leaf(kind), "", At()))

    program: Program = tuple(Leaf(kind) for _ in range(3))
    unfinished(world, program, Stage(), alike)
    first = entries(world)[0]
    world.store.put_text(entry_address(Scope(PROJECT, LABEL), first), "{")
    world.run(program, Stage(), alike)
    assert len(executed(world)) == 1
    assert [one.ordinal for one in entries(world)] == [1, 2, 0]


@pytest.mark.parametrize("ticks", range(12, 22))
def test_a_step_cancelled_in_its_ending_is_given_to_an_equal_one_that_waits(
    world: World, ticks: int
) -> None:
    async def walk(process: Process, run: Run[None]) -> None:
        async def one() -> None:
            await run.step(silent("s", "s/write/0"), commit="one of them")
            returned.append(1)

        calling.set(Asked(("step", "s/write/0", ""), None))
        first, second = asyncio.create_task(one()), asyncio.create_task(one())
        for _ in range(ticks):
            await asyncio.sleep(0)
        first.cancel()
        await second
        await one()
        await asyncio.wait({first})

    returned: list[int] = []
    report = world.run((), Stage(seed=1, lag=4), walk)
    assert report is not None
    ran = [one for one in world.every if one.places]
    assert len(ran) == len(returned) == len(world.repo.tokens(report.head))
    assert [one.ordinal for one in entries(world)] == list(range(len(ran)))
    assert world.last is not None
    assert world.last.nths[-1] == len(ran)


def test_what_was_given_back_is_given_once(world: World) -> None:
    calling.set(Asked(("step", "s/look/0", ""), None))
    look = telling("s", "s/look/0")

    async def twice(process: Process, run: Run[None]) -> None:
        for _ in range(2):
            await run.step(look, discard=True)

    async def walk(process: Process, run: Run[None]) -> None:
        before = recorded(world)
        first = asyncio.create_task(run.step(look, discard=True))
        while recorded(world) == before:
            await asyncio.sleep(0)
        first.cancel()
        told = [await run.step(look, discard=True) for _ in range(3)]
        assert first.cancelled()
        assert len({one.result for one in told}) == 3

    unfinished(world, (), Stage(), twice)
    world.store.put_text(entry_address(Scope(PROJECT, LABEL), entries(world)[0]), "{")
    report = world.run((), Stage(), walk)
    assert report is not None
    assert (report.outcome, report.replayed, report.ran) == ("finished", 2, 2)


def test_an_entry_that_cannot_be_read_runs_again_with_all_that_follows_on_it(
    world: World,
) -> None:
    program: Program = (Leaf("write", "a"), Leaf("write", "b"), Leaf("ask"), Leaf("look", "c"))
    world.run(program, Stage(failing="c/look/0"))
    broken = entries(world)[1]
    assert broken.name == "b"
    world.store.put_text(entry_address(Scope(PROJECT, LABEL), broken), '{"format": 1}')
    world.lost = {one.result for one in world.every if one.name == "b"}
    world.run(program)
    assert executed(world) == ["b/write/0", "c/look/0"]
    assert not world.wrong


@dataclass(frozen=True)
class Doubt:
    about: str


def test_a_question_of_an_agent_is_not_asked_again_in_its_next_attempt(tmp_path: Path) -> None:
    answers: list[str] = []

    @workflow(version="1")
    async def flow(run: Run[None]) -> None:
        async def ask_person(doubt: Doubt) -> str:
            screen = Screen(doubt.about, responses=[TextInput("say", str)])
            answers.append(await run.ask(screen))
            return answers[-1]

        asking = tool("ask_person", "Asks the person.", Doubt, ask_person)
        worker = Role(name="work", instructions="Work.", tools=[asking]).on(ModelId("fake", "m"))
        with suppress(Overloaded):
            await run.step(worker, commit="work")
        await run.step(worker, commit="work")

    question = ("ask_person", {"about": "Which?"})
    play = Play(calls=[question, question], fails=Overloaded("no capacity"))
    h = harness(tmp_path, agent={"work": play}, answers=["left", "right"])
    report = h.run(flow)
    assert report.outcome == "finished", report.message
    assert answers == ["left", "right"] * 2
    assert h.asked == ["Which?"] * 2
