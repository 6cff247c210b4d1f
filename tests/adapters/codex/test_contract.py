"""The promises of every agent runner, kept by the real program."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from adapters.codex.bench import MODEL, Bench, spoken
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
from agl.testing.contracts.agent_runner import AgentAtWorkContract, Desk, RunnerOf, ScriptTurn

pytestmark = pytest.mark.vendor


class TestCodex(AgentAtWorkContract):
    tells_prices: ClassVar[bool] = False

    @pytest.fixture
    def runner_of(self, bench: Bench, request: pytest.FixtureRequest) -> RunnerOf:
        is_open = "cancelled" in request.node.name
        sandbox = "off" if is_open else "auto"

        def runner_of(turns: Sequence[ScriptTurn]) -> tuple[AgentRunner, ModelId]:
            return bench.runner(bench.script(*map(spoken, turns)), sandbox=sandbox), MODEL

        return runner_of

    @pytest.fixture
    def tree(self, bench: Bench) -> Path:
        return bench.tree

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
        """The time that a server names is not told by the program."""
        runner, model = runner_of([{"error": {"kind": kind, "retry_after_s": 3}}])
        with pytest.raises(error):
            await runner.run(desk.task(tree, model), lambda event: None)

    @pytest.mark.parametrize("times", [1, 3])
    async def test_a_cancelled_agent_leaves_nobody(
        self, runner_of: RunnerOf, tree: Path, desk: Desk, times: int
    ) -> None:
        """Outside of the sandbox, in which a process has another number: test_ending.py."""
        await super().test_a_cancelled_agent_leaves_nobody(runner_of, tree, desk, times)
