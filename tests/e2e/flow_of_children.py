"""Three children side by side, two of which change one file; a grandchild; a step of the run itself
while they are at work, and one after."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from agl.sdk import Child, ModelId, Role, Run, arg, role, workflow


@dataclass(frozen=True)
class Params:
    script: ModelId = arg("--script")


@role()
def writer(name: str) -> Role[None]:
    return Role(name=name, instructions="Write a file.")


async def land(run: Run[Params], child: Child[Params]) -> None:
    """Lands the child; a conflict is resolved by an agent in the child's tree."""
    landing = await child.integrate()
    while landing.conflicted:
        await child.step(
            writer("repair", model=run.params.script),
            commit=f"repair {child.namespace}",
            merging=run,
        )
        await landing.retry()
    assert landing.landed


async def one(run: Run[Params], name: str) -> None:
    child = run.worktree(name)
    await child.step(writer(f"write-{name}", model=run.params.script), commit=f"write {name}")
    if name == "c":
        inner = child.worktree("inner")
        await inner.step(writer("write-inner", model=run.params.script), commit="write inner")
        await land(child, inner)
    await land(run, child)


@workflow(version="1")
async def children(run: Run[Params]) -> None:
    model = run.params.script
    async with asyncio.TaskGroup() as group:
        for name in ("a", "b", "c"):
            group.create_task(one(run, name))
    await run.step(writer("last", model=model), commit="write last")
