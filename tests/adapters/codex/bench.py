"""A runner of the real program on a script, and what came of a task."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agl.adapters.system import SystemClock, SystemProcesses
from agl.ports.agents import Acted, AgentEvent, AgentOutcome, AgentRunner, AgentTask, Said, Spent
from agl.ports.models import ModelId, Restriction, Usage
from agl.ports.processes import Processes
from agl.testing.contracts.agent_runner import FOREIGN_GIT, Desk
from servers.model_server import ModelServer, Session

MODEL = ModelId("codex", "gpt-5.5")
"""It has plain tools; newer ones call them from JavaScript."""

SERVED = {"namespace": "mcp__agl"}
"""Of a call of one of the task's own tools."""


def spoken(turn: Mapping[str, Any]) -> dict[str, Any]:
    """A turn of the common scripts, with the names that Codex's own tools have."""
    made = dict(turn)
    made["calls"] = [_call(call) for call in turn.get("calls", ())]
    return made


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    given = call.get("arguments", {})
    match call["tool"]:
        case "write":
            return patch(f"*** Add File: {given['path']}", *(f"+{line}" for line in _lines(given)))
        case "edit":
            return patch(
                f"*** Update File: {given['path']}", "@@", f"-{given['old']}", f"+{given['new']}"
            )
        case "shell":
            return {"tool": "exec_command", "arguments": {"cmd": given["command"]}}
        case "report_findings":
            return {**call, "more": SERVED}
    return dict(call)


def _lines(given: Mapping[str, Any]) -> list[str]:
    return str(given["content"]).splitlines()


def patch(*lines: str) -> dict[str, Any]:
    """A call of the tool that changes files."""
    text = "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])
    return {"tool": "apply_patch", "input": text}


def call(tool: str, **arguments: object) -> dict[str, Any]:
    return spoken({"calls": [{"tool": tool, "arguments": arguments}]})


def code(script: str) -> dict[str, Any]:
    """A turn of a newer model."""
    return {"calls": [{"tool": "exec", "input": script}]}


@dataclass
class Bench:
    """`environ` is what a person's would be, with all of the program's own files in `home`, and a
    model server of their own in its configuration."""

    server: ModelServer
    home: Path
    tree: Path
    desk: Desk = field(default_factory=Desk)
    events: list[AgentEvent] = field(default_factory=list)
    processes: Processes = field(default_factory=lambda: SystemProcesses(grace_s=0.5))
    config: str = ""

    def environ(self, session: Session, **more: str) -> dict[str, str]:
        (self.home / "config.toml").write_text(
            f"""model_provider = "mine"
{self.config}
[model_providers.mine]
name = "mine"
base_url = "{session.v1}"
env_key = "MINE_API_KEY"
wire_api = "responses"
"""
        )
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "CODEX_HOME": str(self.home),
            "MINE_API_KEY": "sk-scripted",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            **FOREIGN_GIT,
            **more,
        }

    def script(self, *turns: Mapping[str, Any]) -> Session:
        """Beyond it, the model says nothing."""
        return self.server.session(turns, strict=False)

    def runner(self, session: Session, **more: Any) -> AgentRunner:
        from agl.adapters.codex import CodexRunner

        environ = self.environ(session, **more.pop("environ", {}))
        return CodexRunner(self.processes, SystemClock(), environ, **more)

    def task(self, *restrictions: Restriction, **more: Any) -> AgentTask:
        return replace(self.desk.task(self.tree, MODEL, *restrictions), **more)

    async def ran(
        self,
        session: Session,
        *restrictions: Restriction,
        task: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> AgentOutcome:
        asked = self.task(*restrictions, **(task or {}))
        return await self.runner(session, **more).run(asked, self.events.append)

    @property
    def lines(self) -> list[str]:
        return [event.activity for event in self.events if isinstance(event, Acted)]

    @property
    def said(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Said)]

    @property
    def usage(self) -> Usage:
        """As the engine adds it up."""
        return sum((e.usage for e in self.events if isinstance(e, Spent)), Usage())
