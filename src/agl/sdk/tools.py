"""Tools: what an agent can call. A reporting tool hands in the step's result; a tool answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from agl import schema
from agl.ports.errors import InputError

P = TypeVar("P")
P_co = TypeVar("P_co", covariant=True)

Handler = Callable[[Any], Awaitable[str]]


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """A tool that does something and answers with text. Made by `tool`."""

    name: str
    description: str
    payload: type
    schema: Mapping[str, object]
    handler: Handler
    type_name: str


@dataclass(frozen=True, slots=True, eq=False)
class ReportingTool(Generic[P_co]):
    """A tool whose payload is the step's result. Made by `reporting_tool`."""

    name: str
    description: str
    payload: type[P_co]
    schema: Mapping[str, object]
    type_name: str


def tool(
    name: str,
    description: str,
    payload: type[P],
    handler: Callable[[P], Awaitable[str]],
    *,
    type_name: str | None = None,
) -> Tool:
    """A tool for an agent: `handler` gets the validated payload and answers with text. Its effects
    are not recorded; whatever must not happen twice belongs into a step's files or `run.record`.

    Raises:
        InputError: the payload is no dataclass and no pydantic model, or a text is empty.
    """
    _check(name, description)
    return Tool(
        name, description, payload, schema.schema_of(payload), handler, _pin(payload, type_name)
    )


def reporting_tool(
    name: str, description: str, payload: type[P], *, type_name: str | None = None
) -> ReportingTool[P]:
    """The tool through which an agent hands in its result. `type_name` pins the name under which
    the payload's type enters the fingerprint, so that the class may move.

    Raises:
        InputError: as for `tool`.
    """
    _check(name, description)
    return ReportingTool(
        name, description, payload, schema.schema_of(payload), _pin(payload, type_name)
    )


def describe(text: str, *, default: Any = dataclasses.MISSING) -> Any:
    """A dataclass field with a description that the agent reads in the schema."""
    if default is dataclasses.MISSING:
        return dataclasses.field(metadata={"description": text})
    return dataclasses.field(default=default, metadata={"description": text})


def _check(name: str, description: str) -> None:
    if not name or not name.replace("_", "").replace("-", "").isalnum() or not name.isascii():
        raise InputError(f"tool name {name!r}: use letters, digits, _ and -")
    if not description.strip():
        raise InputError(f"tool {name!r} has no description; the agent needs one")


def _pin(payload: type, type_name: str | None) -> str:
    return type_name or f"{payload.__module__}.{payload.__qualname__}"
