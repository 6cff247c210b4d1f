"""One call of `run.step` as it is asked: checked, put into words, and fingerprinted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from agl.ports.errors import InputError
from agl.ports.ledger import Kind
from agl.ports.models import ModelId
from agl.sdk._engine import fingerprints
from agl.sdk._engine.scope import Asked, ScopeState
from agl.sdk.roles import Role
from agl.sdk.tools import ReportingTool


@dataclass(frozen=True, slots=True)
class Call:
    """One call of `run.step`. `message` None: the step discards what it wrote. `merges`: what the
    scope's parent has is merged in first."""

    role: Role[Any]
    model: ModelId
    message: str | None
    timeout_s: float | None
    inputs: Mapping[str, object]
    merges: bool = False


def call_of(
    role: Role[Any],
    commit: str | None,
    discard: bool,
    timeout_s: float | None,
    inputs: Mapping[str, object],
    merges: bool = False,
) -> Call:
    """Checks what a workflow asks for before anything starts.

    Raises:
        InputError: how the step ends is not said, the role has no model, or an argument is wrong.
    """
    if not isinstance(role, Role):
        raise InputError(f"run.step takes a Role, not {role!r}; call the factory of the role")
    name = str(role.name)
    if role.model is None:
        raise InputError(f"role {name!r} has no model; make it with @role(model=…)")
    if commit is not None and discard:
        raise InputError(f"step {name!r} has both commit= and discard=True; give one")
    if commit is not None and not commit.strip():
        raise InputError(f"step {name!r} has an empty commit message")
    if commit is not None and not _is_storable(commit):
        raise InputError(
            f"step {name!r} has the commit message {commit!r}, which git cannot hold; take out the"
            " zero byte or half character"
        )
    if timeout_s is not None and not timeout_s > 0:
        raise InputError(f"step {name!r} has timeout_s={timeout_s!r}; give seconds above 0")
    if commit is not None and not role.may_write:
        raise InputError(f"step {name!r} may not write files, so it takes no commit=")
    if role.may_write and commit is None and not discard:
        raise InputError(
            f"step {name!r} may write files: give commit='message', or discard=True to throw away"
            " what it writes"
        )
    if merges and commit is None:
        raise InputError(
            f"step {name!r} has merging=, so give it commit='message' to conclude with"
        )
    return Call(role, role.model, commit, timeout_s, inputs, merges)


def _is_storable(text: str) -> bool:
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def prompt_of(inputs: Mapping[str, object]) -> str:
    """A step's inputs in words: each under its name, texts as they are, the rest as JSON."""
    parts = []
    for name, value in inputs.items():
        shown = fingerprints.plain(value, name)
        if not isinstance(shown, str):
            shown = json.dumps(shown, ensure_ascii=False, indent=2)
        parts.append(f"# {name}\n\n{shown}\n")
    return "\n".join(parts)


def asked_of(scope: ScopeState, call: Call, onto: ScopeState | None) -> Asked:
    files = scope.run.take_in(scope.run.services.agents.files(call.model))
    terms = {
        **_role_terms(call.role),
        "model": fingerprints.digest(
            [call.model.provider, call.model.name, call.model.settings, files]
        ),
        "ending": fingerprints.digest("commit" if call.message is not None else "discard"),
        **({"merging": fingerprints.digest(True)} if call.merges else {}),
        **{f"input.{name}": _input_digest(name, value) for name, value in call.inputs.items()},
    }
    print_ = fingerprints.fingerprint(Kind.STEP.value, terms)
    return Asked(Kind.STEP, call.role.name, print_, terms, onto=onto)


def _input_digest(name: str, value: object) -> str:
    try:
        return fingerprints.digest(value)
    except InputError as error:
        raise InputError(f"input {name!r}: {error}") from error


@lru_cache(maxsize=1024)
def _role_terms(role: Role[Any]) -> Mapping[str, str]:
    tools = [
        {
            "name": tool.name,
            "description": tool.description,
            "schema": tool.schema,
            "type": tool.type_name,
            "reports": isinstance(tool, ReportingTool),
        }
        for tool in role.tools
    ]
    return {
        "name": fingerprints.digest(str(role.name)),
        "instructions": fingerprints.digest(role.instructions),
        "restrictions": fingerprints.digest(sorted(one.value for one in role.restrictions)),
        "tools": fingerprints.digest(tools),
    }
