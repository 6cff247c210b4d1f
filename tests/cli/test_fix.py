"""`agl run fix` on a real repository."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.conftest import Agl, git


def work(content: str, *commands: str) -> list[dict[str, object]]:
    calls = [{"tool": "write", "arguments": {"path": "calc.txt", "content": content}}]
    calls += [{"tool": "shell", "arguments": {"command": command}} for command in commands]
    report = {"tool": "hand_in", "arguments": {"summary": "written"}}
    return [{"calls": calls}, {"calls": [report]}]


def test_a_model_that_is_not_there_is_refused_with_its_flag(project: Path, agl: Agl) -> None:
    models = ("--implementer", "nobody:a", "--reviewer", "nobody:b")
    said = agl("run", "fix", "-n", "x", "-r", "add", *models)
    assert (said.code, said.out) == (2, "")
    first, second = said.err.splitlines()
    refused = "no backend for model 'nobody:{}' in this version; pass one of scripted:PATH"
    assert first.startswith(f"agl: --implementer: {refused.format('a')}")
    assert second.startswith(f"--reviewer: {refused.format('b')}")
    assert agl("list", "--json").json["runs"] == []


def test_who_works_by_default_is_said(project: Path, agl: Agl) -> None:
    shown = " ".join(agl("run", "fix", "--help").out.split())
    assert "who writes (default: claude_code:opus)" in shown
    assert "who reviews (default: codex:sol)" in shown


@pytest.mark.parametrize("wrong", [("-r", " "), ("-r", "add", "--rounds", "-1")])
def test_wrong_words_begin_no_run(project: Path, agl: Agl, wrong: tuple[str, ...]) -> None:
    models = ("--implementer", "scripted:/none", "--reviewer", "scripted:/none")
    said = agl("run", "fix", "-n", "x", *wrong, *models)
    assert (said.code, said.out) == (2, "")
    assert "--r" in said.err
    assert agl("list", "--json").json["runs"] == []


def test_a_build_that_was_mistyped_costs_no_round(repo: Path, agl: Agl, tmp_path: Path) -> None:
    agl("init", "--build", "no-such-program --check")
    script = tmp_path / "agent.json"
    script.write_text(json.dumps({"format": 1, "steps": {"implement": work("right")}}))
    models = ("--implementer", f"scripted:{script}", "--reviewer", f"scripted:{script}")
    said = agl("run", "fix", "-n", "x", "-r", "do right", *models)
    assert said.code == 7
    assert "steps   1 ran, 0 replayed\n" in said.out
    assert "the build failed with status 127:" in said.err
    assert "not found" in said.err
    assert "`agl init --build CMD` changes it, then `agl resume x --again build`" in said.err
    agl("init", "--build", "grep -q right calc.txt")
    said = agl("resume", "x")
    assert said.code == 7
    assert "the build is 'grep -q right calc.txt' now; `agl resume x --again build`" in said.err
    said = agl("resume", "x", "--again", "build")
    assert (said.code, said.out.splitlines()[2]) == (0, "steps   1 ran, 1 replayed")


def test_what_was_found_is_shown_while_it_works(repo: Path, agl: Agl, tmp_path: Path) -> None:
    agl("init", "--build", "echo it is wrong; grep -q right calc.txt")
    low = {"severity": "low", "file": "calc.txt", "problem": "no newline"}
    report = {"tool": "report_findings", "arguments": {"findings": [low]}}
    steps = {
        "implement": work("wrong"),
        "implement#2": work("right"),
        "review": [{"calls": [report]}],
    }
    script = tmp_path / "agent.json"
    script.write_text(json.dumps({"format": 1, "steps": steps}))
    models = ("--implementer", f"scripted:{script}", "--reviewer", f"scripted:{script}")
    said = agl("run", "fix", "-n", "x", "-r", "do right", *models)
    round_ = "Round 1 of 3 of repair\n  build  "
    assert f"{round_}failed with status 1: it is wrong\n" in said.err
    assert f"{round_}passed\n" in said.err
    found = "  build   passed\n  review  1 finding\n  low  calc.txt  no newline\n"
    assert said.err.endswith(f"Done; 1 finding left\n{found}")


def test_a_model_of_two_flags_is_refused_once(project: Path, agl: Agl) -> None:
    models = ("--implementer", "scripted:/none", "--reviewer", "scripted:/none")
    said = agl("run", "fix", "-n", "x", "-r", "add", *models)
    assert said.code == 3
    assert said.err.startswith("agl: --implementer, --reviewer: no script '/none'; ")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("ignored", [False, True])
def test_what_a_build_leaves_is_not_committed(
    repo: Path, agl: Agl, tmp_path: Path, ignored: bool
) -> None:
    if ignored:
        (repo / ".gitignore").write_text("left.txt\n")
        git(repo, "add", ".")
        git(repo, "commit", "-q", "-m", "ignore")
    agl("init", "--build", "echo built > left.txt; grep -q right calc.txt")
    script = tmp_path / "agent.json"
    steps = {"implement": work("wrong"), "implement#2": work("right")}
    script.write_text(json.dumps({"format": 1, "steps": steps}))
    models = ("--implementer", f"scripted:{script}", "--reviewer", f"scripted:{script}")
    said = agl("run", "fix", "-n", "x", "-r", "do right", *models, "--json")
    assert (said.code, said.json["ran"]) == (0, 3)
    assert git(repo, "diff", "--name-only", "main", "agl/x") == "calc.txt"
    kept = agl("recover", "--json").json["kept"]
    left = [git(repo, "show", f"{one['commit']}:left.txt") for one in kept]
    assert left == ([] if ignored else ["built", "built"])
