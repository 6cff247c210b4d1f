"""The harness, with a workflow as an author would write it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from agl.ports.errors import Overloaded
from agl.ports.scripts import Plays
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
from agl.testing import Interrupted, Play, harness

MODEL = ModelId("fake", "model")


@dataclass(frozen=True)
class Findings:
    findings: list[str]


@dataclass(frozen=True)
class Params:
    request: str = arg("-r", "--request")


@role(model=MODEL)
def implementer() -> Role[None]:
    return Role(name="implement", instructions="Do what is asked.")


@role(model=MODEL)
def reviewer() -> Role[Findings]:
    return Role(
        name="review",
        instructions="Say what is wrong.",
        restrictions=[Restriction.NO_FILE_WRITES],
        tools=[reporting_tool("report_findings", "Hands in what you found.", Findings)],
    )


@workflow(version="1")
async def small(run: Run[Params]) -> None:
    await run.step(implementer(), commit="implement", request=run.params.request)
    verdict = await run.verify()
    found = await run.step(reviewer(), passed=verdict.passed)
    if found.findings:
        go_on = await run.ask(
            Screen("Go on?", responses=[Choice("yes", value=True), Choice("no", value=False)])
        )
        if go_on:
            await run.step(implementer(), commit="repair", findings=found.findings)


PLAYS = {
    "implement": Play(files={"a.txt": "one\n"}),
    "implement#2": Play(files={"a.txt": "two\n"}),
    "review": Play(report={"findings": ["it is one"]}),
}


def test_a_run_goes_to_its_end(tmp_path: Path) -> None:
    h = harness(tmp_path, agent=PLAYS, answers=["yes"], verdicts=[True])
    report = h.run(small, Params(request="two"))
    assert (report.outcome, report.result, report.exit_code) == ("finished", "landed", 0)
    assert h.files() == {"a.txt": "two\n"}
    assert [entry.name for entry in h.recorded()] == [
        "implement",
        "verify",
        "review",
        "Go on?",
        "implement",
    ]


@pytest.mark.parametrize("entries", range(1, 6))
def test_an_interrupted_run_repeats_nothing(tmp_path: Path, entries: int) -> None:
    h = harness(tmp_path, agent=PLAYS, answers=["yes"], verdicts=[True])
    with pytest.raises(Interrupted):
        h.run(small, Params(request="two"), interrupt_after=entries)
    before = list(h.ran)
    h.answers = ["yes"] if entries < 4 else []
    h.verdicts = [True] if entries < 2 else []
    report = h.resume()
    assert report.outcome == "finished"
    assert len(before) + len(h.ran) == 3
    assert h.files() == {"a.txt": "two\n"}
    assert len(h.recorded()) == 5


@workflow(version="1")
async def of_a_grandchild(run: Run[Params]) -> None:
    kitten = run.worktree("cats").worktree("kitten")
    await kitten.step(implementer(), commit="kitten")


def test_a_grandchild_is_named_as_in_a_scripts_keys(tmp_path: Path) -> None:
    plays = {"implement@cats/kitten": Play(files={"k.txt": "k\n"})}
    h = harness(tmp_path, agent=plays)
    h.run(of_a_grandchild, Params(request="x"))
    assert [entry.name for entry in h.recorded("cats/kitten")] == ["implement"]
    assert h.recorded("cats/kitten") == h.recorded("cats", "kitten")
    assert (h.tree("cats/kitten") / "k.txt").read_text() == "k\n"
    assert [entry.name for entry in h.recorded("cats")] == ["kitten"]


def test_a_provider_is_waited_for_in_no_time(tmp_path: Path) -> None:
    fails = Play(fails=Overloaded("no capacity"))
    agent: Plays = {**PLAYS, "implement": [*[fails] * 8, Play(files={"a.txt": "one\n"})]}
    h = harness(tmp_path, agent=agent, answers=["no"], verdicts=[True], max_wait_s=3600)
    assert h.run(small, Params(request="x")).outcome == "finished"
    assert h.events.count("waiting") == 8
    h = harness(tmp_path / "impatient", agent=agent)
    assert h.run(small, Params(request="x")).exit_code == 6
    h.max_wait_s = 3600
    h.answers, h.verdicts = ["no"], [True]
    assert h.resume().outcome == "finished"
