from pathlib import Path

import pytest

from agl.adapters.memory.agent import MemoryAgent
from agl.adapters.routing import RoutingRunner
from agl.ports.agents import AgentRunner
from agl.ports.errors import InputError
from agl.ports.models import ModelId
from agl.testing.contracts.agent_runner import Desk

SCRIPTED = ModelId.parse("scripted:/x.json")


async def test_a_backend_is_built_once_and_only_when_it_is_needed(tmp_path: Path) -> None:
    built: list[str] = []

    def backend(name: str) -> AgentRunner:
        built.append(name)
        return MemoryAgent()

    runner = RoutingRunner({"scripted": lambda: backend("s"), "other": lambda: backend("o")})
    assert built == []
    await runner.check_ready(SCRIPTED)
    assert runner.capabilities(SCRIPTED)
    assert runner.files(SCRIPTED) == ()
    outcome = await runner.run(Desk().task(tmp_path, SCRIPTED), lambda event: None)
    assert (built, outcome.text) == (["s"], "done")


async def test_an_unknown_provider_is_named_with_what_to_pass() -> None:
    runner = RoutingRunner({"scripted": MemoryAgent})
    expected = "no backend for model 'claude_code:opus' in this version; pass one of scripted:PATH"
    with pytest.raises(InputError) as refused:
        runner.capabilities(ModelId("claude_code", "opus"))
    assert str(refused.value) == expected
    with pytest.raises(InputError):
        await runner.check_ready(ModelId("claude_code", "opus"))
