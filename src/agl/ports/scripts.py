"""Words that every scripted agent shares: which part of a script a step plays, and what a step
that has none hands in."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agl.ports.agents import AgentEvent, AgentTask
from agl.ports.models import Usage

NO_SCRIPT_TEXT = "done"
"""What an agent says at the end of a step that no script mentions."""


@dataclass(frozen=True, slots=True)
class Play:
    """One turn of an agent, in this order: lines of `activity`, `usage`, `files` written into the
    tree (None deletes), `calls` of tools, then `fails` (met once, like an error of a script), the
    `report` handed to the role's reporting tool, and what it `says`."""

    files: Mapping[str, str | bytes | None] = field(default_factory=dict)
    report: object | None = None
    calls: Sequence[tuple[str, object]] = ()
    says: str = NO_SCRIPT_TEXT
    activity: Sequence[str] = ()
    usage: Usage | None = None
    fails: Exception | None = None


AgentFunction = Callable[[AgentTask, Callable[[AgentEvent], None]], Awaitable[str | None]]
"""Plays a step by itself and returns what the agent says."""

Plays = Mapping[str, Play | Sequence[Play] | AgentFunction] | AgentFunction


_TEXTS = {
    "date-time": "2000-01-01T00:00:00Z",
    "date": "2000-01-01",
    "time": "00:00:00Z",
    "duration": "PT0S",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "email": "someone@example.org",
    "uri": "https://example.org/",
}


def script_keys(step: str, namespace: str, nth: int) -> tuple[str, ...]:
    """The keys under which a script may hold a step, the most exact first. `namespace` is the
    scope's path joined with `/`, empty for the run's own."""
    names = [f"{step}@{namespace}", step] if namespace else [step]
    return tuple(key for name in names for key in (f"{name}#{nth}", name))


def sample_of(schema: Mapping[str, object]) -> object:
    """The smallest value that fits a JSON Schema, the same each time: required fields alone, the
    first of an enum and of alternatives. A `pattern` is not looked at.

    Raises:
        ValueError: every value of the schema holds another of it, without end.
    """
    return _sample(schema, schema, ())


def _sample(schema: object, root: Mapping[str, object], inside: tuple[str, ...]) -> object:
    if not isinstance(schema, Mapping):
        return ""
    if "const" in schema:
        return schema["const"]
    match schema:
        case {"$ref": str(pointer)}:
            if pointer in inside:
                raise ValueError(f"{pointer!r} holds itself without end")
            return _sample(_resolved(root, pointer), root, (*inside, pointer))
        case {"enum": [first, *_]}:
            return first
        case {"anyOf": [_, *_] as options} | {"oneOf": [_, *_] as options}:
            return _first_that_ends(options, root, inside)
        case {"allOf": [_, *_] as parts}:
            merged: dict[str, object] = {}
            for part in (*parts, {key: schema[key] for key in schema if key != "allOf"}):
                merged |= _dereferenced(part, root)
            return _sample(merged, root, inside)
    kind = schema.get("type", "object" if "properties" in schema else None)
    if isinstance(kind, list):
        kind = kind[0]
    match kind:
        case "object":
            fields = schema.get("properties", {})
            required = schema.get("required", ())
            return {name: _sample(fields.get(name), root, inside) for name in required}
        case "array":
            return _sample_array(schema, root, inside)
        case "integer":
            return _sample_number(schema, whole=True)
        case "number":
            return _sample_number(schema, whole=False)
        case "boolean":
            return False
        case "null":
            return None
    return _sample_text(schema)


def _first_that_ends(
    options: Sequence[object], root: Mapping[str, object], inside: tuple[str, ...]
) -> object:
    endless: ValueError | None = None
    for option in options:
        try:
            return _sample(option, root, inside)
        except ValueError as error:
            endless = error
    raise endless or ValueError("there is no alternative")


def _sample_array(
    schema: Mapping[str, object], root: Mapping[str, object], inside: tuple[str, ...]
) -> list[object]:
    first = schema.get("prefixItems", ())
    parts: list[object] = list(first) if isinstance(first, Sequence) else []
    least = schema.get("minItems", 0)
    if isinstance(least, int):
        parts += [schema.get("items")] * (least - len(parts))
    return [_sample(part, root, inside) for part in parts]


def _sample_number(schema: Mapping[str, object], *, whole: bool) -> float:
    step = _number(schema.get("multipleOf")) or 1
    low, high = _number(schema.get("minimum")), _number(schema.get("maximum"))
    above, below = _number(schema.get("exclusiveMinimum")), _number(schema.get("exclusiveMaximum"))
    if above is not None and (low is None or above >= low):
        low = (math.floor(above / step) + 1) * step
    if below is not None and (high is None or below <= high):
        high = (math.ceil(below / step) - 1) * step
    value: float = 0
    if low is not None and low > 0:
        value = math.ceil(low / step) * step
    elif high is not None and high < 0:
        value = math.floor(high / step) * step
    if not whole and low is not None and high is not None and not low <= value <= high:
        value = (low + high) / 2
    return int(value) if whole else float(value)


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _sample_text(schema: Mapping[str, object]) -> str:
    text = _TEXTS.get(str(schema.get("format")), "text")
    least, most = schema.get("minLength"), schema.get("maxLength")
    if isinstance(least, int):
        text = text.ljust(least, "x")
    return text[:most] if isinstance(most, int) else text


def _dereferenced(part: object, root: Mapping[str, object]) -> Mapping[str, object]:
    match part:
        case {"$ref": str(pointer)}:
            return _dereferenced(_resolved(root, pointer), root)
        case Mapping():
            return part
    return {}


def _resolved(root: Mapping[str, object], pointer: str) -> object:
    """RFC 6901: the part of the schema that a local reference names."""
    found: object = root
    for part in pointer.removeprefix("#").split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        found = found.get(key) if isinstance(found, Mapping) else None
    return found
