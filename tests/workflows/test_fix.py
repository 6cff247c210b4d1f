"""`fix` on fakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from agl.ports.scripts import Plays
from agl.sdk import ModelId
from agl.testing import Harness, Interrupted, Play, harness
from agl.workflows.fix import Params, fix

WRONG = Play(files={"calc.py": "a * b\n"}, report={"summary": "multiplied"})
RIGHT = Play(files={"calc.py": "a + b\n"}, report={"summary": "added"})
FINE = Play(report={"findings": []})
HIGH = Play(report={"findings": [{"severity": "high", "file": "calc.py", "problem": "wrong sign"}]})
LOW = Play(report={"findings": [{"severity": "low", "file": "calc.py", "problem": "no docstring"}]})
MODELS = {"implementer": ModelId("fake", "a"), "reviewer": ModelId("fake", "b")}


def params(request: str = "make it add\n\nplease", rounds: int = 3) -> Params:
    return Params(request=request, rounds=rounds, **MODELS)


def green(tree: Path, command: str) -> bool:
    return (tree / "calc.py").read_text() == "a + b\n"


def project(tmp_path: Path, plays: Plays, **more: object) -> Harness:
    return harness(
        tmp_path,
        agent=plays,
        verdicts=green,
        files={"calc.py": "a - b\n"},
        **more,  # type: ignore[arg-type]
    )


def test_a_right_fix_is_reviewed_and_lands(tmp_path: Path) -> None:
    h = project(tmp_path, {"implement": RIGHT, "review": LOW})
    report = h.run(fix, params())
    assert (report.result, report.exit_code) == ("landed", 0)
    assert h.ran == ["implement#1", "review#1"]
    assert h.files() == {"calc.py": "a + b\n"}


def test_a_red_build_is_repaired_before_anybody_reviews(tmp_path: Path) -> None:
    h = project(tmp_path, {"implement": WRONG, "implement#2": RIGHT, "review": FINE})
    assert h.run(fix, params()).result == "landed"
    assert h.ran == ["implement#1", "implement#2", "review#1"]


def test_a_high_finding_is_repaired_and_reviewed_again(tmp_path: Path) -> None:
    second = Play(files={"note.txt": "why\n"}, report={"summary": "explained"})
    plays = {"implement": RIGHT, "implement#2": second, "review": HIGH, "review#2": FINE}
    h = project(tmp_path, plays)
    assert h.run(fix, params()).result == "landed"
    assert h.ran == ["implement#1", "review#1", "implement#2", "review#2"]


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_not_converging_stops_with_the_work_on_the_branch(tmp_path: Path, rounds: int) -> None:
    plays = {f"implement#{n}": Play(files={"n": str(n)}, report={"summary": ""}) for n in range(9)}
    h = project(tmp_path, plays)
    report = h.run(fix, params(rounds=rounds))
    assert (report.outcome, report.exit_code) == ("stopped", 7)
    assert len(h.ran) == rounds + 1
    assert h.files()["n"] == str(rounds + 1)
    assert "the build failed" in report.message


def test_changing_nothing_is_not_success(tmp_path: Path) -> None:
    h = project(tmp_path, {"implement": Play(report={"summary": "I fixed everything"})})
    report = h.run(fix, params())
    assert (report.outcome, report.exit_code) == ("stopped", 7)
    assert report.result == "produced_nothing"
    assert "changed nothing" in report.message


def test_needing_nothing_is_an_outcome_of_its_own(tmp_path: Path) -> None:
    says = Play(report={"summary": "it adds already", "nothing_needed": True})
    h = project(tmp_path, {"implement": says})
    report = h.run(fix, params())
    assert (report.result, report.exit_code) == ("needed_nothing", 0)
    assert "it adds already" in report.message


def test_a_project_without_a_build_is_reviewed_alone(tmp_path: Path) -> None:
    h = project(tmp_path, {"implement": RIGHT, "review": FINE}, build=None)
    assert h.run(fix, params()).result == "landed"
    assert h.ran == ["implement#1", "review#1"]


@pytest.mark.parametrize("wrong", [{"request": "  \n"}, {"rounds": -1}])
def test_a_wrong_parameter_is_refused(tmp_path: Path, wrong: dict[str, object]) -> None:
    h = project(tmp_path, {})
    assert h.run(fix, params(**wrong)).exit_code == 2  # type: ignore[arg-type]
    assert h.ran == []


def test_the_implementer_may_ask_the_person(tmp_path: Path) -> None:
    asks = Play(
        calls=[("ask_person", {"question": "Which sign?"})],
        files={"calc.py": "a + b\n"},
        report={"summary": "added"},
    )
    h = project(tmp_path, {"implement": asks, "review": FINE}, answers=["plus"])
    assert h.run(fix, params()).result == "landed"
    assert h.asked == ["Which sign?"]


@pytest.mark.parametrize("entries", range(1, 8))
def test_interrupted_anywhere_it_repeats_nothing(tmp_path: Path, entries: int) -> None:
    plays = {"implement": WRONG, "implement#2": RIGHT, "review": FINE}
    h = project(tmp_path, plays)
    try:
        h.run(fix, params(), interrupt_after=entries)
    except Interrupted:
        first = list(h.ran)
        assert h.resume().result == "landed"
        assert first + h.ran == ["implement#1", "implement#2", "review#1"]
