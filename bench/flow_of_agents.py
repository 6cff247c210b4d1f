"""One agent in each of so many children."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from agl.sdk import ModelId, Role, Run, arg, role, workflow


@dataclass(frozen=True)
class Params:
    model: ModelId = arg("--model")
    agents: int = arg("--agents", default=1)


@role()
def writer() -> Role[None]:
    return Role(name="write", instructions="Write a file.")


@workflow(version="1")
async def agents(run: Run[Params]) -> None:
    model = run.params.model

    async def one(number: int) -> None:
        child = run.worktree(f"c{number}")
        await child.step(writer(model=model), commit="write", task=f"agent {number}")

    async with asyncio.TaskGroup() as group:
        for number in range(run.params.agents):
            group.create_task(one(number))
