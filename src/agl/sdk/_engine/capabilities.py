"""Whether a model can do what a role needs."""

from __future__ import annotations

from typing import Any

from agl.ports.agents import AgentRunner
from agl.ports.errors import InputError
from agl.ports.models import ModelId
from agl.sdk.roles import Role


def require(agents: AgentRunner, role: Role[Any], model: ModelId) -> None:
    """Raises InputError when the model's backend lacks something that the role needs."""
    lacking = sorted(need.value for need in role.requires - agents.capabilities(model))
    if lacking:
        raise InputError(
            f"role {str(role.name)!r} needs {', '.join(lacking)}, which model {str(model)!r}"
            " has not; choose another model"
        )
