"""Twenty steps: half commit, one reports, one is followed by the build, one by a question."""

from __future__ import annotations

from dataclasses import dataclass

from agl.sdk import (
    Choice,
    ModelId,
    Restriction,
    Role,
    Run,
    Screen,
    arg,
    reporting_tool,
    role,
    workflow,
)


@dataclass(frozen=True)
class Params:
    script: ModelId = arg("--script")


@dataclass(frozen=True)
class Note:
    text: str


@role()
def writer(name: str) -> Role[None]:
    return Role(name=name, instructions="Write a file.")


@role()
def reader(name: str) -> Role[None]:
    return Role(name=name, instructions="Look around.", restrictions=[Restriction.NO_FILE_WRITES])


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
        await run.step(writer(f"write{turn}", model=model), commit=f"write {turn}", turn=turn)
        if turn == 3:
            verdict = await run.verify()
            assert verdict.passed
        if turn == 5:
            await run.ask(
                Screen("Go on?", responses=[Choice("yes", value=True), Choice("no", value=False)])
            )
        if turn == 7:
            note = await run.step(reporter(model=model))
            assert note.text == "seen"
        elif turn != 9:
            await run.step(reader(f"read{turn}", model=model), turn=turn)
    await run.step(reader("last", model=model))
