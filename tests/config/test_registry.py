import os
import py_compile
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agl.config.registry import load
from agl.ports.errors import InputError, NotFoundError, WorkflowFailed

FLOW = """
from agl.sdk import Run, workflow

@workflow(version="1")
async def {name}(run: Run[None]) -> None:
    "Does it."
"""


@pytest.fixture(autouse=True)
def _modules() -> Iterator[None]:
    modules, path = set(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if not name.startswith(("agl.", "pydantic")):
            del sys.modules[name]


def write(file: Path, *names: str, before: str = "") -> Path:
    file.write_text(before + "".join(FLOW.format(name=name) for name in names))
    return file


def test_a_file_with_one_workflow_is_loaded_and_recorded_absolutely(tmp_path: Path) -> None:
    file = write(tmp_path / "flow_one.py", "fix")
    name, workflow = load(str(file))
    assert name == f"{file}:fix"
    assert (workflow.version, workflow.help) == ("1", "Does it.")
    assert load(name) == (name, workflow)


def test_a_file_with_several_workflows_asks_which(tmp_path: Path) -> None:
    file = write(tmp_path / "flow_two.py", "fix", "split")
    with pytest.raises(InputError, match=r"flow_two\.py:fix, .*flow_two\.py:split"):
        load(str(file))
    assert load(f"{file}:split")[0] == f"{file}:split"


def test_a_file_imports_its_siblings(tmp_path: Path) -> None:
    (tmp_path / "sibling_of_three.py").write_text("x = 1\n")
    file = write(tmp_path / "flow_three.py", "fix", before="from sibling_of_three import x\n")
    assert load(str(file))[1].version == "1"


def test_a_file_is_what_it_is_now_whatever_python_kept_of_it(tmp_path: Path) -> None:
    file = write(tmp_path / "flow_kept.py", "fix")
    py_compile.compile(str(file), doraise=True)
    was = file.stat()
    file.write_text(file.read_text().replace('version="1"', 'version="2"'))
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert load(str(file))[1].version == "2"


def test_a_workflow_that_was_imported_is_not_the_files_own(tmp_path: Path) -> None:
    write(tmp_path / "flow_four.py", "inner")
    file = write(tmp_path / "flow_five.py", "outer", before="from flow_four import inner\n")
    assert load(str(file))[0].endswith(":outer")


def test_a_missing_file_is_not_found_and_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"gone\.py.*moved or removed"):
        load(str(tmp_path / "gone.py:fix"))


def test_a_missing_name_in_a_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no workflow 'other'; it holds fix"):
        load(f"{write(tmp_path / 'flow_six.py', 'fix')}:other")


def test_a_file_without_a_workflow_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no @workflow"):
        load(str(write(tmp_path / "flow_seven.py")))


@pytest.mark.parametrize("name", ["json", "turtle"])
def test_a_file_named_like_another_module_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="rename the file"):
        load(str(write(tmp_path / f"{name}.py", "fix")))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("raise ValueError('mine')", "ValueError: mine"),
        ("def (", "SyntaxError"),
        ("import not_there_at_all", "not_there_at_all"),
        ("raise SystemExit(0)", "SystemExit"),
    ],
)
def test_what_the_authors_module_raises_is_the_workflows_failure(
    tmp_path: Path, line: str, said: str
) -> None:
    file = write(tmp_path / "flow_bad.py", "fix", before=line + "\n")
    with pytest.raises(WorkflowFailed, match=said) as raised:
        load(str(file))
    assert str(file) in str(raised.value)
    assert "flow_bad" not in sys.modules


def test_a_wrong_use_of_the_sdk_names_the_file(tmp_path: Path) -> None:
    file = write(tmp_path / "flow_misuse.py", before="from agl.sdk import arg\narg('x')\n")
    with pytest.raises(InputError, match=r"flow_misuse\.py.*dash"):
        load(str(file))


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(NotFoundError, match=r"no workflow 'nope'; known are .*\./flow\.py"):
        load("nope")


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    info = tmp_path / "flows-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: flows\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[agl.workflows]\ngood = flows_installed:fix\ngone = flows_gone.inner:fix\n"
        "wrong = flows_installed:helper\nbroken = flows_broken:fix\n"
    )
    write(tmp_path / "flows_installed.py", "fix", before="helper = 1\n")
    (tmp_path / "flows_broken.py").write_text("import flows_gone\n")
    sys.path.insert(0, str(tmp_path))
    return tmp_path


@pytest.mark.usefixtures("installed")
def test_an_installed_workflow_is_loaded_by_its_name() -> None:
    name, workflow = load("good")
    assert (name, workflow.module) == ("good", "flows_installed")


@pytest.mark.usefixtures("installed")
def test_an_installed_workflow_whose_module_is_gone_is_not_found() -> None:
    with pytest.raises(NotFoundError, match=r"'gone'.*'flows_gone\.inner'.*reinstall"):
        load("gone")


@pytest.mark.usefixtures("installed")
def test_an_entry_point_to_something_else_is_refused() -> None:
    with pytest.raises(InputError, match=r"'helper'.*is not a @workflow"):
        load("wrong")


@pytest.mark.usefixtures("installed")
def test_a_missing_import_of_the_authors_is_the_workflows_failure() -> None:
    with pytest.raises(WorkflowFailed, match="No module named 'flows_gone'"):
        load("broken")
