"""A runner of the real program on a script, and what came of a task."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agl.adapters.system import SystemClock, SystemProcesses
from agl.ports.agents import (
    Acted,
    AgentEvent,
    AgentOutcome,
    AgentRunner,
    AgentTask,
    Priced,
    Said,
    Spent,
)
from agl.ports.models import ModelId, Restriction, Usage
from agl.ports.processes import Processes
from agl.testing.contracts.agent_runner import FOREIGN_GIT, Desk
from servers.model_server import ModelServer, Session

MODEL = ModelId("claude_code", "claude-sonnet-5")
REPORT = "mcp__agl__report_findings"

_NAMES = {"write": "Write", "edit": "Edit", "shell": "Bash", "report_findings": REPORT}
_FIELDS = {"path": "file_path", "old": "old_string", "new": "new_string"}


def spoken(turn: Mapping[str, Any]) -> dict[str, Any]:
    """A turn of the common scripts, with the names that Claude Code's own tools have."""
    made = dict(turn)
    made["calls"] = [_call(call) for call in turn.get("calls", ())]
    return made


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    made = {**call, "tool": _NAMES.get(call["tool"], call["tool"])}
    if "arguments" in call:
        made["arguments"] = {_FIELDS.get(name, name): v for name, v in call["arguments"].items()}
    return made


def call(tool: str, **arguments: object) -> dict[str, Any]:
    return spoken({"calls": [{"tool": tool, "arguments": arguments}]})


@dataclass
class Bench:
    """`environ` is what a person's would be, with all of the program's own files in `home`."""

    server: ModelServer
    home: Path
    tree: Path
    desk: Desk = field(default_factory=Desk)
    events: list[AgentEvent] = field(default_factory=list)
    processes: Processes = field(default_factory=lambda: SystemProcesses(grace_s=0.5))

    def environ(self, session: Session, **more: str) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.home / "config"),
            "CLAUDE_CODE_TMPDIR": str(self.home),
            "ANTHROPIC_BASE_URL": session.url,
            "ANTHROPIC_API_KEY": "sk-scripted",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            **FOREIGN_GIT,
            **more,
        }

    def script(self, *turns: Mapping[str, Any]) -> Session:
        """Beyond it, the model says nothing."""
        return self.server.session(turns, strict=False)

    def runner(self, session: Session, **more: Any) -> AgentRunner:
        from agl.adapters.claude_code import ClaudeCodeRunner

        environ = self.environ(session, **more.pop("environ", {}))
        return ClaudeCodeRunner(self.processes, SystemClock(), environ, **more)

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
        total = Usage()
        for event in self.events:
            match event:
                case Spent(usage):
                    total += usage
                case Priced(cost_usd):
                    total = replace(total, cost_usd=cost_usd)
        return total
