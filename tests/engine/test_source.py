"""What counts as the source of a run, and what a change of it does."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agl.sdk import Workflow
from agl.sdk._engine.source import source_of
from agl.testing import Harness, harness

FLOW = """
from pathlib import Path
from agl.sdk import ModelId, Role, Run, Stop, prompt_file, workflow

def writer(name):
    text = prompt_file({prompt!r})
    return Role(name=name, instructions=text).on(ModelId("fake", "model"))

@workflow(version="1")
async def flow(run: Run[None]) -> None:
    for name in {names!r}:
        await run.step(writer(name), commit=name)
    raise Stop("not yet")
"""


class Author:
    """Writes a workflow's file and loads it as a new process would."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "flow_under_test.py"
        self.prompt = folder / "prompt.md"
        self.prompt.write_text("Write.")

    def edit(self, *names: str) -> Workflow[None]:
        self._file.write_text(FLOW.format(names=names, prompt=str(self.prompt)))
        return self.load()

    def load(self) -> Workflow[None]:
        spec = importlib.util.spec_from_file_location("flow_under_test", self._file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["flow_under_test"] = module
        spec.loader.exec_module(module)
        found: Workflow[None] = module.flow
        return found


@pytest.fixture
def author(tmp_path: Path) -> Iterator[Author]:
    yield Author(tmp_path)
    sys.modules.pop("flow_under_test", None)


@pytest.fixture
def project(tmp_path: Path) -> Harness:
    from agl.testing import Play

    return harness(tmp_path / "project", agent={name: Play(files={name: name}) for name in "abcd"})


def test_an_unchanged_source_stays_in_its_epoch(author: Author, project: Harness) -> None:
    project.run(author.edit("a", "b"))
    project.resume(author.edit("a", "b"))
    assert project.ran == []
    assert "source_changed" not in project.events


def test_a_changed_source_is_said_and_goes_on_where_it_still_fits(
    author: Author, project: Harness
) -> None:
    """G9: the first step is the same and starts at the same place, so it is taken over; what comes
    after the inserted step starts elsewhere, so it runs again."""
    project.run(author.edit("a", "b"))
    project.resume(author.edit("a", "c", "b"))
    assert "source_changed" in project.events
    assert project.ran == ["c#1", "b#1"]
    assert project.files() == {"a": "a", "b": "b", "c": "c"}


def test_a_source_that_returns_is_a_new_epoch(author: Author, project: Harness) -> None:
    project.run(author.edit("a", "b"))
    project.resume(author.edit("a", "c"))
    project.resume(author.edit("a", "b"))
    assert project.ran == []
    assert project.files() == {"a": "a", "b": "b"}
    assert {entry.epoch for entry in project.recorded()} == {1, 2, 3}


def test_a_changed_prompt_file_is_a_changed_source(author: Author, project: Harness) -> None:
    project.run(author.edit("a"))
    author.prompt.write_text("Write well.")
    project.resume(author.load())
    assert "source_changed" in project.events
    assert project.ran == ["a#1"]


def test_what_left_the_chain_is_kept(author: Author, project: Harness) -> None:
    project.run(author.edit("a", "b"))
    report = project.resume(author.edit("b"))
    assert project.files() == {"b": "b"}
    assert len(report.kept) == 1


def test_a_package_is_its_files_without_the_compiled_ones(tmp_path: Path) -> None:
    package = tmp_path / "packaged"
    (package / "__pycache__").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    sys.path.insert(0, str(tmp_path))
    try:
        importlib.import_module("packaged")
        first = source_of("packaged")
        (package / "__pycache__" / "x.cpython-311.pyc").write_text("x")
        (package / ".prompt.md.swp").write_text("x")
        assert source_of("packaged") == first
        (package / "prompt.md").write_text("x")
        assert source_of("packaged") != first
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("packaged", None)
