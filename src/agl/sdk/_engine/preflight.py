"""What can be refused before anything is made."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from types import ModuleType

from agl.ports.errors import StateError
from agl.ports.models import ModelId
from agl.sdk._engine.services import Services
from agl.sdk.roles import RoleFactory


async def check(services: Services, module: str, params: object) -> None:
    """Asks the repository first, then each model in use; no question costs a paid turn.

    The models are those of the parameters, and of the role factories bound in the workflow's module
    or in a module that is bound there. That is a forecast: each step asks again what it needs.

    Raises:
        InputError, StateError, UpstreamError, DeniedError: with what to type.
    """
    await services.history.check_ready()
    broken = (await services.guards.read(())).broken_config
    if broken is not None:
        raise StateError(f"the repository is broken: {broken}")
    for model in dict.fromkeys((*_of_params(params), *_of_module(sys.modules[module]))):
        services.agents.capabilities(model)
        await services.agents.check_ready(model)


def _of_params(params: object) -> Iterator[ModelId]:
    if is_dataclass(params):
        for field in fields(params):
            value = getattr(params, field.name)
            if isinstance(value, ModelId):
                yield value


def _of_module(module: ModuleType) -> Iterator[ModelId]:
    bound = tuple(vars(module).values())
    inner = [value for one in bound if isinstance(one, ModuleType) for value in vars(one).values()]
    for value in (*bound, *inner):
        if isinstance(value, RoleFactory) and value.model is not None:
            yield value.model
