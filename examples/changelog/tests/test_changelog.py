"""The workflow on fakes: no git, no process, no model."""

from __future__ import annotations

from pathlib import Path

import pytest
from agl_changelog.workflow import Params, changelog

from agl.sdk import ModelId
from agl.testing import Interrupted, Play, harness

PARAMS = Params(version_name="1.2", writer=ModelId("fake", "writer"))
PLAYS = {
    "draft": Play(report={"lines": ["It is faster."]}),
    "write": Play(files={"CHANGELOG.md": "## 1.2\n\n- It is faster.\n"}),
}


def test_an_entry_that_is_taken_is_written(tmp_path: Path) -> None:
    h = harness(tmp_path, agent=PLAYS, answers=["yes"])
    assert h.run(changelog, PARAMS).result == "landed"
    assert h.files()["CHANGELOG.md"].startswith("## 1.2")


def test_an_entry_that_is_not_taken_stops_the_run(tmp_path: Path) -> None:
    h = harness(tmp_path, agent=PLAYS, answers=["no"])
    report = h.run(changelog, PARAMS)
    assert (report.outcome, report.exit_code) == ("stopped", 7)
    assert h.ran == ["draft#1"]


def test_nothing_to_say_is_said(tmp_path: Path) -> None:
    h = harness(tmp_path, agent={"draft": Play(report={"lines": []})})
    assert h.run(changelog, PARAMS).result == "needed_nothing"


def test_a_killed_run_asks_nobody_twice(tmp_path: Path) -> None:
    h = harness(tmp_path, agent=PLAYS, answers=["yes"])
    with pytest.raises(Interrupted):
        h.run(changelog, PARAMS, interrupt_after=2)
    h.answers = []
    assert h.resume().result == "landed"
    assert h.ran == ["write#1"]
