"""When a commit on a child's branch is said to be a person's own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from agl.ports.agents import AgentEvent, AgentTask
from agl.ports.scripts import Plays
from agl.sdk import Choice, Run, Screen, UpstreamError
from agl.testing import Play
from agl.testing.harness import Harness
from engine.authored import BOTH, CLASH, made, of, writer, writes

GO_ON = Screen("Go on?", responses=[Choice("yes", True)])


def warnings(h: Harness) -> list[str]:
    """What the last process warned of commits."""
    told = (one.details["text"] for one in h._now.terminal.told if one.kind == "warned")
    return [str(text) for text in told if "not AGL's" in str(text)]


def commit(h: Harness, tree: Path, **files: str) -> str:
    for name, content in files.items():
        (tree / f"{name}.txt").write_text(content)
    return h._now.repository.commit_in(tree, "by hand")


def test_a_persons_commit_on_a_childs_branch_is_told(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        await run.worktree("a").step(writer("write-a"), commit="Write a")
        await run.step(writer("more"), commit="More")

    agent: Plays = {
        "write-a": dataclasses.replace(writes(a="a"), fails=UpstreamError("not now")),
        "more": [Play(fails=UpstreamError("not now"))] * 9,
    }
    h = made(tmp_path, agent=agent)
    assert h.run(of(body)).exit_code == 6
    assert h.resume().exit_code == 6
    assert warnings(h) == []
    mine = commit(h, h.tree("a"), mine="mine")
    assert h.resume().exit_code == 6
    (text,) = warnings(h)
    assert f"`git branch my-work {mine}`" in text


def test_what_an_agent_committed_in_a_step_that_failed_is_not_a_persons(tmp_path: Path) -> None:
    async def half(task: AgentTask, emit: Callable[[AgentEvent], None]) -> None:
        commit(h, task.tree, half="half")
        raise UpstreamError("not now")

    async def body(run: Run[None]) -> None:
        await run.worktree("a").step(writer("write-a"), commit="Write a")
        await run.worktree("a").step(writer("half"), commit="Half")

    agent: Plays = {"write-a": writes(a="a"), "half": half}
    h = made(tmp_path, agent=agent)
    assert h.run(of(body)).exit_code == 6
    assert h.resume().exit_code == 6
    assert warnings(h) == []
    assert "kept" in h.events


def test_a_merge_that_a_person_committed_for_a_grandchild_is_what_was_asked_for(
    tmp_path: Path,
) -> None:
    async def body(run: Run[None]) -> None:
        child = run.worktree("a")
        inner = child.worktree("b")
        await inner.step(writer("write-b"), commit="Write b")
        await child.step(writer("write-a"), commit="Write a")
        landing = await inner.integrate()
        await run.ask(GO_ON)
        await landing.retry()
        assert landing.landed
        assert (await child.integrate()).landed

    h = made(tmp_path, agent=CLASH, files=BOTH)
    assert h.run(of(body)).exit_code == 6
    commit(h, h.tree("a"), same="both")
    h.answers = ["yes"]
    report = h.resume()
    assert report.result == "landed", report.message
    assert warnings(h) == []
    assert h.files() == {"same.txt": "both"}
