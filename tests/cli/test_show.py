"""What `show` says of a branch, a tree, and each entry, and what is typed next."""

from __future__ import annotations

import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from datetime import UTC, datetime
from fcntl import ioctl
from pathlib import Path

import pytest

from agl.config import container
from agl.config.settings import resolve
from agl.ports.ids import Label, ProjectName, Scope
from agl.ports.ledger import Spending
from agl.ports.models import Usage
from agl.sdk._engine.ledger import Ledger
from cli.conftest import Agl, git

FLOW = """
from dataclasses import dataclass

from agl.sdk import Choice, ModelId, Role, Run, Screen, Stop, TextInput, arg, reporting_tool
from agl.sdk import role, workflow


@dataclass(frozen=True)
class Params:
    model: ModelId = arg("--model")


@dataclass(frozen=True)
class Plan:
    parts: list[str]


@role()
def planner() -> Role[Plan]:
    return Role(
        name="plan",
        instructions="Plan.",
        tools=[reporting_tool("hand_in", "Hands in the plan.", Plan)],
    )


@workflow(version="1")
async def many(run: Run[Params]) -> None:
    await run.step(planner(model=run.params.model), discard=True)
    await run.verify("true")
    await run.verify("echo no; exit 3")
    await run.ask(Screen("Which\\nway?", responses=[Choice("left", 1)]))
    await run.ask(Screen("Name?", responses=[TextInput("name", str)]))
    await run.record("issue", lambda: {"title": "x" * 100})
    raise Stop("the tail:\\nline\\n")
"""
PLAN = [{"calls": [{"tool": "hand_in", "arguments": {"parts": ["a"]}}]}, {"text": "done"}]


@pytest.fixture
def many(tmp_path: Path, project: Path, agl: Agl) -> str:
    """A run with an entry of every kind."""
    file = tmp_path / f"many_{tmp_path.name}.py"
    file.write_text(FLOW)
    (tmp_path / "plan.json").write_text(json.dumps({"format": 1, "steps": {"plan": PLAN}}))
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps({"Which\nway?": "left", "Name?": "Ada"}))
    words = ("--model", f"scripted:{tmp_path}/plan.json", "--answers", str(answers))
    said = agl("run", str(file), "-n", "one", *words)
    assert said.code == 7, said.err
    assert said.err.endswith("agl: the tail:\nline\n")
    return "one"


def fact(text: str, name: str) -> str:
    return next(
        (line[len(name) :].strip() for line in text.splitlines() if line.startswith(name + " ")), ""
    )


def test_each_entry_says_what_came_of_it(agl: Agl, many: str, tmp_path: Path) -> None:
    shown = agl("show", many).out
    rows = shown.split("\n\n")[1].splitlines()
    assert rows[0].split() == ["#", "KIND", "NAME", "MODEL", "TOOK", "OUTCOME"]
    assert rows[1].split()[3] == "scripted:plan.json"
    ends = ['{"parts": ["a"]}', "passed", "failed with status 3", "left", "Ada"]
    for row, end in zip(rows[1:], ends, strict=False):
        assert row.endswith(f"  {end}")
    assert "  Which way?  " in rows[4]
    assert rows[6].endswith("xxx…")
    assert "\n          line\n" in shown
    (first, *_) = agl("show", many, "--json").json["lines"]
    assert first["model"] == f"scripted:{tmp_path}/plan.json"


def test_what_a_cut_put_out_of_use_is_marked(agl: Agl, many: str) -> None:
    agl("resume", many, "--again", "plan")
    rows = agl("show", many).out.split("\n\n")[1].splitlines()
    assert [row.endswith("not used any more") for row in rows[1:4]] == [True, True, True]
    assert any(row.endswith("  #1 to #6 are out of use") for row in rows)
    lines = agl("show", many, "--json").json["lines"]
    assert [(line["live"], line["cut_from"]) for line in lines[:1]] == [(False, None)]
    assert [line["cut_from"] for line in lines if line["kind"] == "cut"] == [1]


