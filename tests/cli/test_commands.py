"""The commands from `init` to `recover`, on a real repository."""

from __future__ import annotations

import fcntl
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from agl.cli.main import COMMANDS
from agl.cli.page import HelpWanted
from agl.cli.parsing import Parser
from cli.conftest import Agl, git


def test_init_says_what_it_registered(repo: Path, agl: Agl) -> None:
    said = agl("init", "--build", "make test")
    assert said.code == 0
    assert said.out.splitlines() == [
        "calc: registered",
        f"repository  {repo}",
        f"trees       {repo.parent / '.agl-trees'}",
        "build       make test",
    ]


def test_init_again_changes_the_build_and_says_so(repo: Path, agl: Agl) -> None:
    agl("init", "--build", "make test")
    assert agl("init").out.startswith("calc: registered already\n")
    assert agl("init", "--no-build").out.startswith("calc: changed\n")
    assert agl("init", "--no-build", "--json").json["project"]["build"] is None


def test_a_repository_that_was_moved_is_known_by_its_runs(
    project: Path, agl: Agl, flow: str, model: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agl("run", flow, "-n", "one", "--model", model, "--how", "fast")
    moved = project.rename(project.parent / "moved")
    monkeypatch.chdir(moved)
    said = agl("init", "--no-build")
    assert (said.code, said.out) == (4, "")
    file = home / "projects" / "calc.toml"
    assert f"'{project}' is gone, and runs of its project 'calc' (one) are on" in said.err
    assert f"in '{file}' and type" in said.err
    assert agl("init").err == said.err
    common_dir, folder = re.findall(r"(?:common_dir|folder) to '([^']+)'", said.err)
    file.write_text(f'common_dir = "{common_dir}"\nfolder = "{folder}"\n')
    (repair,) = re.findall(r"`(git worktree repair [^`]+)`", said.err)
    subprocess.run(repair, shell=True, check=True)
    assert agl("init").out.startswith("calc: registered already\n")
    resumed = agl("resume", "one", "--json").json
    assert (resumed["outcome"], resumed["replayed"]) == ("stopped", 1)


def test_a_project_that_is_gone_does_not_keep_a_new_one_out(
    project: Path, agl: Agl, flow: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    agl("run", flow, "-n", "one", "--model", model)
    shutil.rmtree(project)
    git(project.parent, "init", "-q", "other")
    monkeypatch.chdir(project.parent / "other")
    git(project.parent / "other", "commit", "-q", "--allow-empty", "-m", "first")
    assert agl("init", "--no-build").out.startswith("other: registered\n")


def test_a_run_lands_and_says_what_to_type(project: Path, agl: Agl, flow: str, model: str) -> None:
    said = agl("run", flow, "-n", "one", "--model", model, "--times", "2")
    assert said.code == 0
    tip = git(project, "rev-parse", "agl/one")
    base = git(project, "rev-parse", "main")
    assert said.out.splitlines() == [
        "one     landed on agl/one",
        f"branch  agl/one at {tip[:10]}, from {base[:10]}",
        "steps   2 ran, 0 replayed",
        "next    git switch agl/one, or agl show one",
    ]
    assert git(project, "status", "--porcelain") == ""


def test_flags_may_stand_anywhere(project: Path, agl: Agl, flow: str, model: str) -> None:
    said = agl("run", "-n", "one", flow, f"--model={model}", "--json", "-t", "a", "--tag", "b")
    assert said.json["result"] == "landed"


def test_a_run_without_a_change_needed_nothing(
    project: Path, agl: Agl, flow: str, model: str
) -> None:
    said = agl("run", flow, "-n", "one", "--model", model, "--times", "0")
    assert said.out.startswith("one     needed nothing\n")


def test_a_stop_is_told_on_stderr_and_in_the_exit_code(
    project: Path, agl: Agl, flow: str, model: str
) -> None:
    said = agl("run", flow, "-n", "one", "--model", model, "--how", "fast")
    assert (said.code, said.err.splitlines()[-1]) == (7, "agl: too fast")
    assert said.out.startswith("one     not landed, stopped on purpose\n")
    assert said.out.endswith(
        "next    agl resume one --again STEP runs again from a step on, or agl show one\n"
    )
    assert said.err.count("too fast") == 1


def test_a_failed_run_is_one_document_with_an_error(
    project: Path, agl: Agl, flow: str, model: str
) -> None:
    said = agl("run", flow, "-n", "one", "--model", model, "--how", "fast", "--json")
    assert said.code == 7
    assert said.json["branch"] == "agl/one"
    assert said.json["error"] == {"kind": "stopped", "message": "too fast", "exit_code": 7}


def test_a_question_with_nobody_there_is_answered_from_a_file(
    project: Path, agl: Agl, flow: str, model: str, tmp_path: Path
) -> None:
    said = agl("run", flow, "-n", "one", "--model", model, "--loud")
    assert said.code == 6
    assert "open    Loud?\n" in said.out
    assert "--answers FILE" in said.out
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps({"Loud?": "yes"}))
    said = agl("resume", "one", "--answers", str(answers))
    assert said.code == 0
    assert "steps   0 ran, 1 replayed\n" in said.out


def test_resume_again_runs_a_step_anew(project: Path, agl: Agl, flow: str, model: str) -> None:
    agl("run", flow, "-n", "one", "--model", model, "--times", "2")
    again = agl("resume", "one", "--again", "writer#2", "--json").json
    assert (again["ran"], again["replayed"]) == (1, 1)
    assert agl("resume", "one").out.startswith("one     landed on agl/one; finished already")
    lines = agl("show", "one", "--json").json["lines"]
    assert [(line["kind"], line["live"]) for line in lines] == [
        ("step", True),
        ("step", False),
        ("cut", True),
        ("step", True),
    ]


def test_list_shows_what_there_is(project: Path, agl: Agl, flow: str, model: str) -> None:
    assert agl("list").err == "no runs in calc yet; `agl run WORKFLOW -n LABEL`\n"
    assert agl("list", "--json").json == {"project": "calc", "runs": []}
    agl("run", flow, "-n", "one", "--model", model)
    agl("run", flow, "-n", "two", "--model", model, "--how", "fast")
    lines = agl("list").out.splitlines()
    assert [line.split()[0] for line in lines] == ["LABEL", "one", "two"]
    assert lines[1].endswith(" UTC  landed")
    assert lines[2].endswith(" UTC  stopped")
    assert lines[1].startswith("one    flow_test_list_shows")
    runs = agl("list", "--json").json["runs"]
    assert (runs[0]["workflow"], runs[1]["message"]) == (f"{flow}:write", "too fast")


def test_a_held_run_is_running(project: Path, agl: Agl, flow: str, model: str, home: Path) -> None:
    agl("run", flow, "-n", "One", "--model", model)
    with (home / "locks" / "calc" / "one.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert agl("list", "--json").json["runs"][0]["state"] == "running"
        refused = agl("clear", "One")
        assert (refused.code, refused.out) == (4, "")


def test_show_tells_steps_and_spending(project: Path, agl: Agl, flow: str, model: str) -> None:
    agl("run", flow, "-n", "one", "--model", model, "--times", "2")
    said = agl("show", "one")
    assert "state     finished\n" in said.out
    assert "spent     12 tokens, $1.00\n" in said.out
    assert "next      git switch agl/one\n" in said.out
    details = agl("show", "one", "--json").json
    assert [line["name"] for line in details["lines"]] == ["writer", "writer"]
    assert details["head"] == git(project, "rev-parse", "agl/one")
    assert details["params"]["times"] == 2


def test_clear_keeps_and_recover_brings_back(
    project: Path, agl: Agl, flow: str, model: str
) -> None:
    agl("run", flow, "-n", "one", "--model", model)
    tip = git(project, "rev-parse", "agl/one")
    said = agl("clear", "one", "--json")
    assert said.code == 0
    (kept,) = (item for item in agl("recover", "one", "--json").json["kept"] if item["commit"])
    assert kept["commit"] == tip
    assert kept["name"] in agl("recover").out
    said = agl("recover", "--item", kept["name"], "--branch", "b$k")
    assert said.out == f"b$k is at {tip}\nnext      git switch 'b$k'\n"
    assert git(project, "rev-parse", "b$k") == tip
    assert agl("recover", "--item", kept["name"], "--branch", "back").code == 0
    assert agl("recover", "--item", kept["name"], "--branch", "back").code == 4


def test_a_run_is_cleared_once(project: Path, agl: Agl, flow: str, model: str) -> None:
    agl("run", flow, "-n", "one", "--model", model)
    assert agl("clear", "one").out.startswith("one: cleared\n  moved ")
    said = agl("clear", "one")
    how = "`agl recover one` lists what is kept of it"
    assert (said.code, said.out) == (0, f"one: no tree and no branch was left of it; {how}\n")
    assert agl("clear", "one", "--purge").out.startswith("one: cleared\n  purged ")
    assert agl("clear", "one").code == 3


def test_clear_purges_what_it_is_told_to(project: Path, agl: Agl, flow: str, model: str) -> None:
    agl("run", flow, "-n", "one", "--model", model)
    agl("run", flow, "-n", "two", "--model", model)
    said = agl("clear", "one", "two", "--purge")
    assert "one: cleared" in said.out
    assert "  purged  " in said.out
    assert agl("recover").err == "nothing is kept\n"
    assert agl("list", "--json").json["runs"] == []


def test_workflows_describes_a_file(flow: str, agl: Agl) -> None:
    said = agl("workflows", flow)
    assert said.out.startswith(f"{flow}:write (version 1)\n\nWrites a file.\n")
    parameters = agl("workflows", flow, "--json").json["parameters"]
    assert [(one["name"], one["required"]) for one in parameters][:2] == [
        ("model", True),
        ("times", False),
    ]


def test_workflows_lists_what_is_installed(agl: Agl) -> None:
    assert isinstance(agl("workflows", "--json").json["workflows"], list)


@pytest.mark.parametrize("command", [*COMMANDS, "run fix"])
def test_every_command_has_help(command: str, agl: Agl) -> None:
    said = agl(*command.split(), "--help")
    assert said.code == 0
    assert said.out.startswith(f"usage: agl {command}")
    assert "--home DIR" in said.out
    assert agl(*command.split(), "--help", "--json").json["help"] == said.out.rstrip("\n")


@pytest.mark.parametrize("command", [*COMMANDS, "run fix"])
def test_every_argument_says_what_it_is(command: str, agl: Agl) -> None:
    arguments = arguments_in(agl(*command.split(), "--help").out)
    assert {"-h, --help", "--json"} <= set(arguments)
    assert [name for name, said in arguments.items() if not said] == []


def test_an_argument_without_a_word_is_seen() -> None:
    parser = Parser("x", "Does it.")
    parser.add_argument("label", metavar="LABEL")
    parser.add_argument("--long-enough-for-a-line-of-its-own", help="said")
    parser.add_argument("--item")
    with pytest.raises(HelpWanted) as wanted:
        parser.parse(["--help"])
    silent = [name for name, said in arguments_in(str(wanted.value)).items() if not said]
    assert silent == ["LABEL", "--item ITEM"]


def arguments_in(shown: str) -> dict[str, str]:
    """The arguments that a help lists, each with what it says of it."""
    found: dict[str, str] = {}
    name = ""
    for section in re.findall(r"^\S.*:\n((?: +.*\n?)+)", shown, re.MULTILINE):
        for line in section.splitlines():
            if line.startswith("   "):
                found[name] += line.strip()
            else:
                name, _, said = line.strip().partition("  ")
                found[name] = said.strip()
    return found


def test_the_help_of_run_says_what_must_be_given(agl: Agl) -> None:
    assert agl("run", "--help").out.startswith("usage: agl run WORKFLOW -n LABEL ")
    assert "branch is agl/LABEL (required)" in agl("run", "--help").out


def test_the_help_of_a_workflow_is_about_it(agl: Agl, flow: str) -> None:
    for words, name in ((("run", "fix"), "fix"), (("run", "-n", "x", flow), flow)):
        said = " ".join(agl(*words, "--help").out.split())
        assert said.startswith(f"usage: agl run {name} [-h] [--json] -n LABEL ")
        assert "WORKFLOW" not in said


def test_the_help_of_run_shows_the_workflows_flags(agl: Agl, flow: str) -> None:
    said = agl("run", flow, "--help")
    assert "Writes a file." in said.out
    assert "--times NUMBER" in said.out
    assert "up to 100% (default: 1)" in said.out
    assert "  --loud\n" in said.out
    assert "(may be repeated)" in said.out
    assert "(required)" in said.out


def test_flags_are_told_in_the_words_that_are_typed(agl: Agl, tmp_path: Path) -> None:
    file = tmp_path / "flow_strict.py"
    file.write_text(
        "from dataclasses import dataclass\n"
        "from agl.sdk import Run, arg, workflow\n"
        "@dataclass\n"
        "class Params:\n"
        "    tag: tuple[str, ...] = arg('--tag')\n"
        "    strict: bool = arg('--strict', default=True)\n"
        "    to: tuple[str, ...] = arg('--to', default=('a', 'b'))\n"
        "@workflow(version='1')\n"
        "async def f(run: Run[Params]) -> None: ...\n"
    )
    for words in (("run", str(file), "--help"), ("workflows", str(file))):
        said = " ".join(agl(*words).out.split())
        assert "--strict true|false" in said
        assert "default: true" in said
        assert "default: a, b; may be repeated" in said
    refused = agl("run", str(file), "-n", "x")
    assert "required: --tag; `agl run" in refused.err


def test_a_hint_can_be_pasted(agl: Agl, tmp_path: Path, project: Path) -> None:
    (tmp_path / "my flows").mkdir()
    file = tmp_path / "my flows" / "flow_spaced.py"
    file.write_text(
        "from agl.sdk import Run, workflow\n"
        "@workflow(version='1')\n"
        "async def f(run: Run[None]) -> None: ...\n"
    )
    assert f"`agl run '{file}' --help`" in agl("run", str(file)).err


def test_help_and_version_need_nothing(agl: Agl) -> None:
    said = agl("--help")
    assert "  resume     go on with a run" in said.out
    assert agl("--version").out.startswith("agl ")
    assert agl("--json", "--version").json["version"]


def test_home_wins_over_the_environment(repo: Path, agl: Agl, tmp_path: Path) -> None:
    assert agl("--home", str(tmp_path / "other"), "init", "--no-build").code == 0
    assert (tmp_path / "other" / "projects" / "calc.toml").exists()
    assert agl("list").code == 3
