"""What `recover` tells of what was kept."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from cli.conftest import Agl, git


def test_commits_and_folders_say_how_they_come_back(
    agl: Agl, project: Path, flow: str, model: str, tmp_path: Path
) -> None:
    agl("run", flow, "-n", "one", "--model", model)
    tree = tmp_path / ".agl-trees" / "calc" / "one" / "_base"
    (tree / "left.txt").write_text("left")
    agl("clear", "one")
    things = agl("recover", "--json").json["kept"]
    assert sorted(thing["kind"] for thing in things) == ["commit", "commit", "folder"]
    said = agl("recover")
    lines = said.out.splitlines()
    tip = next(thing["commit"] for thing in things if thing["subject"] == "write")
    assert f"    {tip[:10]} write" in lines
    assert said.err == "`agl recover --item NAME --branch BRANCH` makes a branch of a commit\n"
    (copy,) = (line.strip() for line in lines if line.startswith("    cp -a "))
    subprocess.run(copy, shell=True, check=True, cwd=tmp_path / "home")
    assert (tmp_path / "home" / "_base" / "left.txt").read_text() == "left"
    for thing in things:
        when = thing["when"]
        assert f"    {thing['kind']}, {when[:10]} {when[11:16]} UTC: {thing['why']}" in lines


def test_a_folders_path_is_quoted(
    agl: Agl, project: Path, flow: str, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGL_TREES_ROOT", str(tmp_path / "my trees"))
    agl("run", flow, "-n", "one", "--model", model)
    agl("clear", "one")
    (copy,) = (line for line in agl("recover").out.splitlines() if "cp -a " in line)
    assert Path(shlex.split(copy)[2]).is_dir()


@pytest.mark.parametrize("branch", ["agl", "agl/back", "AGL/back"])
def test_agls_own_branches_are_not_made_by_hand(
    agl: Agl, project: Path, flow: str, model: str, branch: str
) -> None:
    agl("run", flow, "-n", "one", "--model", model)
    agl("clear", "one")
    name = agl("recover", "--json").json["kept"][0]["name"]
    said = agl("recover", "--item", name, "--branch", branch)
    assert said.code == 2
    assert "give another name" in said.err
    assert git(project, "for-each-ref", "refs/heads/agl") == ""
