"""What the SDK is told for a task."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from claude_agent_sdk import ClaudeAgentOptions, EffortLevel

from agl.adapters.claude_code.permissions import judge_for, tools_for
from agl.adapters.claude_code.sandbox import settings_of
from agl.adapters.claude_code.tools import SERVER, tool_server
from agl.ports.agents import AgentTask
from agl.ports.errors import InputError
from agl.ports.models import ModelId

_EFFORTS: Final[Mapping[str, EffortLevel]] = {
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}
_LINE_BYTES: Final = 2**30


def effort_of(model: ModelId) -> EffortLevel | None:
    """The effort in the model's settings.

    Raises:
        InputError: there is another setting, or another level.
    """
    for name, value in model.settings:
        if name != "effort" or value not in _EFFORTS:
            raise InputError(
                f"model {str(model)!r} has {name} {value!r}; known is effort, one of"
                f" {', '.join(_EFFORTS)}"
            )
    return next((_EFFORTS[value] for _, value in model.settings), None)


def options_for(
    task: AgentTask,
    program: Path,
    env: Mapping[str, str],
    *,
    confined: bool,
    session: str | None,
    on_stderr: Callable[[str], None],
) -> ClaudeAgentOptions:
    """The task's role, closed to all that the tree or the machine would add to it. `program` is
    in a folder of its own, which holds the instructions too: an argument is at most 128 KiB."""
    instructions = program.with_name("instructions.md")
    instructions.write_text(task.instructions, encoding="utf-8", errors="replace")
    settings = {
        "attribution": {"commit": "", "pr": ""},
        "sandbox": settings_of(task, confined=confined),
    }
    return ClaudeAgentOptions(
        cli_path=program,
        cwd=task.tree,
        env=dict(env),
        model=task.model.name,
        effort=effort_of(task.model),
        system_prompt={"type": "file", "path": str(instructions)},
        tools=tools_for(task.restrictions),
        can_use_tool=judge_for(task.tree, task.restrictions),
        permission_mode="default",
        mcp_servers={SERVER: tool_server(task.tools)},
        strict_mcp_config=True,
        setting_sources=[],
        settings=json.dumps(settings),
        verbatim_prompts=True,
        include_partial_messages=True,
        resume=session,
        max_buffer_size=_LINE_BYTES,
        stderr=on_stderr,
    )
