"""What Codex is told for a task."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agl.adapters.codex.environment import secrets_of
from agl.adapters.codex.known import Known
from agl.adapters.codex.permissions import Permissions
from agl.adapters.codex.reading import part, word
from agl.adapters.codex.tools import SERVER, Address
from agl.ports.agents import AgentTask, AgentTool
from agl.ports.errors import InputError
from agl.ports.models import ModelId
from agl.ports.programs import Program

EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra")
_BUILT_IN: Final = "openai"
_OWN_PROVIDER: Final = "agl"
_OPENAI: Final = "https://api.openai.com/v1"
_NO_RETRIES: Final = {"request_max_retries": 0, "stream_max_retries": 0}
_A_DAY_S: Final = 86_400.0

_OFF: Final = (
    *("apps", "browser_use", "computer_use", "goals", "hooks", "image_generation", "memories"),
    *("multi_agent", "plugins", "remote_plugin", "shell_snapshot", "skill_search", "sleep_tool"),
    *("tool_suggest", "unbounded_connection_retries"),
)
_CLOSED: Final = (
    *(f"features.{name}=false" for name in _OFF),
    "agents.enabled=false",
    "allow_login_shell=false",
    "analytics.enabled=false",
    'history.persistence="none"',
    "include_apps_instructions=false",
    "include_collaboration_mode_instructions=false",
    "notify=[]",
    "project_doc_max_bytes=0",
)
"""Measured with 0.163.0. Without the first, and with analytics, it looks up names."""

Json = dict[str, Any]


def effort_of(model: ModelId) -> str | None:
    """The effort in the model's settings.

    Raises:
        InputError: there is another setting, or another level.
    """
    for name, value in model.settings:
        if name != "effort" or value not in EFFORTS:
            raise InputError(
                f"model {str(model)!r} has {name} {value!r}; known is effort, one of"
                f" {', '.join(EFFORTS)}"
            )
    return next((value for _, value in model.settings), None)


def argv_for(program: Program) -> tuple[str, ...]:
    """Closed to all that the machine would add to a task."""
    closed = [word for line in _CLOSED for word in ("-c", line)]
    return (*program.tether, str(program.path), *closed, "app-server")


def thread_for(
    task: AgentTask,
    known: Known,
    permissions: Permissions,
    address: Address,
    environ: Mapping[str, str],
) -> Json:
    """The task's role. Of the person's own configuration the model's provider stays; servers are
    closed by name, and the tree is not trusted."""
    return {
        "cwd": str(task.tree),
        "approvalPolicy": permissions.approval,
        "baseInstructions": task.instructions,
        "developerInstructions": _about(task.tools),
        "config": {
            **permissions.config(),
            "mcp_servers": {
                **{name: {"enabled": False} for name in part(known.config, "mcp_servers")},
                SERVER: _server(address),
            },
            # One that is not named would be written down as trusted.
            "projects": {str(task.tree.resolve()): {"trust_level": "untrusted"}},
            "shell_environment_policy": {"inherit": "all", "exclude": secrets_of(environ)},
            **_provider(known, environ),
        },
    }


def without(skills: Sequence[str]) -> Json:
    """What a prompt names with `$` is text."""
    return {"skills.config": [{"path": path, "enabled": False} for path in skills]}


def _server(address: Address) -> Json:
    return {
        "url": address.url,
        "http_headers": {"Authorization": f"Bearer {address.token}"},
        "required": True,
        "enabled": True,
        "default_tools_approval_mode": "approve",
        # A tool may wait for a person.
        "tool_timeout_sec": 365 * _A_DAY_S,
    }


def key_for(known: Known, environ: Mapping[str, str]) -> str | None:
    """The variable with the key to use. One for Codex alone comes before a login."""
    names = ("CODEX_API_KEY",) if known.is_logged_in else ("CODEX_API_KEY", "OPENAI_API_KEY")
    return next((name for name in names if environ.get(name)), None)


def _provider(known: Known, environ: Mapping[str, str]) -> Json:
    """A provider that is configured is asked once for each answer; those that Codex knows by itself
    cannot be told so. A key in the environment, which it does not take by itself, becomes a
    provider."""
    name = word(known.config, "model_provider") or _BUILT_IN
    if name in part(known.config, "model_providers"):
        return {"model_providers": {name: _NO_RETRIES}}
    key = key_for(known, environ)
    if name != _BUILT_IN or key is None:
        return {}
    provider = {
        "name": "OpenAI",
        "base_url": word(known.config, "openai_base_url") or _OPENAI,
        "env_key": key,
        "wire_api": "responses",
        **_NO_RETRIES,
    }
    return {"model_provider": _OWN_PROVIDER, "model_providers": {_OWN_PROVIDER: provider}}


def _about(tools: Sequence[AgentTool]) -> str:
    """Newer models see tools of a server only when they were told of them."""
    if not tools:
        return ""
    lines = [
        f"Beside your own tools you have those of the server {SERVER!r}. Where they are not in your"
        f" list, search for them by name, or in code call `tools.mcp__{SERVER}__NAME(arguments)`:"
    ]
    for tool in tools:
        schema = json.dumps(tool.schema)
        lines.append(
            f"- `{tool.name}`: {tool.description}\n  Its arguments, as JSON Schema: {schema}"
        )
    return "\n".join(lines)
