"""`agl run fix` and `agl run split` on a real repository, Claude Code at work on a script."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from e2e.world import World
from servers.model_server import ModelServer, Session

pytestmark = pytest.mark.vendor

FILES = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "test_calc.py": (
        "import unittest\nfrom calc import add\n\n\nclass T(unittest.TestCase):\n"
        "    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n"
    ),
    ".gitignore": "__pycache__\n",
}
WRONG = "def add(a, b):\n    return a * b\n"
RIGHT = "def add(a, b):\n    return a + b\n"
DOCUMENTED = 'def add(a, b):\n    """a + b"""\n    return a + b\n'
FINDING = {"severity": "high", "file": "calc.py", "problem": "it has no docstring"}
USE = {"input_tokens": 1000, "output_tokens": 100, "cached_tokens": 400}
RUN = (
    *("run", "fix", "-n", "x", "-r", "make add right"),
    *("--implementer", "claude_code:claude-sonnet-5"),
    *("--reviewer", "claude_code:claude-opus-5"),
)


def call(tool: str, **arguments: object) -> dict[str, Any]:
    return {"calls": [{"tool": tool, "arguments": arguments}], "usage": USE}


def written(content: str) -> list[dict[str, Any]]:
    """The turns of one step of the implementer."""
    return [
        call("Read", file_path="calc.py"),
        call("Write", file_path="calc.py", content=content),
        call("Bash", command="echo step >> $COUNTER"),
        call("mcp__agl__hand_in", summary="done"),
        {"text": "Done.", "usage": USE},
    ]


def reviewed(*found: Mapping[str, str]) -> list[dict[str, Any]]:
    findings = call("mcp__agl__report_findings", findings=list(found))
    return [call("Bash", command="git diff HEAD~1"), findings, {"text": "Done.", "usage": USE}]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[World]:
    pytest.importorskip("claude_agent_sdk", reason="needs claude-agent-sdk of agl[claude-code]")
    world = World(tmp_path)
    world.make_repository(FILES)
    done = world.agl("init", "--build", "python -m unittest -q")
    assert done.status == 0, done.err
    folder = tmp_path / "claude"
    folder.mkdir()
    world.env |= {
        "CLAUDE_CONFIG_DIR": str(folder / "config"),
        "CLAUDE_CODE_TMPDIR": str(folder),
        "ANTHROPIC_API_KEY": "sk-scripted",
    }
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
    session.add(writer, where="mcp__agl__hand_in")
    session.add(reviewer, where="mcp__agl__report_findings")
    world.env["ANTHROPIC_BASE_URL"] = session.url
    return session


def test_it_repairs_until_it_is_right(shop: World, server: ModelServer) -> None:
    """A wrong fix, a red build, a right fix, a finding, a repair, and a green review."""
    writer = [*written(WRONG), *written(RIGHT), *written(DOCUMENTED)]
    session = played(server, shop, writer, [*reviewed(FINDING), *reviewed()])
    done = shop.agl(*RUN)
    assert done.status == 0, done.err
    assert shop.git("show", "agl/x:calc.py") == DOCUMENTED.strip()
    assert shop.counted() == ["step"] * 3
    assert session.open_turns == 0
    assert any("AssertionError" in request.text for request in session.asked)
    assert any("it has no docstring" in request.text for request in session.asked)
    shown = shop.agl("show", "x", "--json").json
    lines = [line for line in shown["lines"] if line["kind"] == "step"]  # type: ignore[attr-defined]
    sonnet, opus = "claude_code:claude-sonnet-5", "claude_code:claude-opus-5"
    assert [line["model"] for line in lines] == [sonnet, sonnet, opus, sonnet, opus]
    for line in lines:
        turns = 5 if line["model"] == sonnet else 3
        usage = dict(line["usage"])
        assert usage.pop("cost_usd") > 0
        assert usage == {name: turns * number for name, number in USE.items()}


def test_one_that_lies_is_not_believed(shop: World, server: ModelServer) -> None:
    """It says that it is done and that the tests pass; nothing is written."""
    lie = [call("mcp__agl__hand_in", summary="all tests pass"), {"text": "All tests pass."}]
    played(server, shop, lie * 9, reviewed() * 9, strict=False)
    done = shop.agl(*RUN)
    assert done.status == 7, done.err
    assert shop.git("rev-parse", "agl/x") == shop.git("rev-parse", "main")


def test_what_is_missing_is_said_before_anything_is_made(shop: World) -> None:
    del shop.env["ANTHROPIC_API_KEY"]
    refused = shop.agl(*RUN)
    assert refused.status == 5
    first, second = refused.err.strip().splitlines()
    assert "--implementer" in first
    assert "claude auth login" in first
    assert "--reviewer" in second
    assert shop.agl("list", "--json").json["runs"] == []


def test_three_chunks_are_worked_on_side_by_side(shop: World, server: ModelServer) -> None:
    chunks = [{"id": n, "title": f"Do {n}", "task": f"Write chunk_{n}."} for n in "abc"]
    session = server.session(strict=True)
    for name in "abc":
        turns = [
            call("Write", file_path=f"chunk_{name}.txt", content=f"{name}\n"),
            call("Bash", command=f"sleep 0.5; echo {name} >> $COUNTER"),
            call("mcp__agl__hand_in", summary="done"),
            {"text": "Done.", "usage": USE},
        ]
        session.add(turns, where=f"Write chunk_{name}.")
    plan = [call("mcp__agl__hand_in", chunks=chunks), {"text": "Done.", "usage": USE}]
    session.add(plan, where="Hands in the plan")
    shop.env["ANTHROPIC_BASE_URL"] = session.url
    shop.agl("init", "--build", "true")
    model = "claude_code:claude-sonnet-5"
    done = shop.agl(
        *("run", "split", "-n", "x", "-r", "write three", "--planner", model),
        *("--implementer", model, "--on-conflict", "stop"),
    )
    assert done.status == 0, done.err
    assert sorted(shop.counted()) == ["a", "b", "c"]
    for name in "abc":
        assert shop.git("show", f"agl/x:chunk_{name}.txt") == name
    assert session.open_turns == 0
    assert not shop.survivors()


@pytest.mark.slow
@pytest.mark.parametrize("part", [n / 10 for n in range(1, 11)])
def test_killed_at_any_moment_it_goes_on(shop: World, server: ModelServer, part: float) -> None:
    """What was recorded is not paid for again, and nobody is left."""
    played(server, shop, written(RIGHT), reviewed(), strict=False)
    running = shop.start(*RUN)
    time.sleep(part * 2.4)
    running.kill()
    running.wait(30)
    is_begun = bool(shop.agl("list", "--json").json["runs"])
    is_written = any(shop.home.glob("projects/*/runs/x/steps/implement/*.json"))
    session = played(server, shop, written(RIGHT), reviewed(), strict=False)
    done = shop.agl("resume", "x") if is_begun else shop.agl(*RUN)
    assert done.status == 0, done.err
    assert shop.git("show", "agl/x:calc.py") == RIGHT.strip()
    again = [request for request in session.asked if "mcp__agl__hand_in" in request.text]
    assert bool(again) != is_written
    assert not shop.survivors()
