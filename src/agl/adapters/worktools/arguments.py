"""A tool from a schema and an action. Whatever a model sends is answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from agl.ports.agents import AgentTool, ToolAnswer
from agl.ports.processes import NotStarted


class Refused(Exception):
    """The call cannot be done; the message tells the model why and what to do."""


@dataclass(frozen=True, slots=True)
class Field:
    """One argument of a tool. A field without a default is required."""

    name: str
    kind: Literal["string", "integer", "number", "boolean"]
    description: str
    default: str | int | float | bool | None = None
    least: float | None = None
    most: float | None = None


class Arguments:
    """Checked arguments, by name and kind."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self._values = values

    def text(self, name: str) -> str:
        return str(self._values[name])

    def number(self, name: str) -> float:
        value = self._values[name]
        return value if isinstance(value, int | float) else 0

    def flag(self, name: str) -> bool:
        return self._values[name] is True


def work_tool(
    name: str,
    description: str,
    fields: tuple[Field, ...],
    act: Callable[[Arguments], Awaitable[str]],
) -> AgentTool:
    """The tool whose action gets checked arguments and returns what it found; a refusal, or the
    system's, is answered as an error."""

    async def handler(arguments: object) -> ToolAnswer:
        problems = _problems(fields, arguments)
        if problems or not isinstance(arguments, Mapping):
            said = f"{name}: {'; '.join(problems)}"
            return ToolAnswer(said, is_error=True, arguments_fit=False)
        given = {field.name: arguments.get(field.name, field.default) for field in fields}
        try:
            return ToolAnswer(await act(Arguments(given)))
        except (Refused, NotStarted) as refused:
            return ToolAnswer(str(refused), is_error=True)
        except OSError as error:
            return ToolAnswer(f"{name}: {error.strerror or error}", is_error=True)

    return AgentTool(name, description, _schema(fields), handler)


def _schema(fields: tuple[Field, ...]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": {field.name: _field_schema(field) for field in fields},
        "required": [field.name for field in fields if field.default is None],
        "additionalProperties": False,
    }


def _field_schema(field: Field) -> dict[str, object]:
    bounds = {"default": field.default, "minimum": field.least, "maximum": field.most}
    given = {name: value for name, value in bounds.items() if value is not None}
    return {"type": field.kind, "description": field.description, **given}


def _problems(fields: tuple[Field, ...], arguments: object) -> list[str]:
    if not isinstance(arguments, Mapping):
        return [f"the arguments are {_kind(arguments)}, not an object"]
    known = {field.name: field for field in fields}
    problems = [
        f"{name!r} is missing"
        for name, field in known.items()
        if field.default is None and name not in arguments
    ]
    for name, value in arguments.items():
        field = known.get(name)
        if field is None:
            problems.append(f"{_cut(name)} is unknown, there are {', '.join(known)}")
        elif (problem := _problem(field, value)) is not None:
            problems.append(f"{name!r} {problem}")
    return problems


def _problem(field: Field, value: object) -> str | None:
    if _kind(value) != field.kind and not (field.kind == "number" and _kind(value) == "integer"):
        return f"is {_kind(value)}, not {field.kind}"
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return "holds half a character (a lone surrogate)"
        return None
    least, most = field.least, field.most
    if isinstance(value, int | float) and least is not None and most is not None:
        return None if least <= value <= most else f"is {_cut(value)}, not from {least} to {most}"
    return None


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case _:
            return "object"


def _cut(value: object) -> str:
    if isinstance(value, int) and abs(value) > 10**30:
        return "huge"
    text = ascii(value)
    return text if len(text) <= 40 else text[:39] + "…"
