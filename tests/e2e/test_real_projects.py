"""`fix` on projects that nobody here wrote, gated by their own tests. pip and npm fetch them."""

from __future__ import annotations

import shutil
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
    """A project by pip or npm, how it is checked (`{tools}`: where its test tool is), and one line
    of it, right, broken and wrong."""

    by: str
    name: str
    version: str
    build: str
    file: str
    right: str
    broken: str
    wrong: str


PROJECTS = [
    Project(
        "pip",
        "iniconfig",
        "2.3.1",
        f"PYTHONPATH=src {PYTEST} testing",
        "src/iniconfig/__init__.py",
        "None if lineno is None else lineno + 1",
        "None if lineno is None else lineno",
        "None if lineno is None else lineno + 2",
    ),
    Project(
        "pip",
        "toolz",
        "1.0.0",
        f"{PYTEST} toolz/tests/test_itertoolz.py",
        "toolz/itertoolz.py",
        "return itertools.islice(seq, n)\n",
        "return itertools.islice(seq, n - 1)\n",
        "return itertools.islice(seq, n + 1)\n",
    ),
    Project(
        "npm",
        "minimist",
        "1.2.8",
        "NODE_PATH={tools}/node_modules {tools}/node_modules/.bin/tape 'test/*.js'",
        "index.js",
        "var value = !flags.strings[key] && isNumber(val)\n",
        "var value = flags.strings[key] && isNumber(val)\n",
        "var value = !flags.strings[key] && !isNumber(val)\n",
    ),
]


def fetched(project: Project, folder: Path) -> Path:
    """The project's files as they were published, and its test tool if it needs one."""
    wanted = {
        "pip": f"{project.name}=={project.version}",
        "npm": f"{project.name}@{project.version}",
    }
    if project.by == "pip":
        get = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
        subprocess.run([*get, "-d", str(folder), wanted["pip"]], check=True, timeout=240)
    else:
        tool = ["npm", "install", "-q", "--no-audit", "--no-fund", "--prefix", f"{folder}/tools"]
        subprocess.run([*tool, "tape@5.7.5"], check=True, timeout=240)
        subprocess.run(["npm", "pack", "-q", wanted["npm"]], cwd=folder, check=True, timeout=240)
    with tarfile.open(next(folder.glob("*.t*gz"))) as archive:
        archive.extractall(folder, filter="data")
    return folder / ("package" if project.by == "npm" else f"{project.name}-{project.version}")


@pytest.fixture(params=PROJECTS, ids=lambda project: project.name)
def project(request: pytest.FixtureRequest) -> Project:
    found: Project = request.param
    if found.by == "npm" and shutil.which("npm") is None:
        pytest.skip("npm is not on this machine")
    return found


@pytest.fixture
def world(tmp_path: Path, project: Project) -> World:
    """The project with one line broken, committed as it came."""
    world = World(tmp_path)
    fetched(project, tmp_path).rename(world.repo)
    file = world.repo / project.file
    text = file.read_text()
    assert text.count(project.right) == 1
    file.write_text(text.replace(project.right, project.broken))
    world.git("init", "-q", "-b", "main")
    # A distribution holds generated files that its own .gitignore names.
    world.git("add", "-A", "-f")
    world.git("commit", "-q", "-m", "as it came, and broken")
    build = project.build.replace("{tools}", f"{tmp_path}/tools")
    assert world.agl("init", "--build", build).status == 0
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


@pytest.mark.network
@pytest.mark.long
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
