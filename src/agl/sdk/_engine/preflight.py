"""What can be refused before anything is made."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

from agl.ports.errors import AglError, StateError
from agl.ports.models import ModelId
from agl.sdk._engine.services import Services
from agl.sdk.params import params_of
from agl.sdk.roles import RoleFactory


async def check(services: Services, module: str, params: object) -> None:
    """Asks the repository first, then each model in use, and tells all that is missing; no question
    costs a paid turn.

    The models are those of the parameters, and of the role factories bound in the workflow's module
    or in a module that is bound there. That is a forecast: each step asks again what it needs.

    Raises:
        InputError, StateError, UpstreamError, DeniedError: one line for each thing that is missing,
            with what to type, and of a model with the flags of the parameters that hold it.
    """
    refused = list(await services.history.problems())
    broken = (await services.guards.read(())).broken_config
    if broken is not None:
        refused.append(StateError(f"the repository is broken: {broken}"))
    flags = _of_params(params)
    for model in dict.fromkeys((*flags, *_of_module(sys.modules[module]))):
        try:
            services.agents.capabilities(model)
            await services.agents.check_ready(model)
        except AglError as error:
            where = ", ".join(flags.get(model, ()))
            refused.append(type(error)(f"{where}: {error}") if where else error)
    if refused:
        raise type(refused[0])("\n".join(map(str, refused))) from refused[0]


def _of_params(params: object) -> dict[ModelId, list[str]]:
    """The models of the parameters, each with the flags that hold it."""
    flags: dict[ModelId, list[str]] = {}
    for param in params_of(type(params)):
        value = getattr(params, param.name)
        if isinstance(value, ModelId):
            flags.setdefault(value, []).append(param.flags[-1])
    return flags


def _of_module(module: ModuleType) -> Iterator[ModelId]:
    bound = tuple(vars(module).values())
    inner = [value for one in bound if isinstance(one, ModuleType) for value in vars(one).values()]
    for value in (*bound, *inner):
        if isinstance(value, RoleFactory) and value.model is not None:
            yield value.model