def test_a_cut_says_what_it_is_of(agl: Agl, many: str, tmp_path: Path) -> None:
    def cuts() -> list[str]:
        rows = agl("show", many).out.split("\n\n")[1].splitlines()
        return [row.rpartition("  ")[2] for row in rows if row.split()[1] == "cut"]

    agl("resume", many, "--again", "verify#2")
    agl("resume", many, "--again", "Name?")
    file = tmp_path / f"many_{tmp_path.name}.py"
    file.write_text(f"{FLOW}\n# edited")
    agl("resume", many, "--again", "plan")
    assert cuts() == [
        "#3 to #6 are out of use",
        "asked again",
        "what was recorded earlier is out of use",
    ]


def test_what_was_asked_is_shown(agl: Agl, project: Path, flow: str, model: str) -> None:
    agl("run", flow, "-n", "one", "--model", model, "--tag", "a", "--tag", "b", "--times", "0")
    shown = agl("show", "one").out
    told = [line[10:] for line in shown.splitlines() if line.startswith("with ")]
    assert told == [f"model: {model}", "times: 0", "how: well", "tag: a, b"]
    agl("run", flow, "-n", "two", "--model", model, "--loud", "--times", "0")
    assert "with      loud: true\n" in agl("show", "two").out


def test_the_newest_build_is_shown_with_what_it_said_if_it_is_red(
    agl: Agl, many: str, project: Path, tmp_path: Path
) -> None:
    said = "#3 verify failed with status 3; the end of its output:\n  no"
    assert said in agl("show", many).out
    agl("resume", many, "--again", "verify#2")
    assert "#8 verify failed with status 3; the end of its output:\n  no" in agl("show", many).out
    assert said not in agl("show", many).out
    file = tmp_path / f"many_{tmp_path.name}.py"
    file.write_text(FLOW.replace("echo no; exit 3", "echo yes"))
    subprocess.run([sys.executable, "-m", "agl", "resume", many], check=False)
    assert "the end of its output" not in agl("show", many).out


def test_a_narrow_terminal_has_what_came_of_it_below(agl: Agl, many: str) -> None:
    agl("resume", many, "--again", "verify#2")
    wide = agl("show", many).out.split("\n\n")[1].splitlines()
    rows = at_a_terminal(60, "show", many).split("\n\n")[1].splitlines()
    assert max(map(len, rows)) <= 60 < max(map(len, wide))
    at = rows.index("      failed with status 3; not used any more")
    assert rows[at - 1].startswith("3  verify  verify")
    assert at_a_terminal(200, "show", many).split("\n\n")[1].splitlines() == wide


LONG = """
from agl.sdk import ModelId, Role, Run, role, workflow
from dataclasses import dataclass
from agl.sdk import arg


@dataclass(frozen=True)
class Params:
    model: ModelId = arg("--model")
    request: str = arg("--request", default="")


@role()
def writer(name: str) -> Role[None]:
    return Role(name=name, instructions="Write.")


@workflow(version="1")
async def long(run: Run[Params]) -> None:
    await run.step(writer("implement_dates", model=run.params.model), commit="Dates")
    await run.step(writer("review", model=run.params.model), discard=True)
    await run.verify("true")
"""
LONG_MODEL = "claude-opus-4-5-20251101"


@pytest.fixture
def long(tmp_path: Path, project: Path, agl: Agl) -> str:
    """A run whose names, models and costs are as long as real ones."""
    file = tmp_path / f"long_{tmp_path.name}.py"
    file.write_text(LONG)
    write = {"tool": "write", "arguments": {"path": "a.txt", "content": "x\n"}}
    steps = {
        "implement_dates": [
            {"calls": [write], "usage": {"input_tokens": 17_000, "output_tokens": 600}},
            {"text": "done"},
        ],
        "review": [
            {"text": "ok", "usage": {"input_tokens": 940, "output_tokens": 0, "cost_usd": 0.0042}}
        ],
    }
    script = tmp_path / LONG_MODEL
    script.write_text(json.dumps({"format": 1, "steps": steps}))
    request = " ".join(["accept", "dates", "of", "the", "calendar's", "second", "form"] * 4)
    words = ("--model", f"scripted:{script}", "--request", request)
    said = agl("run", str(file), "-n", "one", *words)
    assert said.code == 0, said.err
    return "one"


