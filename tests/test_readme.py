"""The README's commands do what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def environment(folder: Path) -> dict[str, str]:
    """That of a person on a machine where nothing is set up but git's identity."""
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "AGL_HOME": str(folder / "home"),
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        **{f"GIT_{who}_NAME": "A Person" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "person@example.org" for who in ("AUTHOR", "COMMITTER")},
    }


@pytest.mark.slow
def test_the_readme_is_true(tmp_path: Path) -> None:
    blocks = BLOCK.findall((ROOT / "README.md").read_text())
    assert len(blocks) == 10
    said, told, here = "", "", tmp_path
    for kind, content in blocks:
        if kind == "text":
            assert shows(said, content), said
            continue
        done = subprocess.run(
            ["bash", "-euc", content.replace("scripts/agl ", "agl ")],
            cwd=here,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said = done.stdout
        told += said
        here = tmp_path / "calc" if (tmp_path / "calc").exists() else tmp_path
    assert re.search(r"^first/", told, re.MULTILINE)


def test_the_readmes_scripts_are_there() -> None:
    for name in set(re.findall(r"scripts/\w+", (ROOT / "README.md").read_text())):
        assert os.access(ROOT / name, os.X_OK), name


def test_the_readme_names_every_folder() -> None:
    tree = (ROOT / "README.md").read_text().split("## The tree")[1]
    for folder in (ROOT / "src" / "agl").iterdir():
        if folder.is_dir() and folder.name != "__pycache__":
            assert f"  {folder.name}/" in tree


def test_the_readme_names_every_command() -> None:
    from agl.cli.main import COMMANDS

    table = (ROOT / "README.md").read_text().split("## The commands")[1]
    assert [name for name in COMMANDS if f"`agl {name}" not in table] == []


def test_the_readme_names_every_exit_code() -> None:
    from agl.ports import errors

    table = (ROOT / "README.md").read_text().split("Exit codes:")[1]
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    codes = {kind.exit_code for kind in kinds if issubclass(kind, errors.AglError)}
    assert [code for code in sorted(codes) if f"| {code} |" not in table] == []


def shows(said: str, content: str) -> bool:
    """Whether the output holds the text, in which … stands for anything."""
    parts = re.split("…\n?", without_ids(content).rstrip("\n"))
    return re.search("(?s:.*?)".join(map(re.escape, parts)), without_ids(said)) is not None


def without_ids(text: str) -> str:
    return re.sub(r"\b[0-9a-f]{10}\b", "ID", text)
