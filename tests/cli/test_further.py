"""Commands that other packages bring."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.conftest import Agl


@pytest.fixture(autouse=True)
def _package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "site" / "further-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: further\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[agl.commands]\nhello = further_command:answer\nlist = further_command:answer\n"
    )
    (tmp_path / "site" / "further_command.py").write_text(
        "from agl.cli.page import Page\n"
        "def answer(argv, context):\n"
        "    return Page({'argv': argv, 'json': context.as_json}, 'hello', exit_code=3)\n"
    )
    monkeypatch.syspath_prepend(tmp_path / "site")


def test_a_further_command_is_called_with_its_arguments(agl: Agl) -> None:
    said = agl("hello", "x", "--json")
    assert (said.code, said.json) == (3, {"argv": ["x", "--json"], "json": True})


def test_help_lists_further_commands(agl: Agl) -> None:
    assert "  hello\n" in agl("--help").out


def test_a_further_command_does_not_take_the_place_of_ours(agl: Agl, project: Path) -> None:
    assert agl("list", "--json").json["project"] == "calc"
    named = [line.split()[0] for line in agl("--help").out.splitlines() if line.startswith("  ")]
    assert named.count("list") == 1
