"""Replay goes by content and scope, never by position or completion order."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agl.sdk import Run
from engine.model import At, Item, Leaf, Process, Program, Stage, World

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
    max_examples=int(__import__("os").environ.get("N", "300")),
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
