"""What is told of children, landings and holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from agl.api import reading
from agl.api.clear import clear
from agl.api.diff import diff
from agl.ports.agents import AgentEvent, AgentTask
from agl.ports.errors import NotFoundError
from agl.ports.ids import Label
from agl.sdk import ModelId, Role, Run, workflow
from agl.testing import Play, harness
from agl.testing.harness import Harness

MODEL = ModelId("fake", "model")
LABEL = Label("run")


def writer(name: str) -> Role[None]:
    return Role(name=name, instructions="Write.").on(MODEL)


@workflow(version="1")
async def flow(run: Run[None]) -> None:
    first, second, idle = (run.worktree(name) for name in ("first", "second", "idle"))
    inner = second.worktree("inner")
    await first.step(writer("one"), commit="One")
    await inner.step(writer("two"), commit="Two")
    await idle.record("seen", lambda: 1)
    assert (await first.integrate()).landed
    assert (await inner.integrate()).landed
    assert (await second.integrate()).conflicted
    raise ValueError("a person looks at it")


@pytest.fixture
def held(tmp_path: Path) -> Harness:
    agent = {"one": Play(files={"a.txt": "1\n"}), "two": Play(files={"a.txt": "2\n"})}
    made = harness(tmp_path, agent=agent, verdicts=lambda *_: True, files={"a.txt": "0\n"})
    assert made.run(flow).exit_code == 1
    return made


def test_children_are_told_with_their_state(held: Harness) -> None:
    details = asyncio.run(reading.run(held._now.services, LABEL))
    told = {one.namespace: one.state for one in details.children}
    assert told == {
        "first": "landed",
        "second": "held",
        "second/inner": "landed",
        "idle": "nothing",
    }
    (second,) = (one for one in details.children if one.namespace == "second")
    assert [line.kind for line in second.lines] == ["child", "landing"]
    assert second.branch == "agl/_work/run/second"


def test_a_child_at_work_is_said_to_be(tmp_path: Path) -> None:
    seen: list[dict[str, str]] = []

    async def looks(task: AgentTask, emit: Callable[[AgentEvent], None]) -> None:
        details = await reading.run(h._now.services, LABEL)
        seen.append({one.namespace: one.state for one in details.children})

    h = harness(tmp_path, agent=looks, verdicts=lambda *_: True)
    h.run(flow)
    assert seen[0] == {"first": "at_work"}
    assert seen[1] == {"first": "nothing", "second": "nothing", "second/inner": "at_work"}


def test_where_a_childs_branch_is_now_is_told(held: Harness) -> None:
    def told() -> dict[str, tuple[str | None, bool]]:
        details = asyncio.run(reading.run(held._now.services, LABEL))
        return {
            one.namespace: (one.branch_at, one.branch_at == one.head) for one in details.children
        }

    assert told()["idle"] == (None, False)
    assert told()["first"][1]
    (held.tree("first") / "mine.txt").write_text("mine")
    mine = held._now.repository.commit_in(held.tree("first"), "my own")
    assert told()["first"] == (mine, False)


def test_a_list_names_the_children_that_wait(held: Harness) -> None:
    services = held._now.services
    (summary,) = reading.summaries(services.store, services.locks, services.project)
    assert summary.held == ("second",)


def test_a_diff_is_of_the_run_or_of_a_child(held: Harness) -> None:
    def lines(namespace: str) -> list[str]:
        found = asyncio.run(diff(held._now.services, LABEL, namespace))
        return [line for line in found.patch.splitlines() if line[:1] in "+-"]

    assert lines("")[2:] == ["-0", "+1"]
    assert lines("second")[2:] == ["-0", "+2"]
    assert lines("idle") == []
    with pytest.raises(NotFoundError, match="'second/inner'"):
        lines("third")


def test_clear_takes_every_child_away_also_one_without_a_record(held: Harness) -> None:
    services = held._now.services
    report = asyncio.run(clear(services, LABEL, keep_days=14))
    trees = {one.tree for one in report.trees}
    assert trees == {"_base", "first", "second", "second+inner"}
    left = [name for name in held._now.repository.branches if name.startswith("agl/")]
    assert left == []
