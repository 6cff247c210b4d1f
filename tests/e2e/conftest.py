"""A registered repository with a run that works once, for the scenarios."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e.world import Ended, World, script, write

FLOW = Path(__file__).parent / "flow_of_one.py"


@pytest.fixture
def bare_world(tmp_path: Path) -> Iterator[World]:
    """A machine with nothing on it but a home."""
    world = World(tmp_path)
    yield world
    world.kill_survivors()


@pytest.fixture
def world(bare_world: World) -> World:
    """A registered repository with one file and no build."""
    bare_world.make_repository({"calc.py": "1\n"})
    done = bare_world.agl("init", "--no-build")
    assert done.status == 0, done.err
    return bare_world


Play = Callable[..., Ended]


@pytest.fixture
def play(world: World) -> Play:
    """Runs the one-step workflow, its step making these calls."""

    def go(*calls: object, more: tuple[str, ...] = (), label: str = "x", **how: object) -> Ended:
        return world.agl(*prepared(world, *calls, label=label), *more, **how)  # type: ignore[arg-type]

    return go


def prepared(world: World, *calls: object, label: str = "x") -> tuple[str, ...]:
    """The command line of a run whose step makes these calls."""
    file = world.folder / "script.json"
    made = calls or (write("a.txt", "a\n"),)
    file.write_text(script({"work": [{"calls": list(made)}, {"text": "done"}]}))
    return ("run", str(FLOW), "-n", label, "--script", f"scripted:{file}")
