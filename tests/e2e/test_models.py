"""`agl run fix` with models behind HTTP, against a server on loopback."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from e2e.world import World, shell, wait_for, write
from servers.model_server import ModelServer, Session

FILES = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "test_calc.py": (
        "import unittest\nfrom calc import add\n\n\nclass T(unittest.TestCase):\n"
        "    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n"
    ),
}
RIGHT = "def add(a, b):\n    return a + b\n"
DONE = {"tool": "hand_in", "arguments": {"summary": "done"}}
FINDING = {"severity": "high", "file": "calc.py", "problem": "it has no docstring"}
WRITER_USAGE = {"input_tokens": 1000, "output_tokens": 100, "cached_tokens": 400, "cost_usd": 0.01}


def findings(*found: Mapping[str, str]) -> dict[str, Any]:
    return {"tool": "report_findings", "arguments": {"findings": list(found)}}


def written(content: str) -> list[dict[str, Any]]:
    """The turns of one step of the implementer."""
    return [
        {
            "thinking": "hm",
            "text": "I see.",
            "calls": [{"tool": "read", "arguments": {"path": "calc.py"}}],
        },
        {"calls": [write("calc.py", content), shell("echo step >> $COUNTER")]},
        {"calls": [DONE], "usage": WRITER_USAGE},
        {"text": "Done."},
    ]


def reviewed(*found: Mapping[str, str]) -> list[dict[str, Any]]:
    usage = {"input_tokens": 500, "output_tokens": 50}
    return [
        {"thinking": {"text": "hm", "signature": "s"}, "calls": [findings(*found)], "usage": usage},
        {"text": "Done."},
    ]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def shop(bare_world: World) -> World:
    bare_world.make_repository(FILES)
    done = bare_world.agl("init", "--build", "python -m unittest -q")
    assert done.status == 0, done.err
    return bare_world


def reach(world: World, writer: Session, reviewer: Session) -> None:
    """The person's settings."""
    (world.home / "config.toml").write_text(
        f'[models.openai_compatible]\nbase_url = "{writer.v1}"\napi_key_env = "WRITER_KEY"\n'
        f'[models.anthropic]\nbase_url = "{reviewer.url}"\napi_key_command = "echo reviewers-key"\n'
    )
    world.env["WRITER_KEY"] = "writers-key"


RUN = (
    *("run", "fix", "-n", "x", "-r", "make add right"),
    *("--implementer", "openai_compatible:qwen", "--reviewer", "anthropic:claude-x"),
)


def test_two_vendors_repair_until_it_is_right(shop: World, server: ModelServer) -> None:
    """A wrong fix, a red build, a wall, a right fix, a finding, a repair, and a green review."""
    documented = RIGHT.replace("):\n", '):\n    """a + b"""\n')
    first, second = written(RIGHT[:-6] + "a * b\n"), written(RIGHT)
    second.insert(1, {"error": {"kind": "rate_limited", "retry_after_s": 0}})
    writer = server.session(
        [*first, *second, *written(documented)],
        key="writers-key",
        models=["qwen"],
        quirks=["no_index", "whole_calls", "no_space", "comments"],
    )
    reviewer = server.session(
        [*reviewed(FINDING), *reviewed()], key="reviewers-key", models=["claude-x"]
    )
    reach(shop, writer, reviewer)
    done = shop.agl(*RUN)
    assert done.status == 0, done.err
    assert "WRITER_KEY" not in done.err
    assert shop.git("show", "agl/x:calc.py") == documented.strip()
    assert shop.counted() == ["step"] * 3
    assert "AssertionError" in writer.asked[4].text
    assert "it has no docstring" in writer.asked[9].text
    tools = {tool["name"] for tool in reviewer.asked[0].body["tools"]}
    assert "report_findings" in tools
    assert "write" not in tools
    shown = shop.agl("show", "x", "--json").json
    assert isinstance(shown["lines"], list)
    spent = [line["usage"] for line in shown["lines"] if line["kind"] == "step"]
    tokens = {"input_tokens": 500, "output_tokens": 50, "cached_tokens": 0, "cost_usd": None}
    assert spent == [WRITER_USAGE, WRITER_USAGE, tokens, WRITER_USAGE, tokens]
    again = shop.agl("resume", "x")
    assert again.status == 0, again.err
    assert (writer.open_turns, reviewer.open_turns) == (0, 0)


def test_a_killed_run_pays_for_nothing_twice(shop: World, server: ModelServer) -> None:
    writer = server.session(written(RIGHT))
    reviewer = server.session([{"error": {"kind": "silent"}}, *reviewed()])
    reach(shop, writer, reviewer)
    running = shop.start(*RUN)
    wait_for(lambda: reviewer.asked)
    running.kill()
    running.wait(30)
    done = shop.agl("resume", "x")
    assert done.status == 0, done.err
    assert shop.counted() == ["step"]
    assert not shop.survivors()


def test_all_that_is_missing_is_said_before_anything_is_made(
    shop: World, server: ModelServer
) -> None:
    writer = server.session(models=[{"id": "gemma", "owned_by": "vllm"}])
    reviewer = server.session(key="another-key")
    reach(shop, writer, reviewer)
    refused = shop.agl(*RUN)
    assert refused.status == 3
    first, second = refused.err.strip().splitlines()
    assert "--implementer" in first
    assert "no model 'qwen'; it has 'gemma'" in first
    assert "--reviewer" in second
    assert "check the key" in second
    assert shop.agl("list", "--json").json["runs"] == []


def test_an_agents_shell_sees_no_key(shop: World, server: ModelServer) -> None:
    turns: list[dict[str, Any]] = [
        {"calls": [write("calc.py", RIGHT), shell("env > $COUNTER")]},
        {"calls": [DONE]},
        {"text": "Done."},
    ]
    reach(shop, server.session(turns), server.session(reviewed()))
    done = shop.agl(*RUN, more={"OPENAI_API_KEY": "a-secret", "ANTHROPIC_API_KEY": "a-secret"})
    assert done.status == 0, done.err
    seen = shop.counter.read_text()
    assert "PATH=" in seen
    assert "a-secret" not in seen
    assert "writers-key" not in seen
