"""`agl run split` at the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.conftest import Agl

MODELS = ("--planner", "scripted:/none", "--implementer", "scripted:/none")


def test_help_says_what_every_policy_does(project: Path, agl: Agl) -> None:
    shown = " ".join(agl("run", "split", "--help").out.split())
    assert "--on-conflict ask|stop|repair|skip where a chunk conflicts" in shown
    assert "ask the person (where nobody is there, the run ends and can be resumed)" in shown
    assert "(default: ask)" in shown
    assert "into how many chunks at most (default: 4)" in shown


def test_it_is_among_the_workflows(project: Path, agl: Agl) -> None:
    assert "--on-conflict" in agl("workflows", "split").out


@pytest.mark.parametrize(
    "wrong",
    [
        ("-r", " "),
        ("-r", "all", "--chunks", "0"),
        ("-r", "all", "--rounds", "-1"),
        ("-r", "all", "--on-conflict", "hope"),
    ],
)
def test_wrong_words_begin_no_run(project: Path, agl: Agl, wrong: tuple[str, ...]) -> None:
    said = agl("run", "split", "-n", "x", *wrong, *MODELS)
    assert (said.code, said.out) == (2, "")
    assert wrong[-2] in said.err.replace("--request", "-r")
    assert agl("list", "--json").json["runs"] == []


def test_who_works_by_default_is_said(project: Path, agl: Agl) -> None:
    shown = " ".join(agl("run", "split", "--help").out.split())
    assert "who divides (default: claude_code:opus)" in shown
    assert "who writes and repairs (default: claude_code:opus)" in shown
