"""`agl run fix` on a real repository: the real Claude Code implements, the real Codex reviews, each
on a script of its own."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adapters.claude_code.test_workflows import DOCUMENTED, FILES, FINDING, RIGHT, WRONG, written
from adapters.codex import bench as codex
from e2e.world import World
from servers.model_server import ModelServer, Session

pytestmark = pytest.mark.vendor

RUN = (
    *("run", "fix", "-n", "x", "-r", "make add right"),
    *("--implementer", "claude_code:claude-sonnet-5", "--reviewer", "codex:gpt-5.5"),
)
DRAFTS = (WRONG, RIGHT, DOCUMENTED)
REVIEWS = ((FINDING,), ())
USE = {"input_tokens": 500, "output_tokens": 50, "cached_tokens": 100}


def reviewed(*found: Mapping[str, str]) -> list[dict[str, Any]]:
    """The turns of one step of the reviewer."""
    turns = [
        codex.call("shell", command="git diff HEAD~1"),
        codex.call("report_findings", findings=list(found)),
        {"text": "Done."},
    ]
    return [{**turn, "usage": USE} for turn in turns]


CONFIG = """model_provider = "mine"
[model_providers.mine]
name = "mine"
base_url = "{url}"
env_key = "MINE_API_KEY"
wire_api = "responses"
"""


@dataclass
class Shop:
    """A repository with a failing test, and what both vendors' models have yet to say."""

    world: World
    server: ModelServer

    def play(self) -> tuple[Session, Session]:
        """The turns of the steps that are not recorded; beyond them, the models say nothing."""
        done = [entry["name"] for entry in self.recorded()]
        drafts, reviews = DRAFTS[done.count("implement") :], REVIEWS[done.count("review") :]
        implementer, reviewer = (self.server.session(strict=False) for _ in range(2))
        implementer.add([turn for draft in drafts for turn in written(draft)])
        reviewer.add([turn for found in reviews for turn in reviewed(*found)])
        self.world.env["ANTHROPIC_BASE_URL"] = implementer.url
        file = Path(self.world.env["CODEX_HOME"], "config.toml")
        file.write_text(CONFIG.format(url=reviewer.v1))
        return implementer, reviewer

    def recorded(self) -> list[dict[str, Any]]:
        """The entries of the steps, in their order."""
        files = self.world.home.glob("projects/*/runs/x/steps/*/*.json")
        entries = [json.loads(file.read_text()) for file in files]
        return sorted(entries, key=lambda entry: int(entry["number"]))

    def attempts_at(self, entries: list[dict[str, Any]]) -> set[str]:
        """All attempts at the steps that these entries record."""
        counts: Counter[str] = Counter(entry["name"] for entry in entries)
        files = self.world.home.glob("projects/*/runs/x/spending/*.json")
        found = [json.loads(file.read_text()) for file in files]
        return {one["attempt"] for one in found if one["nth"] <= counts[one["step"]]}

    def is_right(self) -> None:
        assert self.world.git("show", "agl/x:calc.py") == DOCUMENTED.strip()
        assert [entry["name"] for entry in self.recorded()] == [
            *("implement", "implement", "review", "implement", "review")
        ]
        assert not self.world.survivors()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    pytest.importorskip("claude_agent_sdk", reason="needs claude-agent-sdk of agl[claude-code]")
    pytest.importorskip("codex_cli_bin", reason="needs openai-codex of agl[codex]")
    world = World(tmp_path)
    world.make_repository(FILES)
    done = world.agl("init", "--build", "python -m unittest -q")
    assert done.status == 0, done.err
    for folder in ("claude", "codex"):
        (tmp_path / folder).mkdir()
    world.env |= {
        "CLAUDE_CONFIG_DIR": str(tmp_path / "claude" / "config"),
        "CLAUDE_CODE_TMPDIR": str(tmp_path / "claude"),
        "ANTHROPIC_API_KEY": "sk-scripted",
        "CODEX_HOME": str(tmp_path / "codex"),
        "MINE_API_KEY": "sk-scripted",
    }
    with ModelServer() as server:
        yield Shop(world, server)
    world.kill_survivors()


def test_one_implements_and_the_other_reviews(shop: Shop) -> None:
    """A wrong fix, a red build, a right fix, a finding, a repair, and a green review."""
    implementer, reviewer = shop.play()
    done = shop.world.agl(*RUN)
    assert done.status == 0, done.err
    shop.is_right()
    assert (implementer.open_turns, reviewer.open_turns) == (0, 0)
    assert any("AssertionError" in request.text for request in implementer.asked)
    assert any("it has no docstring" in request.text for request in implementer.asked)
    shown: Any = shop.world.agl("show", "x", "--json").json
    steps = [line for line in shown["lines"] if line["kind"] == "step"]
    claude, codex_model = "claude_code:claude-sonnet-5", "codex:gpt-5.5"
    assert [step["model"] for step in steps] == [claude, claude, codex_model, claude, codex_model]
    for step in steps:
        tokens = dict(step["usage"])
        cost = tokens.pop("cost_usd")
        if step["model"] == claude:
            assert tokens == {"input_tokens": 5000, "output_tokens": 500, "cached_tokens": 2000}
            assert cost > 0
        else:
            assert tokens == {"input_tokens": 1500, "output_tokens": 150, "cached_tokens": 300}
            assert cost is None
    assert shown["spent"]["input_tokens"] == 3 * 5000 + 2 * 1500
    assert shown["spent"]["cost_usd"] is None
    programs = {attempt["program"].split()[0] for attempt in shown["attempts"]}
    assert programs == {"claude", "codex"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_killed_ten_times_it_repeats_nothing(shop: Shop, seed: int) -> None:
    chance = random.Random(seed)

    def words() -> tuple[str, ...]:
        is_begun = any(shop.world.home.glob("projects/*/runs/x/run.json"))
        return ("resume", "x") if is_begun else RUN

    for _ in range(10):
        shop.play()
        before = shop.recorded()
        tried = shop.attempts_at(before)
        running = shop.world.start(*words())
        time.sleep(chance.uniform(0.2, 4.0))
        running.kill()
        running.wait(30)
        assert shop.recorded()[: len(before)] == before
        assert shop.attempts_at(before) == tried, "a recorded step was tried again"
    shop.play()
    done = shop.world.agl(*words())
    assert done.status == 0, done.err
    shop.is_right()
