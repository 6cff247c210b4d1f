"""`fix` on projects that nobody here wrote, gated by their own tests. pip fetches them."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.world import World, script, shell, write

PYTEST = f"{sys.executable} -B -m pytest -q -p no:cacheprovider"


@dataclass(frozen=True)
class Project:
    """A source distribution, how it is checked, and one line of it, right, broken and wrong."""

    name: str
    version: str
    build: str
    file: str
    right: str
    broken: str
    wrong: str


PROJECTS = [
    Project(
        "iniconfig",
        "2.3.1",
        f"PYTHONPATH=src {PYTEST} testing",
        "src/iniconfig/__init__.py",
        "None if lineno is None else lineno + 1",
        "None if lineno is None else lineno",
        "None if lineno is None else lineno + 2",
    ),
    Project(
        "toolz",
        "1.0.0",
        f"{PYTEST} toolz/tests/test_itertoolz.py",
        "toolz/itertoolz.py",
        "return itertools.islice(seq, n)\n",
        "return itertools.islice(seq, n - 1)\n",
        "return itertools.islice(seq, n + 1)\n",
    ),
]


@pytest.fixture(params=PROJECTS, ids=lambda project: project.name)
def project(request: pytest.FixtureRequest) -> Project:
    found: Project = request.param
    return found


@pytest.fixture
def world(tmp_path: Path, project: Project) -> World:
    """The project with one line broken, committed as it came."""
    world = World(tmp_path)
    wanted = f"{project.name}=={project.version}"
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
    subprocess.run([*pip, "-d", str(tmp_path), wanted], check=True, timeout=240)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    (tmp_path / f"{project.name}-{project.version}").rename(world.repo)
    file = world.repo / project.file
    text = file.read_text()
    assert text.count(project.right) == 1
    file.write_text(text.replace(project.right, project.broken))
    world.git("init", "-q", "-b", "main")
    # A distribution holds generated files that its own .gitignore names.
    world.git("add", "-A", "-f")
    world.git("commit", "-q", "-m", "as it came, and broken")
    assert world.agl("init", "--build", project.build).status == 0
    return world


def the_script(project: Project) -> str:
    def edit(old: str, new: str) -> dict[str, object]:
        return {"tool": "edit", "arguments": {"path": project.file, "old": old, "new": new}}

    def implements(*calls: dict[str, object]) -> list[object]:
        done = {"tool": "hand_in", "arguments": {"summary": "done"}}
        return [{"calls": list(calls)}, {"calls": [done]}, {"text": "done"}]

    def reviews(*findings: dict[str, str]) -> list[object]:
        report = {"tool": "report_findings", "arguments": {"findings": list(findings)}}
        return [{"calls": [shell("git log --oneline -3")]}, {"calls": [report]}]

    high = {"severity": "high", "file": project.file, "problem": "nothing says why"}
    return script(
        {
            "implement": implements(edit(project.broken, project.wrong)),
            "implement#2": implements(edit(project.wrong, project.right)),
            "implement#3": implements(write("WHY.md", "The last one counts too.\n")),
            "review": reviews(high),
            "review#2": reviews(),
        }
    )


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_wrong_fix_a_right_one_a_finding_and_its_repair(world: World, project: Project) -> None:
    (world.folder / "script.json").write_text(the_script(project))
    model = f"scripted:{world.folder}/script.json"
    flags = ("-r", "make the tests pass", "--implementer", model, "--reviewer", model)
    done = world.agl("run", "fix", "-n", "x", *flags, "--json", timeout_s=300)
    assert done.status == 0, done.err
    assert done.json["result"] == "landed"
    verdicts = [entry["value"] for entry in world.entries("x") if entry["kind"] == "verify"]
    assert [verdict["passed"] for verdict in verdicts] == [False, True, True]  # type: ignore[index]
    changed = world.git("diff", "--name-only", "main", "agl/x").splitlines()
    assert sorted(changed) == sorted(["WHY.md", project.file])
    assert project.right in world.git("show", f"agl/x:{project.file}") + "\n"
    assert world.git("status", "--porcelain", "--ignored") == ""
    assert world.git("log", "--format=%s", "main") == "as it came, and broken"
    assert world.survivors() == []
