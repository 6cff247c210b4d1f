"""Children by name, each with one step, landing side by side; a conflict or a red build is asked
about."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from agl.sdk import Choice, ModelId, Role, Run, Screen, arg, role, workflow


@dataclass(frozen=True)
class Params:
    script: ModelId = arg("--script")
    names: tuple[str, ...] = arg("--name")
    first: bool = arg("--first", default=False, help="a step of the run itself before the children")


@role()
def writer(name: str) -> Role[None]:
    return Role(name=name, instructions="Write a file.")


async def one(run: Run[Params], name: str) -> None:
    child = run.worktree(name)
    await child.step(writer(name, model=run.params.script), commit=f"write {name}")
    landing = await child.integrate()
    while landing.conflicted:
        told = ", ".join(f"{path.path} ({path.kind})" for path in landing.conflict.paths)
        choices = [Choice("retry", value=True), Choice("abort", value=False)]
        screen = Screen("Settle", told or "the build failed", responses=choices)
        if await child.ask(screen, key=f"settle {name}"):
            await landing.retry()
        else:
            await landing.abort()


@workflow(version="1")
async def landing(run: Run[Params]) -> None:
    if run.params.first:
        await run.step(writer("first", model=run.params.script), commit="write first")
    async with asyncio.TaskGroup() as group:
        for name in run.params.names:
            group.create_task(one(run, name))
