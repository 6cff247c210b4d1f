"""A step: one agent call on a role, served from the ledger or run and recorded."""

from __future__ import annotations

from agl import schema
from agl.ports.errors import Transient
from agl.sdk._engine.asking import Call, asked_of
from agl.sdk._engine.attempt import Attempt
from agl.sdk._engine.patience import Waits
from agl.sdk._engine.reports import refuse_in_tool
from agl.sdk._engine.scope import Asked, ScopeState


async def step(scope: ScopeState, call: Call, onto: ScopeState | None = None) -> object:
    """The step's value: the recorded one, or what an agent now reports. `onto`: the scope whose
    head is merged in first."""
    refuse_in_tool(scope.scope, f"step {str(call.role.name)!r}")
    asked = asked_of(scope, call, onto)
    reporting = call.role.reporting

    def decode(value: object) -> object:
        return None if reporting is None else schema.validate(reporting.payload, value)

    served = scope.recorded(asked, decode)
    if served is None:
        async with scope.in_turn():
            served = scope.recorded(asked, decode)
            if served is None:
                scope.refuse_if_held()
                served = scope.adopted(asked, decode)
            if served is None:
                return decode(await _run(scope, call, asked))
    scope.run.replayed += 1
    scope.run.emit("step_replayed", scope.scope, asked.name, head=served.entry.head_after)
    scope.hand_out(served.entry.head_after)
    return served.value


async def _run(scope: ScopeState, call: Call, asked: Asked) -> object:
    """Attempts until one ends, or waiting for the provider is over."""

    def tell(why: str, seconds: float, until: str) -> None:
        scope.run.emit("waiting", scope.scope, asked.name, why=why, seconds=seconds, until=until)

    patience, provider = scope.run.patience, call.model.provider
    beginnings = Waits(patience, provider, tell)
    while True:
        conversation = Waits(patience, provider, tell)
        try:
            return await Attempt(scope, call, asked, conversation).run()
        except Transient as error:
            if conversation.has_given_up:
                raise
            await beginnings.wait(error)
