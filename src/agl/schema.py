"""The one door to pydantic: JSON Schema and validation of payloads, dataclasses and models alike.

pydantic is imported inside the functions, so that commands which need none of it start at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from agl.ports.errors import InputError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")


class Invalid(Exception):
    """A value does not fit its type. `problems` has every one of them, each with its path."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def schema_of(kind: type[T]) -> Mapping[str, object]:
    """The JSON Schema of a payload type, an object. Not to be changed: it is made once per type.

    Raises:
        InputError: the type has no JSON Schema, or one that is not an object's.
    """
    return _schema(cast(Hashable, kind))


@lru_cache(maxsize=256)
def _schema(kind: Any) -> Mapping[str, object]:
    from pydantic import PydanticUserError

    try:
        schema = _adapter(kind).json_schema()
    except PydanticUserError as error:
        first = str(error).splitlines()[0]
        raise InputError(f"payload {kind.__qualname__!r} has no JSON Schema: {first}") from error
    # A type that holds itself is described by a reference to its own definition.
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    schema = {**schema["$defs"][name], "$defs": schema["$defs"]} if name else schema
    if schema.get("type") != "object":
        raise InputError(
            f"payload {kind.__qualname__!r} is not an object; use a dataclass or a pydantic model"
        )
    # The class's name enters the fingerprint as the tool's type name, which an author can pin.
    return {key: value for key, value in schema.items() if key != "title"}


def validate(kind: type[T], value: object) -> T:
    """The payload that a JSON value stands for.

    Raises:
        Invalid: with every problem and its path at once.
    """
    from pydantic import ValidationError

    try:
        return _adapter(kind).validate_python(value)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        problems = tuple(
            f"{'.'.join(str(part) for part in one['loc']) or 'the payload'}: {one['msg']}"
            for one in found
        )
        raise Invalid(problems) from error


def to_json(kind: type[T], value: T) -> object:
    """The payload as a JSON value, from which `validate` makes an equal one."""
    return _adapter(kind).dump_python(value, mode="json")


@lru_cache(maxsize=256)
def _cached(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _adapter(kind: type[T]) -> TypeAdapter[T]:
    return _cached(cast(Hashable, kind))
