"""`run.verify`: the build's verdict on the tip, recorded so that a workflow can branch on it."""

from __future__ import annotations

from agl import schema
from agl.ports.errors import InputError
from agl.ports.ledger import Kind
from agl.ports.verifier import Verdict
from agl.sdk._engine import fingerprints
from agl.sdk._engine.reports import refuse_in_tool
from agl.sdk._engine.scope import Asked, ScopeState


async def verify(scope: ScopeState, command: str | None) -> Verdict:
    """The recorded verdict, or that of a build run now on the tip.

    Raises:
        InputError: no command was given and the project has no build; or it is none.
    """
    refuse_in_tool(scope.scope, "verify")
    services = scope.run.services
    line = command if command is not None else services.build
    if not line or not line.strip():
        raise InputError(
            f"project {str(services.project)!r} has no build to verify with;"
            " `agl init --build COMMAND` sets one"
        )
    if "\0" in line:
        raise InputError(f"the command {line!r} holds a zero byte; no shell takes one")
    terms = {"command": fingerprints.digest(line)}
    print_ = fingerprints.fingerprint(Kind.VERIFY.value, terms)
    asked = Asked(Kind.VERIFY, "verify", print_, terms, given=scope.given)
    served = scope.recorded(asked, _decode)
    if served is None:
        async with scope.in_turn():
            served = scope.recorded(asked, _decode)
            if served is None:
                scope.refuse_if_held()
                served = scope.adopted(asked, _decode)
            if served is None:
                return await _run(scope, asked, line)
    scope.saw(served.entry.head_before)
    scope.run.emit("verify_replayed", scope.scope, line, passed=served.value.passed)
    return served.value


async def _run(scope: ScopeState, asked: Asked, line: str) -> Verdict:
    run, services = scope.run, scope.run.services
    tree = await scope.bring("in the way of the build")
    started = services.clock.now()
    run.emit("verify_started", scope.scope, line)
    verdict = await services.verifier.verify(tree.path, line, services.build_timeout_s, run.marker)
    tip = scope.chain.tip
    value = schema.to_json(Verdict, verdict)
    scope.write(asked, value, started=started, head_before=tip, head_after=tip)
    scope.saw(tip)
    run.emit(
        "verify_finished",
        scope.scope,
        line,
        passed=verdict.passed,
        status=verdict.status,
        note=verdict.note,
    )
    return verdict


def _decode(value: object) -> Verdict:
    return schema.validate(Verdict, value)
