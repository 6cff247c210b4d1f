"""What a workflow author imports."""

from agl.ports.errors import (
    AglError,
    DeniedError,
    InputError,
    NeedsAnswer,
    NotFoundError,
    RoleIncomplete,
    StateError,
    StepTimedOut,
    Stop,
    Transient,
    UpstreamError,
)
from agl.ports.integrator import Conflict, ConflictedPath
from agl.ports.models import Capability, ModelId, Restriction, Usage
from agl.ports.verifier import Verdict
from agl.sdk.landing import Landing
from agl.sdk.models import Anthropic, Claude, Codex, OpenAICompatible, Scripted
from agl.sdk.params import arg
from agl.sdk.roles import Role, prompt_file, role
from agl.sdk.run import Child, Run
from agl.sdk.terminal import Choice, Row, Rows, Screen, Text, TextInput
from agl.sdk.tools import ReportingTool, Tool, describe, reporting_tool, tool
from agl.sdk.workflows import Workflow, workflow

__all__ = [
    "AglError",
    "Anthropic",
    "Capability",
    "Child",
    "Choice",
    "Claude",
    "Codex",
    "Conflict",
    "ConflictedPath",
    "DeniedError",
    "InputError",
    "Landing",
    "ModelId",
    "NeedsAnswer",
    "NotFoundError",
    "OpenAICompatible",
    "ReportingTool",
    "Restriction",
    "Role",
    "RoleIncomplete",
    "Row",
    "Rows",
    "Run",
    "Screen",
    "Scripted",
    "StateError",
    "StepTimedOut",
    "Stop",
    "Text",
    "TextInput",
    "Tool",
    "Transient",
    "UpstreamError",
    "Usage",
    "Verdict",
    "Workflow",
    "arg",
    "describe",
    "prompt_file",
    "reporting_tool",
    "role",
    "tool",
    "workflow",
]