def test_at_80_columns_names_and_models_give_way_first(agl: Agl, long: str, project: Path) -> None:
    commit = git(project, "rev-parse", "agl/one")[:10]
    table = at_a_terminal(80, "show", long).split("\n\n")[1]
    heads, one, two, passed, *_ = table.splitlines()
    assert heads.split() == ["#", "KIND", "NAME", "MODEL", "TOOK", "SPENT", "COMMIT"]
    assert re.match(r"1  step    implement_dates  scripted:c\w+…  \d", one)
    assert one.endswith(f"s  17.6k tok, $ ?    {commit}")
    assert len(one) == 80
    assert two.endswith("s  940 tok, $0.0042")
    assert passed.startswith("3  verify  verify  ")


def test_at_60_columns_models_stand_below(agl: Agl, long: str, project: Path) -> None:
    commit = git(project, "rev-parse", "agl/one")[:10]
    heads, one, model, *_ = at_a_terminal(60, "show", long).split("\n\n")[1].splitlines()
    assert heads.split() == ["#", "KIND", "NAME", "TOOK", "SPENT", "COMMIT"]
    assert re.match(r"1  step    implement_\w+…  \d", one)
    assert len(one) == 60
    assert one.endswith(commit)
    assert model == f"      scripted:{LONG_MODEL}"


@pytest.mark.parametrize("columns", [80, 60, 40])
def test_a_terminal_breaks_facts_between_words(agl: Agl, long: str, columns: int) -> None:
    wide = agl("show", long).out.split("\n\n")[0]
    facts = at_a_terminal(columns, "show", long).split("\n\n")[0]
    assert facts.split() == wide.split()
    lines = facts.splitlines()
    assert all(len(line) <= columns or " " not in line[10:].strip() for line in lines)
    assert len(lines) > len(wide.splitlines())


def test_known_money_is_told_beside_what_has_no_price(agl: Agl, long: str) -> None:
    money = "$0.0042 and 17600 tokens without a price"
    assert fact(agl("show", long).out, "spent") == f"18540 tokens, {money}"
    told = agl("show", long, "--json").json
    assert (told["spent"]["cost_usd"], told["spent_known_usd"]) == (None, 0.0042)


def test_each_program_names_its_steps(agl: Agl, long: str) -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    ledger = Ledger(
        container.store(resolve(os.environ, None)), Scope(ProjectName("calc"), Label(long))
    )
    attempts = [("a", "fix", "claude 9", ""), ("a", "fix", "claude 9", ""), ("", "plan", "", "")]
    attempts += [("", f"s{n}", "codex 1", "its own") for n in range(8)]
    for number, (child, step, program, sandbox) in enumerate(attempts):
        used = Usage(5, 0, 0, 0.25 * (number % 2))
        about = Spending(f"x{number:02}", child, step, 1, 1, "m", used, now, now, program, sandbox)
        ledger.write_spending(about)
    shown = agl("show", long).out
    assert [line[10:] for line in shown.splitlines() if line.startswith("agent ")] == [
        "AGL's own loop, no sandbox: implement_dates, review",
        "claude 9, no sandbox: a/fix",
        "codex 1, its shell in its own: s0, s1, s2, s3, s4, s5 and 2 more",
    ]
    assert fact(shown, "of that") == "55 tokens, $1.25 in attempts that gave no result"


