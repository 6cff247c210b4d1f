"""Workflows with children, and the fakes that they run on."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from agl.ports.scripts import Plays
from agl.ports.verifier import Verdicts
from agl.sdk import Landing, ModelId, Role, Run, Workflow, workflow
from agl.testing import Play, harness
from agl.testing.harness import Harness

MODEL = ModelId("fake", "model")


def writer(name: str = "write") -> Role[None]:
    return Role(name=name, instructions="Write.").on(MODEL)


def of(body: Callable[[Run[None]], Awaitable[None]], version: str = "1") -> Workflow[None]:
    async def flow(run: Run[None]) -> None:
        await body(run)

    return workflow(version=version)(flow)


def writes(**files: str) -> Play:
    return Play(files={f"{name}.txt": content for name, content in files.items()})


def made(
    folder: Path,
    agent: Plays | None = None,
    verdicts: Verdicts = lambda tree, command: True,
    files: dict[str, str] | None = None,
) -> Harness:
    return harness(folder, agent=agent, verdicts=verdicts, files=files)


async def three(run: Run[None]) -> None:
    async def one(name: str) -> None:
        child = run.worktree(name)
        await child.step(writer(f"write-{name}"), commit=f"Write {name}")
        landing = await child.integrate()
        assert landing.landed

    async with asyncio.TaskGroup() as group:
        for name in ("a", "b", "c"):
            group.create_task(one(name))


THREE = {f"write-{name}": writes(**{name: name}) for name in "abc"}


CLASH = {"write-a": writes(same="a"), "write-b": writes(same="b")}
BOTH = {"same.txt": "base"}


async def clash(run: Run[None], then: Callable[[Run[None], Landing], Awaitable[None]]) -> None:
    """Two children that changed one file; the second one meets the conflict."""
    a, b = run.worktree("a"), run.worktree("b")
    await a.step(writer("write-a"), commit="Write a")
    await b.step(writer("write-b"), commit="Write b")
    assert (await a.integrate()).landed
    landing = await b.integrate()
    assert landing.conflicted
    assert not landing.landed
    assert [(one.path, one.kind) for one in landing.conflict.paths] == [
        ("same.txt", "changed on both sides")
    ]
    await then(run, landing)


EDITED = """
import asyncio
from agl.sdk import Choice, ModelId, Role, Run, Screen, workflow

def writer(name: str) -> Role[None]:
    return Role(name=name, instructions="Write.").on(ModelId("fake", "model"))

async def one(run: Run[None], name: str) -> None:
    child = run.worktree(name)
    await child.step(writer(f"write-{name}"), commit=f"Write {name}")
    await child.integrate()

@workflow(version="1")
async def flow(run: Run[None]) -> None:
    BODY
"""


def edited(folder: Path, body: str) -> Workflow[None]:
    """The workflow as it is written in a file, which is its source."""
    file = folder / "edited_flow.py"
    file.write_text(EDITED.replace("BODY", body))
    spec = importlib.util.spec_from_file_location("edited_flow", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["edited_flow"] = module
    spec.loader.exec_module(module)
    flow: Workflow[None] = module.flow
    return flow
