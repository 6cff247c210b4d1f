"""What an entry is found by: SHA-256 over canonical JSON of all that was asked."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping, Sequence, Set
from enum import Enum
from pathlib import PurePath

from agl.ports.errors import InputError

FORMAT = 1
"""Part of every source, so that a change of this module's rules opens a new epoch."""


def canonical(value: object) -> str:
    """One text for one value: keys sorted, sequences in order, sets sorted by their elements' own
    text, and True, 1 and 1.0 different from each other.

    Takes JSON values, tuples, sets, enums, paths, dataclasses and pydantic models.

    Raises:
        InputError: NaN, an infinity, a lone surrogate, a key that is no text, or another type.
    """
    try:
        return _text(_plain(value, "value"))
    except RecursionError as error:
        raise InputError("value is nested too deeply, or holds itself") from error
    except ValueError as error:
        raise InputError(f"value holds what has no place in JSON: {error}") from error


def digest(value: object) -> str:
    """The SHA-256 of the canonical text, in hexadecimal."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def fingerprint(kind: str, terms: Mapping[str, str]) -> str:
    """The fingerprint of an entry from the digests of its terms."""
    return digest({"format": FORMAT, "kind": kind, "terms": dict(terms)})


def plain(value: object, where: str) -> object:
    """The value as JSON for an agent to read; same types and refusals as `canonical`."""
    return _readable(_plain(value, where))


def _text(value: object) -> str:
    return json.dumps(
        value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
    )


def _plain(value: object, where: str) -> object:
    if value is None or value is True or value is False:
        return value
    if isinstance(value, Enum):
        return {"$enum": _name(type(value)), "$value": _plain(value.value, where)}
    if isinstance(value, str):
        return _sound(str(value), where)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(
                f"{where} is {value!r}, which has no place in JSON; use None or a text"
            )
        return float(value)
    if isinstance(value, PurePath):
        return {"$path": _sound(str(value), where)}
    if isinstance(value, Mapping):
        return _mapping(value, where)
    if isinstance(value, Set):
        members = [_plain(member, f"{where}{{…}}") for member in value]
        return {"$set": sorted(members, key=_text)}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [_plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
    return _object(value, where)


def _mapping(value: Mapping[object, object], where: str) -> dict[str, object]:
    made: dict[str, object] = {}
    for key, inner in value.items():
        if not isinstance(key, str):
            raise InputError(f"{where} has the key {key!r}, which is no text; use str(…)")
        # A key that begins with "$" gets a second one, so that no mapping looks like a tag.
        name = f"${key}" if key.startswith("$") else key
        made[_sound(name, where)] = _plain(inner, f"{where}.{key}")
    return made


def _object(value: object, where: str) -> dict[str, object]:
    kind = type(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields: dict[object, object] = {
            field.name: getattr(value, field.name) for field in dataclasses.fields(value)
        }
    elif hasattr(kind, "model_fields"):
        fields = {name: getattr(value, name) for name in kind.model_fields}
    else:
        raise InputError(
            f"{where} is a {kind.__qualname__!r}; use JSON values, sets, enums, paths, dataclasses"
            " or pydantic models"
        )
    return {"$type": _name(kind), **_mapping(fields, where)}


def _name(kind: type) -> str:
    pinned = getattr(kind, "__agl_type_name__", None)
    return pinned if isinstance(pinned, str) else f"{kind.__module__}.{kind.__qualname__}"


def _sound(text: str, where: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{where} holds half a character (a lone surrogate)") from error
    return text


def _readable(value: object) -> object:
    if isinstance(value, list):
        return [_readable(item) for item in value]
    if not isinstance(value, dict):
        return value
    for tag in ("$value", "$path", "$set"):
        if tag in value:
            return _readable(value[tag])
    return {
        key.removeprefix("$") if key.startswith("$$") else key: _readable(inner)
        for key, inner in value.items()
        if key != "$type"
    }