def test_the_tree_is_shown_while_it_is_there(agl: Agl, many: str, project: Path) -> None:
    shown = agl("show", many).out
    assert fact(shown, "tree") == str(project.parent / ".agl-trees" / "calc" / "one" / "_base")
    git(project, "worktree", "remove", fact(shown, "tree"))
    assert fact(agl("show", many).out, "tree") == ""
    assert agl("show", many, "--json").json["tree"] is None


def test_a_branch_that_moved_or_went_is_said(
    agl: Agl, project: Path, flow: str, model: str
) -> None:
    agl("run", flow, "-n", "one", "--model", model)
    last = git(project, "rev-parse", "agl/one")
    assert fact(agl("show", "one").out, "branch") == f"agl/one at {last[:10]}"
    git(project, "branch", "-f", "agl/one", "main")
    main = git(project, "rev-parse", "main")
    moved = f"agl/one at {main[:10]}; AGL's last is {last[:10]}"
    assert fact(agl("show", "one").out, "branch") == moved
    assert agl("show", "one", "--json").json["branch_at"] == main
    git(project, "branch", "-D", "agl/one")
    shown = agl("show", "one").out
    assert fact(shown, "branch") == f"agl/one is gone; AGL's last is {last[:10]}"
    assert fact(shown, "next") == f"git branch agl/one {last[:10]} makes it again"
    assert agl("show", "one", "--json").json["branch_at"] is None


@pytest.mark.parametrize(
    ("words", "then"),
    [
        ((), "git switch agl/one"),
        (("--times", "0"), "agl clear one"),
        (("--how", "fast"), "agl resume one --again STEP runs again from a step on"),
        (("--loud",), "agl resume one at a terminal, or with --answers FILE"),
    ],
)
def test_run_resume_and_show_say_the_same_next(
    agl: Agl, project: Path, flow: str, model: str, words: tuple[str, ...], then: str
) -> None:
    run = agl("run", flow, "-n", "one", "--model", model, *words).out
    assert fact(run, "next") == f"{then}, or agl show one"
    assert fact(agl("resume", "one").out, "next") == f"{then}, or agl show one"
    assert fact(agl("show", "one").out, "next") == then


def test_a_bare_repository_is_looked_at_in_a_tree_of_its_own(
    agl: Agl, repo: Path, tmp_path: Path, flow: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
    monkeypatch.chdir(tmp_path / "bare.git")
    agl("init", "--no-build")
    run = agl("run", flow, "-n", "one", "--model", model)
    then = "git worktree add ../one agl/one"
    assert fact(run.out, "next") == f"{then}, or agl show one"
    assert fact(agl("show", "one").out, "next") == then
    git(tmp_path / "bare.git", *then.split()[1:])
    assert (tmp_path / "one" / "1.txt").exists()


def test_times_are_utc_wherever_one_is(
    agl: Agl, project: Path, flow: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    agl("run", flow, "-n", "one", "--model", model)
    created = agl("list", "--json").json["runs"][0]["created"]
    assert created.endswith("+00:00")
    told = f"{created[:10]} {created[11:16]} UTC"
    assert fact(agl("show", "one").out, "begun") == told
    assert told in agl("list").out
    monkeypatch.delenv("TZ")
    time.tzset()


def test_a_list_is_as_wide_as_the_terminal(project: Path, agl: Agl, flow: str, model: str) -> None:
    agl("run", flow, "-n", "one", "--model", model)
    lines = at_a_terminal(30, "list").splitlines()
    assert len(lines) == 2
    assert all(len(line) <= 30 for line in lines)
    assert lines[1].endswith("…")


def at_a_terminal(columns: int, *words: str) -> str:
    """What a command prints on a terminal of that width."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    subprocess.run([sys.executable, "-m", "agl", *words], stdout=theirs, env=env, check=True)
    os.close(theirs)
    said = os.read(ours, 100_000).decode().replace("\r\n", "\n")
    os.close(ours)
    return said
