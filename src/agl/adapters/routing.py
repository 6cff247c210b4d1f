"""One agent runner in front of many: the model's provider decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from agl.ports.agents import AgentEvent, AgentOutcome, AgentRunner, AgentTask
from agl.ports.errors import InputError
from agl.ports.models import Capability, ModelId

_SPELLINGS = {"scripted": "scripted:PATH"}


class RoutingRunner(AgentRunner):
    """Hands each call to the backend of the model's provider, which is built when first needed."""

    def __init__(self, backends: Mapping[str, Callable[[], AgentRunner]]) -> None:
        self._backends = backends
        self._built: dict[str, AgentRunner] = {}

    def capabilities(self, model: ModelId) -> frozenset[Capability]:
        return self._backend(model).capabilities(model)

    def files(self, model: ModelId) -> tuple[Path, ...]:
        return self._backend(model).files(model)

    async def check_ready(self, model: ModelId) -> str:
        return await self._backend(model).check_ready(model)

    async def run(self, task: AgentTask, emit: Callable[[AgentEvent], None]) -> AgentOutcome:
        return await self._backend(task.model).run(task, emit)

    def _backend(self, model: ModelId) -> AgentRunner:
        provider = model.provider
        if provider not in self._backends:
            known = ", ".join(_SPELLINGS.get(name, f"{name}:MODEL") for name in self._backends)
            raise InputError(
                f"no backend for model '{model}' in this version; pass one of {known or 'none'}"
            )
        if provider not in self._built:
            self._built[provider] = self._backends[provider]()
        return self._built[provider]
