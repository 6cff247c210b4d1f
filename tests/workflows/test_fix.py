"""`fix` on fakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from agl.ports.scripts import Plays
from agl.sdk import InputError, ModelId, Rows, Screen, Verdict
from agl.testing import Harness, Interrupted, Play, harness
from agl.workflows.fix import Params, fix
from agl.workflows.fix.progress import Progress
from agl.workflows.fix.roles import Finding

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
def test_a_wrong_parameter_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError, match="--r"):
        params(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        (Verdict(False, 127, "sh: 1: mak: not found\n"), "status 127:\n  sh: 1: mak: not found\n"),
        (Verdict(False, 126, ""), "status 126\n"),
        (Verdict(False, 124, "x\n", "out of time"), "status 124 (out of time):\n  x\n"),
    ],
)
def test_a_build_that_cannot_be_run_stops_at_once(
    tmp_path: Path, verdict: Verdict, said: str
) -> None:
    h = harness(tmp_path, agent={"implement": RIGHT}, verdicts=[verdict])
    report = h.run(fix, params())
    assert (report.outcome, report.result, report.exit_code) == ("stopped", "not_landed", 7)
    assert h.ran == ["implement#1"]
    assert report.message.startswith(f"the build failed with {said}")
    assert report.message.endswith(
        "\n`agl init --build CMD` changes it, then `agl resume run --again build`"
    )


def test_a_red_build_is_shown_with_its_last_lines(tmp_path: Path) -> None:
    tail = "".join(f"line {n}\n\n" for n in range(9))
    h = harness(tmp_path, agent={"implement": RIGHT}, verdicts=[Verdict(False, 1, tail)])
    said = h.run(fix, params(rounds=0)).message
    lines = [f"  line {n}" for n in range(4, 9)]
    assert said.splitlines() == [
        "not right after 0 rounds of repair, the work is on the branch: the build failed with"
        " status 1:",
        *lines,
    ]


def test_a_build_without_output_is_shown_without_a_colon(tmp_path: Path) -> None:
    h = harness(tmp_path, agent={"implement": RIGHT}, verdicts=[Verdict(False, 1, " \n")])
    said = h.run(fix, params(rounds=0)).message
    assert said.endswith("the build failed with status 1")


def texts(screen: Screen[object]) -> list[list[str]]:
    tables = [part for part in screen.body if isinstance(part, Rows)]
    return [[cell.text for cell in row.cells] for table in tables for row in table.rows]


def test_the_person_sees_the_round_and_what_is_left(tmp_path: Path) -> None:
    plays = {"implement": WRONG, "implement#2": RIGHT, "review": LOW}
    h = project(tmp_path, plays)
    h.run(fix, params(rounds=2))
    first, again = "First attempt, then at most 2 rounds of repair", "Round 1 of 2 of repair"
    assert h.shown == [first, again, "Done; 1 finding left"]
    h = project(tmp_path / "fine", {"implement": RIGHT, "review": FINE})
    h.run(fix, params(rounds=1))
    assert h.shown[0] == "First attempt, then at most 1 round of repair"
    assert h.shown[-1] == "Done"


def test_the_person_sees_the_last_build_and_its_review() -> None:
    progress = Progress(3)
    assert texts(progress.screen()) == []
    progress.built(Verdict(False, 2, "one\ntwo\n\n"))
    assert texts(progress.screen()) == [["build", "failed with status 2: two"]]
    progress.built(Verdict(False, 124, "", "out of time"))
    assert texts(progress.screen()) == [["build", "failed with status 124 (out of time)"]]
    progress.built(Verdict(True, 0, "fine"))
    progress.reviewed([Finding("low", "a.py", "no\ndocstring"), Finding("high", "b.py", "wrong")])
    shown = [
        ["build", "passed"],
        ["review", "2 findings"],
        ["high", "b.py", "wrong"],
        ["low", "a.py", "no docstring"],
    ]
    assert texts(progress.screen()) == shown
    progress.repairs()
    assert texts(progress.screen()) == shown
    progress.built(Verdict(True, 0, ""))
    assert texts(progress.screen()) == [["build", "passed"]]
    progress.reviewed([])
    assert texts(progress.screen()) == [["build", "passed"], ["review", "no findings"]]


def test_one_round_is_one_round(tmp_path: Path) -> None:
    second = Play(files={"n": "2"}, report={"summary": ""})
    h = project(tmp_path, {"implement": WRONG, "implement#2": second})
    assert "after 1 round of repair" in h.run(fix, params(rounds=1)).message


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
