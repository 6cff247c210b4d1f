"""The guide's files are written as it says, and its commands do what it shows."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from adapters.worktools.test_worktools import task_in
from agl.adapters.memory.processes import MemoryProcesses
from agl.adapters.worktools import WorkTools
from agl.ports.models import Restriction
from test_readme import ROOT, environment, shows

GUIDE = ROOT / "docs" / "authors.md"
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_guide_is_true(tmp_path: Path) -> None:
    work = tmp_path / "work"
    env = {**environment(tmp_path), "PYTHONPATH": str(tmp_path / "site")}
    said, here = "", work
    kinds: list[str] = []
    for kind, name, content in BLOCK.findall(GUIDE.read_text()):
        kinds.append(kind)
        if name:
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text(content)
            if kind == "toml":
                install(work / name, tmp_path / "site")
        elif kind == "text":
            assert shows(said, content), said
        else:
            assert kind == "sh"
            script = f"{content}\npwd > {tmp_path}/here"
            done = subprocess.run(
                ["bash", "-euc", script],
                cwd=here,
                env=env,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            said, here = done.stdout, Path((tmp_path / "here").read_text().strip())
    assert kinds.count("sh") == 7
    assert kinds.count("text") == 4


def test_the_guide_is_linked() -> None:
    assert "(docs/authors.md)" in (ROOT / "README.md").read_text()


async def test_the_guide_names_every_tool_with_its_arguments(tmp_path: Path) -> None:
    rows = dict(re.findall(r"^\| `([a-z]+)` \| (.*) \|$", GUIDE.read_text(), re.MULTILINE))
    async with WorkTools(MemoryProcesses({}), {}).opened(task_in(tmp_path)) as kit:
        tools = kit.tools
    assert {tool.name for tool in tools} == set(rows)
    for tool in tools:
        properties = tool.schema["properties"]
        assert isinstance(properties, dict)
        assert [name for name in properties if f"`{name}`" not in rows[tool.name]] == []


def test_the_guide_says_of_every_restriction_what_it_means() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \|", GUIDE.read_text(), re.MULTILINE)
    assert rows == [restriction.name for restriction in Restriction]


def install(project: Path, site: Path) -> None:
    """What `pip install` does with a project of pure Python: its packages and its metadata."""
    about = tomllib.loads(project.read_text())
    info = site / f"{about['project']['name'].replace('-', '_')}-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: release-notes\nVersion: 1\n")
    groups = about["project"]["entry-points"].items()
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in points.items())
        for group, points in groups
    ]
    (info / "entry_points.txt").write_text("".join(lines))
    for package in about["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]:
        (site / package).symlink_to(project.parent / package)
