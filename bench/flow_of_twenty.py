"""Twenty steps: half commit, one reports, the others look."""

from __future__ import annotations

from dataclasses import dataclass

from agl.sdk import ModelId, Restriction, Role, Run, arg, reporting_tool, role, workflow


@dataclass(frozen=True)
class Params:
    script: ModelId = arg("--script")


@dataclass(frozen=True)
class Note:
    text: str


@role()
def writer() -> Role[None]:
    return Role(name="write", instructions="Write a file.")


@role()
def looker() -> Role[None]:
    return Role(name="look", instructions="Look.", restrictions=[Restriction.NO_FILE_WRITES])


@role()
def reporter() -> Role[Note]:
    return Role(
        name="report",
        instructions="Say what you saw.",
        restrictions=[Restriction.NO_FILE_WRITES],
        tools=[reporting_tool("hand_in", "Hands it in.", Note)],
    )


@workflow(version="1")
async def twenty(run: Run[Params]) -> None:
    model = run.params.script
    for turn in range(10):
        await run.step(writer(model=model), commit=f"write {turn}", turn=turn)
        if turn == 0:
            await run.step(reporter(model=model))
        else:
            await run.step(looker(model=model), turn=turn)
