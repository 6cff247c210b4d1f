"""`agl run fix` on a real repository, Codex at work on a script."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from adapters.codex.bench import SERVED, spoken
from e2e.world import World
from servers.model_server import ModelServer, Session

pytestmark = pytest.mark.vendor

FILES = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "test_calc.py": (
        "import unittest\nfrom calc import add\n\n\nclass T(unittest.TestCase):\n"
        "    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n"
    ),
    ".gitignore": "__pycache__\nsteps\n",
}
BROKEN, WRONG, RIGHT = "    return a - b", "    return a * b", "    return a + b"
DOCUMENTED = f'    """The sum."""\n+{RIGHT}'
FINDING = {"severity": "high", "file": "calc.py", "problem": "it has no docstring"}
USE = {"input_tokens": 1000, "output_tokens": 100, "cached_tokens": 400}
WRITER, REVIEWER = "codex:gpt-5.5", "codex:gpt-5.5-review"
RUN = (
    *("run", "fix", "-n", "x", "-r", "make add right"),
    *("--implementer", WRITER, "--reviewer", REVIEWER),
)


def call(tool: str, **arguments: object) -> dict[str, Any]:
    return {**spoken({"calls": [{"tool": tool, "arguments": arguments}]}), "usage": USE}


def handed(tool: str, **arguments: object) -> dict[str, Any]:
    return {"calls": [{"tool": tool, "arguments": arguments, "more": SERVED}], "usage": USE}


def written(old: str, new: str) -> list[dict[str, Any]]:
    """The turns of one step of the implementer."""
    return [
        call("edit", path="calc.py", old=old, new=new),
        call("shell", command="cat calc.py; echo step >> steps"),
        handed("hand_in", summary="done"),
        {"text": "Done.", "usage": USE},
    ]


def reviewed(*found: Mapping[str, str]) -> list[dict[str, Any]]:
    findings = handed("report_findings", findings=list(found))
    return [call("shell", command="git diff HEAD~1"), findings, {"text": "Done.", "usage": USE}]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[World]:
    for package in ("codex_cli_bin", "mcp"):
        pytest.importorskip(package, reason="needs openai-codex-cli-bin and mcp of agl[codex]")
    world = World(tmp_path)
    world.make_repository(FILES)
    done = world.agl("init", "--build", "python -m unittest -q")
    assert done.status == 0, done.err
    folder = tmp_path / "codex"
    folder.mkdir()
    world.env |= {"CODEX_HOME": str(folder), "OPENAI_API_KEY": "sk-scripted"}
    yield world
    world.kill_survivors()


def played(
    server: ModelServer,
    world: World,
    writer: list[dict[str, Any]],
    reviewer: list[dict[str, Any]],
    *,
    strict: bool = True,
) -> Session:
    session = server.session(strict=strict)
    session.add(writer, where="`hand_in`")
    session.add(reviewer, where="`report_findings`")
    home = Path(world.env["CODEX_HOME"])
    (home / "config.toml").write_text(f'openai_base_url = "{session.v1}"\n')
    return session


def test_it_repairs_until_it_is_right(shop: World, server: ModelServer) -> None:
    """A wrong fix, a red build, a right fix, a finding, a repair, and a green review."""
    writer = [*written(BROKEN, WRONG), *written(WRONG, RIGHT), *written(RIGHT, DOCUMENTED)]
    session = played(server, shop, writer, [*reviewed(FINDING), *reviewed()])
    done = shop.agl(*RUN)
    assert done.status == 0, done.err
    assert '"""The sum."""' in shop.git("show", "agl/x:calc.py")
    assert session.open_turns == 0
    assert any("AssertionError" in request.text for request in session.asked)
    assert any("it has no docstring" in request.text for request in session.asked)
    shown = shop.agl("show", "x", "--json").json
    lines = [line for line in shown["lines"] if line["kind"] == "step"]  # type: ignore[attr-defined]
    assert [line["model"] for line in lines] == [WRITER, WRITER, REVIEWER, WRITER, REVIEWER]
    for line in lines:
        turns = 4 if line["model"] == WRITER else 3
        usage = dict(line["usage"])
        assert usage.pop("cost_usd") is None
        assert usage == {name: turns * number for name, number in USE.items()}
    assert not shop.survivors()


def test_one_that_lies_is_not_believed(shop: World, server: ModelServer) -> None:
    """It says that it is done and that the tests pass; nothing is written."""
    lie = [handed("hand_in", summary="all tests pass"), {"text": "All tests pass."}]
    played(server, shop, lie * 9, reviewed() * 9, strict=False)
    done = shop.agl(*RUN)
    assert done.status == 7, done.err
    assert shop.git("rev-parse", "agl/x") == shop.git("rev-parse", "main")


def test_what_is_missing_is_said_before_anything_is_made(shop: World) -> None:
    del shop.env["OPENAI_API_KEY"]
    refused = shop.agl(*RUN)
    assert refused.status == 5
    first, second = refused.err.strip().splitlines()
    assert "--implementer" in first
    assert "codex login" in first
    assert "--reviewer" in second
    assert shop.agl("list", "--json").json["runs"] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", [n / 10 for n in range(1, 11)])
def test_killed_at_any_moment_it_goes_on(shop: World, server: ModelServer, part: float) -> None:
    """What was recorded is not paid for again, and nobody is left."""
    played(server, shop, written(BROKEN, RIGHT), reviewed(), strict=False)
    running = shop.start(*RUN)
    time.sleep(part * 3.5)
    running.kill()
    running.wait(30)
    is_begun = bool(shop.agl("list", "--json").json["runs"])
    is_written = any(shop.home.glob("projects/*/runs/x/steps/implement/*.json"))
    session = played(server, shop, written(BROKEN, RIGHT), reviewed(), strict=False)
    done = shop.agl("resume", "x") if is_begun else shop.agl(*RUN)
    assert done.status == 0, done.err
    assert RIGHT in shop.git("show", "agl/x:calc.py")
    again = [request for request in session.asked if "`hand_in`" in request.text]
    assert bool(again) != is_written
    assert not shop.survivors()
