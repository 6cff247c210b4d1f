"""The table of docs/agents.md is what the agents say of themselves, and what they were run in."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from adapters.claude_code.bench import MODEL as CLAUDE
from adapters.claude_code.bench import Bench as ClaudeBench
from adapters.codex.bench import MODEL as CODEX
from adapters.codex.bench import Bench as CodexBench
from agl.adapters.scripted import ScriptedLLM
from agl.adapters.system import SystemClock, SystemProcesses
from agl.adapters.worktools import WorkTools
from agl.loop.runner import LoopRunner
from agl.ports.agents import AgentEvent, AgentRunner, Equipped
from agl.ports.models import Capability, ModelId, Restriction
from agl.testing.contracts.agent_runner import Desk
from servers.model_server import ModelServer
from test_readme import ROOT

pytestmark = [
    pytest.mark.vendor,
    pytest.mark.skipif(
        shutil.which("bwrap") is None or shutil.which("socat") is None,
        reason="needs bubblewrap and socat: apt-get install bubblewrap socat",
    ),
]
HEADS = ("", "AGL's own loop", "Claude Code", "Codex")
Make = Callable[[], tuple[AgentRunner, ModelId]]


async def sandbox_of(make: Make, tree: Path, *restrictions: Restriction) -> str:
    """What confined the shell of an agent that does nothing."""
    runner, model = make()
    events: list[AgentEvent] = []
    await runner.run(Desk().task(tree, model, *restrictions), events.append)
    return next(event.sandbox for event in events if isinstance(event, Equipped))


async def test_the_table_is_what_is_so(tmp_path: Path) -> None:
    pytest.importorskip("claude_agent_sdk", reason="needs claude-agent-sdk of agl[claude-code]")
    pytest.importorskip("codex_cli_bin", reason="needs openai-codex-cli-bin of agl[codex]")
    for name in ("claude", "codex", "tree"):
        (tmp_path / name).mkdir()
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"format": 1, "steps": {"work": [{"text": "done"}]}}))
    with ModelServer() as server:
        claude = ClaudeBench(server, tmp_path / "claude", tmp_path / "tree")
        codex = CodexBench(server, tmp_path / "codex", tmp_path / "tree")
        tools = WorkTools(SystemProcesses(), os.environ)
        agents: tuple[Make, ...] = (
            lambda: (
                LoopRunner(ScriptedLLM(SystemClock()), tools),
                ModelId("scripted", str(script)),
            ),
            lambda: (claude.runner(claude.script()), CLAUDE),
            lambda: (codex.runner(codex.script()), CODEX),
        )
        rows = [HEADS, ("---",) * len(HEADS)]
        for capability in Capability:
            able = [
                capability in runner.capabilities(model) for runner, model in (a() for a in agents)
            ]
            rows.append((f"`{capability.value}`", *("yes" if one else "no" for one in able)))
        for restriction in (None, *(one for one in Restriction if one.value != "no_shell")):
            asked = () if restriction is None else (restriction,)
            name = "no restriction" if restriction is None else f"`{restriction.value}`"
            found = [await sandbox_of(make, tmp_path / "tree", *asked) for make in agents]
            rows.append((name, *(one or "none" for one in found)))
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    assert table in (ROOT / "docs" / "agents.md").read_text(), f"what is so:\n{table}"
