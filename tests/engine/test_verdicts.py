"""A verdict is of the tree that the workflow sees when it asks."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from agl.ports.errors import Overloaded
from agl.sdk import AglError, ModelId, Role, Run, Stop, workflow
from agl.testing import Play, harness

MODEL = ModelId("fake", "model")


def writer(name: str) -> Role[None]:
    return Role(name=name, instructions="Write.").on(MODEL)


async def side_by_side(run: Run[None]) -> None:
    """Two steps at once; one that fails is passed over."""

    async def one(name: str) -> None:
        with contextlib.suppress(AglError):
            await run.step(writer(name), commit=name)

    async with asyncio.TaskGroup() as group:
        for name in "ab":
            group.create_task(one(name))


async def asked_directly(run: Run[None]) -> bool:
    return (await run.verify()).passed


async def asked_in_a_task(run: Run[None]) -> bool:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(run.verify())
    return task.result().passed


async def asked_with_a_limit(run: Run[None]) -> bool:
    return (await asyncio.wait_for(run.verify(), 60)).passed


@pytest.mark.parametrize("asked", [asked_directly, asked_in_a_task, asked_with_a_limit])
def test_a_verdict_from_before_a_step_that_now_succeeded_is_not_believed(
    tmp_path: Path, asked: object
) -> None:
    assert callable(asked)

    @workflow(version="1")
    async def flow(run: Run[None]) -> None:
        await side_by_side(run)
        if not await asked(run):
            raise Stop("red")

    plays = {
        "a": Play(files={"a": "a"}),
        "b": Play(files={"b": "b"}, fails=Overloaded("busy")),
    }
    h = harness(tmp_path, agent=plays, verdicts=lambda tree, command: (tree / "b").exists())
    assert h.run(flow).outcome == "stopped"
    report = h.resume()
    assert h.ran == ["b#1"]
    assert report.outcome == "finished"
    assert "finished already" in h.resume().message
    assert [entry.kind.value for entry in h.recorded()] == ["step", "verify", "step", "verify"]


def test_a_recorded_verdict_is_served_when_nothing_new_was_done(tmp_path: Path) -> None:
    @workflow(version="1")
    async def flow(run: Run[None]) -> None:
        await side_by_side(run)
        await run.verify()
        raise Stop("not yet")

    plays = {"a": Play(files={"a": "a"}), "b": Play(files={"b": "b"})}
    h = harness(tmp_path, agent=plays, verdicts=[True])
    h.run(flow)
    h.verdicts = []
    assert h.resume().message == "not yet"
