"""One step that commits, then one that looks."""

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
    role,
    workflow,
)


@dataclass(frozen=True)
class Params:
    script: ModelId = arg("--script")
    ask: bool = arg("--ask", default=False)


@role()
def worker() -> Role[None]:
    return Role(name="work", instructions="Work.")


@role()
def looker() -> Role[None]:
    return Role(name="look", instructions="Look.", restrictions=[Restriction.NO_FILE_WRITES])


@workflow(version="1")
async def one(run: Run[Params]) -> None:
    """Works once and looks at it."""
    await run.step(worker(model=run.params.script), commit="work")
    if run.params.ask:
        await run.ask(Screen("Go on?", responses=[Choice("yes", value=1), Choice("no", value=0)]))
    await run.step(looker(model=run.params.script))
