"""Failures that are the author's own, and what is said next in each state."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.conftest import Agl

FLOW = """
from dataclasses import dataclass
from agl.sdk import Run, workflow

@dataclass
class Params:
    check: bool = False

    def __post_init__(self) -> None:
        if self.check:
            raise KeyError("mine")

@workflow(version="1")
async def broken(run: Run[Params]) -> None:
    raise ZeroDivisionError("mine")
"""


@pytest.fixture
def broken(tmp_path: Path) -> str:
    file = tmp_path / f"flow_{tmp_path.name}.py"
    file.write_text(FLOW)
    return str(file)


WRONG = """
from dataclasses import dataclass

from agl.ports import errors
from agl.sdk import ModelId, Role, Run, arg, role, workflow


@dataclass(frozen=True)
class Params:
    model: ModelId = arg("--model")
    failure: str = arg("--failure")
    steps: int = arg("--steps", default=0)


@role()
def writer() -> Role[None]:
    return Role(name="writer", instructions="Write.")


@workflow(version="1")
async def wrong(run: Run[Params]) -> None:
    await run.verify("true")
    for n in range(run.params.steps):
        await run.step(writer(model=run.params.model), discard=True, n=n)
    raise getattr(errors, run.params.failure)("no model 'x:y'")
"""


@pytest.mark.parametrize(
    ("failure", "steps", "then"),
    [
        ("InputError", "0", "agl clear one"),
        ("NotFoundError", "0", "agl clear one"),
        ("NotFoundError", "1", "agl resume one"),
        ("AuthenticationFailed", "0", "agl resume one"),
    ],
)
def test_a_run_that_meets_the_same_again_is_to_be_cleared(
    project: Path, agl: Agl, tmp_path: Path, model: str, failure: str, steps: str, then: str
) -> None:
    """While no step of it is recorded: what it was begun with cannot be changed any more."""
    file = tmp_path / f"wrong_{tmp_path.name}.py"
    file.write_text(WRONG)
    words = ("--model", model, "--failure", failure, "--steps", steps)
    said = agl("run", str(file), "-n", "one", *words)
    assert said.err.splitlines()[-1] == "agl: no model 'x:y'"
    assert said.out.endswith(f"\nnext    {then}, or agl show one\n")
    assert f"\nnext      {then}\n" in agl("show", "one").out
    assert agl("clear", "one").code == 0


def test_the_authors_own_exception_is_shown_with_its_traceback(
    project: Path, agl: Agl, broken: str
) -> None:
    said = agl("run", broken, "-n", "one")
    assert said.code == 1
    assert 'raise ZeroDivisionError("mine")' in said.err
    assert said.err.endswith("agl: the workflow failed with ZeroDivisionError: mine\n")
    assert said.out.startswith("one     not landed, failed\n")
    shown = agl("show", "one").out
    assert "next      agl resume one\n" in shown
    assert "ZeroDivisionError: mine" in shown
    assert agl("run", broken, "-n", "two", "--json").json["error"]["exit_code"] == 1


def test_a_check_of_parameters_that_breaks_is_the_authors(
    project: Path, agl: Agl, broken: str, home: Path
) -> None:
    said = agl("run", broken, "-n", "one", "--check")
    assert (said.code, said.out) == (1, "")
    assert "cannot take its parameters: KeyError: 'mine'" in said.err
    assert agl("list", "--json").json["runs"] == []


def test_a_module_that_breaks_is_told_and_writes_nothing(
    project: Path, agl: Agl, tmp_path: Path
) -> None:
    (tmp_path / "flow_raises.py").write_text("1 / 0\n")
    said = agl("run", str(tmp_path / "flow_raises.py"), "-n", "one")
    assert said.code == 1
    assert said.err.rstrip().endswith("ZeroDivisionError: division by zero")
    assert agl("list", "--json").json["runs"] == []


def test_show_says_how_to_answer_and_how_to_go_on(
    project: Path, agl: Agl, flow: str, model: str, home: Path
) -> None:
    agl("run", flow, "-n", "one", "--model", model, "--loud")
    shown = agl("show", "one").out
    assert "open      Loud?\n" in shown
    assert "next      agl resume one at a terminal, or with --answers FILE\n" in shown
    (home / "projects" / "calc" / "runs" / "one" / "outcome.json").unlink()
    shown = agl("show", "one").out
    assert shown.startswith("state     interrupted\n")
    assert "next      agl resume one\n" in shown
