"""The promises of every agent runner, kept by the real program."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from adapters.claude_code.bench import MODEL, Bench, spoken
from agl.ports.agents import AgentRunner
from agl.ports.errors import (
    AglError,
    AuthenticationFailed,
    ContextTooLong,
    Overloaded,
    RateLimited,
    StreamDropped,
)
from agl.ports.models import ModelId
from agl.testing.contracts.agent_runner import (
    AgentAtWorkContract,
    Desk,
    RunnerOf,
    ScriptTurn,
)

pytestmark = pytest.mark.vendor


class TestClaudeCode(AgentAtWorkContract):
    @pytest.fixture
    def runner_of(self, bench: Bench) -> RunnerOf:
        def runner_of(turns: Sequence[ScriptTurn]) -> tuple[AgentRunner, ModelId]:
            return bench.runner(bench.script(*map(spoken, turns))), MODEL

        return runner_of

    @pytest.fixture
    def tree(self, bench: Bench) -> Path:
        return bench.tree

    async def test_usage_adds_up(self, runner_of: RunnerOf, tree: Path, desk: Desk) -> None:
        """The program has prices of its own: test_usage.py."""

    @pytest.mark.parametrize(
        ("kind", "error"),
        [
            ("overloaded", Overloaded),
            ("rate_limited", RateLimited),
            ("dropped", StreamDropped),
            ("auth", AuthenticationFailed),
            ("too_long", ContextTooLong),
        ],
    )
    async def test_a_failure_has_its_own_error(
        self, runner_of: RunnerOf, tree: Path, desk: Desk, kind: str, error: type[AglError]
    ) -> None:
        """To the time that a server names, the program adds up to a quarter of it."""
        runner, model = runner_of([{"error": {"kind": kind, "retry_after_s": 3}}])
        with pytest.raises(error) as raised:
            await runner.run(desk.task(tree, model), lambda event: None)
        if isinstance(raised.value, Overloaded | RateLimited):
            assert 3 <= (raised.value.retry_after_s or 0) <= 4
