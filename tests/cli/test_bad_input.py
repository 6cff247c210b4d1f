"""Whatever is wrong: one sentence, the right exit code, no traceback, nothing written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from cli.conftest import Agl, git


def everything_below(folder: Path) -> set[str]:
    """All files and folders, without those that say nothing: locks and compiled modules."""
    paths = folder.rglob("*")
    return {str(path) for path in paths if not {"__pycache__", "locks"} & set(path.parts)}


def refused(agl: Agl, folder: Path, *words: str) -> tuple[int, str]:
    """The exit code and the one sentence; the same in JSON; and nothing new below the folder."""
    before = everything_below(folder)
    said = agl(*words)
    assert said.out == ""
    assert said.err.startswith("agl: ")
    assert said.err.count("\n") == 1, said.err
    machine = agl(*words, "--json")
    error = machine.json["error"]
    assert machine.code == said.code == error["exit_code"]
    assert f"agl: {error['message']}\n" == said.err
    assert machine.err == ""
    assert everything_below(folder) - before == set()
    return said.code, error["message"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name a command"),
        (("nope",), "no command 'nope'; "),
        (("shwo",), "no command 'shwo' (is show meant?); "),
        (("resume", "caf\udce9"), r"the argument b'caf\xe9' is not UTF-8"),
        (("--nope", "list"), "no flag '--nope'"),
        (("--home", "", "list"), "--home is empty"),
        (("list", "x"), "unrecognized arguments: x; "),
        (("list", "x", "--jsno"), "unrecognized arguments: x --jsno (is --json meant?); "),
        (("list", "--nope"), "unrecognized arguments: --nope"),
        (("list", "--js"), "unrecognized arguments: --js"),
        (("show",), "required: LABEL"),
        (("show", "a b"), "label 'a b' has a character"),
        (("show", "_base"), "label '_base' is reserved"),
        (("show", "HEAD"), "label 'HEAD' is reserved"),
        (("resume", "--agian", "x"), "arguments: --agian (is --again meant?); `agl"),
        (("resume",), "required: LABEL"),
        (("resume", ".."), "label '..'"),
        (("resume", "x", "--again"), "expected one argument"),
        (("clear",), "required: LABEL"),
        (("clear", "ok", "not/ok"), "label 'not/ok'"),
        (("recover", "--item", "x"), "--item and --branch go together"),
        (("recover", "--branch", "x"), "--item and --branch go together"),
        (("recover", "a/b"), "label 'a/b'"),
        (("init", "--build", "x", "--no-build"), "not allowed with"),
        (("init", "--build", " "), "--build is empty"),
        (("init", "--build", "make\ntest"), "--build has several lines"),
        (("init",), "say how the project is checked"),
        (("run",), "required: WORKFLOW; `agl run --help`"),
        (("run", "-n", "x"), "required: WORKFLOW"),
    ],
)
def test_wrong_words_are_refused(
    repo: Path, tmp_path: Path, agl: Agl, words: tuple[str, ...], said: str
) -> None:
    code, message = refused(agl, tmp_path, *words)
    assert code == 2
    assert said in message


@pytest.mark.parametrize(
    "words", [("list",), ("show", "x"), ("resume", "x"), ("clear", "x"), ("recover",)]
)
def test_an_unregistered_repository_is_told_of_init(
    repo: Path, tmp_path: Path, agl: Agl, words: tuple[str, ...]
) -> None:
    code, message = refused(agl, tmp_path, *words)
    assert code == 3
    assert "`agl init`" in message


@pytest.mark.parametrize("words", [("list",), ("init", "--no-build")])
def test_outside_a_repository_nothing_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agl: Agl, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, message = refused(agl, tmp_path, *words)
    assert code == 2
    assert "is not in a git repository" in message


def test_a_repository_without_a_commit_is_not_registered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agl: Agl
) -> None:
    git(tmp_path, "init", "-q", "empty")
    monkeypatch.chdir(tmp_path / "empty")
    code, message = refused(agl, tmp_path, "init", "--no-build")
    assert code == 2
    assert "make a first commit" in message


def test_a_repository_without_an_identity_is_not_registered(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agl: Agl
) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.delenv(f"GIT_{who}_NAME")
        monkeypatch.delenv(f"GIT_{who}_EMAIL")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("EMAIL", raising=False)
    code, message = refused(agl, tmp_path, "init", "--no-build")
    assert code == 6
    assert "user." in message


def test_a_folder_that_is_gone_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agl: Agl
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    code, message = refused(agl, tmp_path, "list")
    os.chdir(tmp_path)
    assert (code, message) == (2, "the current folder is gone; go to another one")


@pytest.mark.parametrize("words", [("show", "x"), ("resume", "x"), ("clear", "x")])
def test_a_run_that_is_not_there_is_not_found(
    project: Path, tmp_path: Path, agl: Agl, words: tuple[str, ...]
) -> None:
    code, message = refused(agl, tmp_path, *words)
    assert code == 3
    assert "no run 'x'" in message


def test_nothing_kept_under_a_name_is_not_found(project: Path, tmp_path: Path, agl: Agl) -> None:
    code, message = refused(agl, tmp_path, "recover", "--item", "x", "--branch", "y")
    assert code == 3
    assert "nothing is kept as 'x'" in message


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("nope", "-n", "x"), 3, "no workflow 'nope'; "),
        (("fxi", "-n", "x"), 3, "no workflow 'fxi' (is fix meant?); "),
        (("FLOW", "--tims=3"), 2, "arguments: --tims=3 (is --times meant?); `agl run FLOW --help`"),
        (("./nope.py", "-n", "x"), 3, "was it moved or removed?"),
        (("FLOW", "--model", "MODEL"), 2, "required: -n/--label; `agl run FLOW --help`"),
        (("FLOW", "-n", "x"), 2, "required: --model"),
        (("FLOW", "-n", "a b", "--model", "MODEL"), 2, "label 'a b'"),
        (("FLOW", "-n", "x", "--model", "gpt"), 2, "not spelled provider:name"),
        (("FLOW", "-n", "x", "--model", "nobody:x"), 2, "no backend for model 'nobody:x'"),
        (("FLOW", "-n", "x", "--model", "scripted:/nope.json"), 3, "/nope.json"),
        (("FLOW", "-n", "x", "--model", "MODEL", "--times", "two"), 2, "'two' is not a whole"),
        (("FLOW", "-n", "x", "--model", "MODEL", "--times", "-1"), 2, "--times is below 0"),
        (("FLOW", "-n", "x", "--model", "MODEL", "--how", "ill"), 2, "none of well, fast"),
        (("FLOW", "-n", "x", "--model", "MODEL", "--loud=1"), 2, "ignored explicit argument"),
        (("FLOW", "-n", "x", "--model", "MODEL", "--lou"), 2, "unrecognized arguments: --lou"),
        (("FLOW", "-n", "x", "--model", "MODEL", "extra"), 2, "unrecognized arguments: extra"),
        (("FLOW", "-n", "x", "--model", "MODEL", "--from", "nope"), 2, "nope"),
        (("FLOW", "-n", "x", "--model", "MODEL", "--from", "--help"), 2, "expected one argument"),
        (("FLOW", "-n", "x", "--model", "MODEL", "--answers", "/nope"), 2, "cannot be read"),
    ],
)
def test_a_wrong_run_is_refused(
    project: Path,
    tmp_path: Path,
    agl: Agl,
    flow: str,
    model: str,
    words: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    branches = git(project, "for-each-ref")
    meant = [word.replace("FLOW", flow).replace("MODEL", model) for word in words]
    found, message = refused(agl, tmp_path, "run", *meant)
    assert found == code
    assert said.replace("FLOW", flow) in message
    assert git(project, "for-each-ref") == branches


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "cannot be read: it is not JSON (line 1, column 2)"),
        ("[" * 100_000, "cannot be read: it is nested too deeply"),
        ("[]", "not an object of texts"),
        ('{"a": 1}', "not an object of texts"),
    ],
)
def test_a_wrong_answers_file_is_refused(
    project: Path, tmp_path: Path, agl: Agl, flow: str, model: str, content: str, said: str
) -> None:
    (tmp_path / "answers.json").write_text(content)
    words = ("--model", model, "--answers", str(tmp_path / "answers.json"))
    code, message = refused(agl, tmp_path, "run", flow, "-n", "x", *words)
    assert code == 2
    assert said in message


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"format": 1}', '{"format": 2, "steps": {}}', '{"format": 1, "steps": []}'],
)
def test_a_wrong_script_is_refused(
    project: Path, tmp_path: Path, agl: Agl, flow: str, content: str
) -> None:
    (tmp_path / "bad.json").write_text(content)
    model = f"scripted:{tmp_path / 'bad.json'}"
    code, message = refused(agl, tmp_path, "run", flow, "-n", "x", "--model", model)
    assert code in (2, 4)
    assert "bad.json" in message
    assert ("it is not JSON (line 1, column " in message) == (len(content) < 2)


def test_a_label_that_is_taken_is_refused_whatever_its_case(
    project: Path, tmp_path: Path, agl: Agl, flow: str, model: str
) -> None:
    agl("run", flow, "-n", "Fix", "--model", model)
    for label in ("Fix", "fix"):
        code, message = refused(agl, tmp_path, "run", flow, "-n", label, "--model", model)
        assert code == 4
        assert "'Fix'" in message


def test_a_step_that_is_not_recorded_cannot_run_again(
    project: Path, tmp_path: Path, agl: Agl, flow: str, model: str
) -> None:
    agl("run", flow, "-n", "one", "--model", model)
    assert refused(agl, tmp_path, "resume", "one", "--again", "nope")[0] == 3
    assert refused(agl, tmp_path, "resume", "one", "--again", "writer#0")[0] == 2
    assert agl("list", "--json").json["runs"][0]["state"] == "finished"


def test_a_workflow_that_was_removed_leaves_the_run_whole(
    project: Path, tmp_path: Path, agl: Agl, flow: str, model: str
) -> None:
    agl("run", flow, "-n", "one", "--model", model, "--how", "fast")
    Path(flow).rename(tmp_path / "elsewhere.py")
    code, message = refused(agl, tmp_path, "resume", "one")
    assert code == 3
    assert flow in message
    assert agl("list", "--json").json["runs"][0]["state"] == "stopped"


@pytest.mark.parametrize(("file", "code"), [("config.toml", 2), ("projects/calc.toml", 2)])
def test_a_wrong_settings_file_is_named(
    project: Path, home: Path, tmp_path: Path, agl: Agl, file: str, code: int
) -> None:
    (home / file).write_text("nope = 1\n")
    found, message = refused(agl, tmp_path, "list")
    assert found == code
    assert str(home / file) in message
    assert "'nope'" in message


def test_a_broken_record_is_named_and_does_not_hide_the_others(
    project: Path, home: Path, tmp_path: Path, agl: Agl, flow: str, model: str
) -> None:
    agl("run", flow, "-n", "one", "--model", model)
    agl("run", flow, "-n", "two", "--model", model)
    (home / "projects" / "calc" / "runs" / "one" / "run.json").write_text("{")
    states = {run["label"]: run["state"] for run in agl("list", "--json").json["runs"]}
    assert states == {"one": "unreadable", "two": "finished"}
    code, message = refused(agl, tmp_path, "show", "one")
    assert code == 6
    assert "run.json" in message


@pytest.mark.parametrize("place", ["projects/calc/runs/one/run.json", "locks/calc/one.lock"])
def test_what_cannot_be_opened_does_not_hide_the_other_runs(
    project: Path, home: Path, agl: Agl, flow: str, model: str, place: str
) -> None:
    agl("run", flow, "-n", "one", "--model", model)
    agl("run", flow, "-n", "two", "--model", model)
    (home / place).unlink()
    (home / place).symlink_to(home / place)  # a loop, which also root cannot open
    states = {run["label"]: run["state"] for run in agl("list", "--json").json["runs"]}
    assert states == {"one": "unreadable", "two": "finished"}


def test_a_flag_of_a_workflow_that_is_agls_own_is_refused(
    project: Path, tmp_path: Path, agl: Agl
) -> None:
    file = tmp_path / "flow_collides.py"
    file.write_text(
        "from dataclasses import dataclass\n"
        "from agl.sdk import Run, arg, workflow\n"
        "@dataclass\n"
        "class Params:\n"
        "    source: str = arg('--from', default='x')\n"
        "@workflow(version='1')\n"
        "async def f(run: Run[Params]) -> None: ...\n"
    )
    code, message = refused(agl, tmp_path, "run", str(file), "-n", "x")
    assert code == 2
    assert "'source' takes a flag that is AGL's own (--from)" in message


def test_a_bug_of_ours_is_told_as_one(agl: Agl, tmp_path: Path) -> None:
    from agl.cli.failures import page_of

    page = page_of(KeyError("x"))
    assert page.exit_code == 70
    assert "please report it" in page.notes
    assert json.loads(json.dumps(page.document))["error"]["kind"] == "InternalError"


def test_failures_that_disagree_exit_with_8() -> None:
    from agl.cli.failures import page_of
    from agl.ports.errors import InputError, StateError

    page = page_of(ExceptionGroup("", [InputError("a"), StateError("b")]))
    assert (page.exit_code, page.notes) == (8, "agl: a\nb")
