"""The workflow: chunks side by side as far as their needs allow, and what came of each."""

from __future__ import annotations

import asyncio
from functools import partial

from agl.sdk import InputError, Run, Stop, workflow
from agl.workflows.split.chunk import ChunkAtWork
from agl.workflows.split.ends import End, Ends, State
from agl.workflows.split.params import Params
from agl.workflows.split.plan import Chunk, Plan
from agl.workflows.split.roles import planner

__all__ = ["Params", "split"]


@workflow(version="1")
async def split(run: Run[Params]) -> None:
    """Divides a request into chunks and works on them side by side, each in a tree of its own, as
    far as one does not need another. Each lands on the run's branch as it is done, if the project's
    build passes on it. Where one conflicts, or the build is red with it, --on-conflict says what is
    done. A chunk whose need was given up is given up, too."""
    params = run.params
    build = await run.record("build", lambda: run.build) if params.verify else None
    if params.verify and build is None:
        raise InputError(
            "--verify runs the build on each chunk, and the project has none; `agl init --build"
            f" CMD`, then `agl resume {run.label} --again build`"
        )
    plan = await run.step(
        planner(params.chunks, run.worktree, model=params.planner),
        request=params.request,
        at_most=params.chunks,
    )
    ends = Ends(plan.chunks)
    run.terminal.show(ends.screen)
    async with asyncio.TaskGroup() as group:
        for chunk in plan.chunks:
            group.create_task(_work(run, plan, chunk, ends, build))
    run.terminal.show(ends.screen())
    _conclude(run, ends)


async def _work(run: Run[Params], plan: Plan, chunk: Chunk, ends: Ends, build: str | None) -> None:
    end = await _end(run, plan, chunk, ends, build)
    ends.note(chunk.id, end)
    if end.by_itself and run.params.on_conflict == "stop":
        raise Stop(_given_up(run, ends))


async def _end(run: Run[Params], plan: Plan, chunk: Chunk, ends: Ends, build: str | None) -> End:
    for need in chunk.needs:
        if (await ends.of(need)).state is State.GIVEN_UP:
            return End(State.GIVEN_UP, f"it needs {need!r}, which was given up")
    others = [f"{one.id}: {one.title}" for one in plan.chunks if one is not chunk]
    return await ChunkAtWork(run, chunk, others, partial(ends.move, chunk.id)).end(build)


def _conclude(run: Run[Params], ends: Ends) -> None:
    """Says what came of it all.

    Raises:
        Stop: a chunk was given up, or nothing has landed.
    """
    if ends.such(State.GIVEN_UP):
        raise Stop(_given_up(run, ends))
    if ends.such(State.LANDED):
        return
    nothing = ends.such(State.NOTHING)
    said = "\n  ".join(f"{chunk}: {end.why}" for chunk, end in nothing.items())
    if all(end.is_needless for end in nothing.values()):
        run.nothing_needed(said)
        return
    raise Stop(f"no chunk changed anything; their implementers say:\n  {said}")


def _given_up(run: Run[Params], ends: Ends) -> str:
    given_up = ends.such(State.GIVEN_UP)
    lines = [f"not all has landed: {ends.summary}"]
    lines += [f"  {chunk}: {end.why}" for chunk, end in given_up.items()]
    again = next((end.again for end in given_up.values() if end.again), None)
    if again is not None:
        lines.append(f"`agl resume {run.label} --again {again!r}` tries it once more")
    final = [chunk for chunk, end in given_up.items() if end.by_itself and not end.again]
    if final:
        lines.append(_by_hand(run, final))
    return "\n".join(lines)


def _by_hand(run: Run[Params], chunks: list[str]) -> str:
    """What is left for chunks that a resume would only give up again."""
    name = chunks[0] if len(chunks) == 1 else "CHUNK"
    branch = f"agl/_work/{run.label}/{name}"
    return (
        f"what was done is on the branch {branch!r}: `agl diff {run.label} {name}` shows it,"
        f" `git merge {branch}` takes it; or run anew with `--on-conflict ask`"
    )
