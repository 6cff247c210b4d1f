"""Children by name that work side by side, or one after another, and then land in turn; one more
child that begins after that."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from agl.sdk import ModelId, Role, Run, arg, role, workflow


@dataclass(frozen=True)
class Params:
    script: ModelId = arg("--script")
    names: tuple[str, ...] = arg("--name")
    apart: bool = arg("--apart", default=False, help="one after another")
    later: str = arg("--later", default="")
    first: str = arg("--first", default="", help="a step of the run itself before the children")


@role()
def writer(name: str) -> Role[None]:
    return Role(name=name, instructions="Write a file.")


async def work(run: Run[Params], name: str) -> None:
    await run.worktree(name).step(writer(name, model=run.params.script), commit=f"write {name}")


async def land(run: Run[Params], name: str) -> None:
    landing = await run.worktree(name).integrate()
    assert landing.landed or landing.nothing


@workflow(version="1")
async def trees(run: Run[Params]) -> None:
    names = run.params.names
    if run.params.first:
        await run.step(writer(run.params.first, model=run.params.script), commit="write first")
    async with asyncio.TaskGroup() as group:
        for name in names:
            if run.params.apart:
                await work(run, name)
            else:
                group.create_task(work(run, name))
    for name in names:
        await land(run, name)
    if run.params.later:
        await work(run, run.params.later)
        await land(run, run.params.later)
