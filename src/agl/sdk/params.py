"""A workflow's parameters: a dataclass whose fields say how they are typed at the command line."""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from agl.ports.errors import InputError
from agl.ports.models import ModelId
from agl.ports.reasons import reason

P = TypeVar("P")
_MISSING: Any = dataclasses.MISSING
_KEY = "agl.arg"
_SCALARS: tuple[type, ...] = (str, bool, int, float, ModelId)


def arg(
    *flags: str,
    default: Any = _MISSING,
    help: str = "",  # noqa: A002 - argparse's own word
    from_file: bool = False,
) -> Any:
    """A field of a workflow's parameters. Without a default it is required; a bool whose default
    is False is a switch. Field types: str, int, float, bool, ModelId, a Literal of texts, each also
    as `| None`, and tuple[str, ...] for a flag that may be repeated. With `from_file`, a text may
    also be given as @FILE or as - for standard input; what was read is what is recorded.

    Raises:
        InputError: a flag is missing or does not begin with a dash.
    """
    if not flags:
        raise InputError("arg() needs a flag, as in arg('--request')")
    for flag in flags:
        if not flag.startswith("-") or not flag.strip("-") or "=" in flag or " " in flag:
            raise InputError(f"arg({flag!r}): a flag begins with a dash, as in '-r' or '--request'")
    return dataclasses.field(
        **({} if default is _MISSING else {"default": default}),
        kw_only=True,
        metadata={_KEY: (flags, help, from_file)},
    )


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter as the command line sees it. `kind` is the type of one value; `choices` are the
    texts of a Literal; `default` is MISSING when it is required."""

    name: str
    flags: tuple[str, ...]
    help: str
    kind: type
    choices: tuple[str, ...]
    optional: bool
    repeated: bool
    default: Any
    from_file: bool = False

    @property
    def required(self) -> bool:
        return self.default is _MISSING

    @property
    def is_switch(self) -> bool:
        return self.kind is bool and self.default is False

    def parse(self, text: str) -> object:
        """One typed value.

        Raises:
            InputError: the text is not of this parameter's kind.
        """
        if self.choices and text not in self.choices:
            raise InputError(f"{self.flags[-1]} {text!r} is none of {', '.join(self.choices)}")
        if self.from_file and (text == "-" or text.startswith("@")):
            return self._read(text)
        if self.kind is ModelId:
            return ModelId.parse(text)
        if self.kind is bool:
            return self._parse_bool(text)
        try:
            return self.kind(text)
        except ValueError as error:
            wanted = "a whole number" if self.kind is int else "a number"
            raise InputError(f"{self.flags[-1]} {text!r} is not {wanted}") from error

    def _read(self, text: str) -> str:
        try:
            return sys.stdin.read() if text == "-" else Path(text[1:]).read_text("utf-8")
        except (OSError, ValueError, AttributeError) as error:
            what = "standard input" if text == "-" else repr(text[1:])
            why = "it is closed" if isinstance(error, AttributeError) else reason(error)
            raise InputError(f"{self.flags[-1]}: {what} cannot be read: {why}") from error

    def _parse_bool(self, text: str) -> bool:
        if text not in ("true", "false"):
            raise InputError(f"{self.flags[-1]} {text!r} is neither true nor false")
        return text == "true"


def params_of(kind: type) -> tuple[Param, ...]:
    """The parameters of a dataclass, in order.

    Raises:
        InputError: the class is not a dataclass, or a field cannot be typed at a command line.
    """
    if kind is type(None):
        return ()
    if not dataclasses.is_dataclass(kind):
        raise InputError(f"the parameters {kind.__qualname__!r} are not a dataclass")
    hints = typing.get_type_hints(kind)
    params = tuple(_param(kind, field, hints[field.name]) for field in dataclasses.fields(kind))
    flags = [flag for param in params for flag in param.flags]
    twice = sorted({flag for flag in flags if flags.count(flag) > 1})
    if twice:
        raise InputError(f"two parameters of {kind.__qualname__!r} share the flag {twice[0]!r}")
    return params


def params_to_json(params: object) -> dict[str, object]:
    """The values as JSON, a ModelId as `provider:name`."""
    if params is None:
        return {}
    return {param.name: _plain(getattr(params, param.name)) for param in params_of(type(params))}


def params_from_json(kind: type[P], values: Mapping[str, object]) -> P:
    """The parameters again; a field without a recorded value takes its default.

    Raises:
        InputError: a recorded value does not fit the class of today.
    """
    if kind is type(None):
        return None
    known = {param.name: param for param in params_of(kind)}
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise InputError(f"{kind.__qualname__!r} has no parameter {unknown[0]!r}")
    given = {name: _value(known[name], value) for name, value in values.items()}
    missing = [p.flags[-1] for p in known.values() if p.required and p.name not in given]
    if missing:
        raise InputError(f"{missing[0]} is required")
    return kind(**given)


def _param(owner: type, field: dataclasses.Field[Any], hint: Any) -> Param:
    implied = (("--" + field.name.replace("_", "-"),), "", False)
    flags, text, from_file = field.metadata.get(_KEY, implied)
    inner, optional = _without_none(hint)
    repeated = typing.get_origin(inner) is tuple and typing.get_args(inner) == (str, Ellipsis)
    choices: tuple[str, ...] = ()
    if repeated:
        inner = str
    elif typing.get_origin(inner) is Literal:
        choices, inner = typing.get_args(inner), str
    if inner not in _SCALARS or not all(isinstance(choice, str) for choice in choices):
        raise InputError(
            f"parameter {field.name!r} of {owner.__qualname__!r} has the type {hint!r}; use str,"
            " int, float, bool, ModelId, a Literal of texts, or tuple[str, ...]"
        )
    default = field.default
    factory: Any = field.default_factory
    if default is _MISSING and factory is not _MISSING:
        default = factory()
    return Param(field.name, flags, text, inner, choices, optional, repeated, default, from_file)


def _without_none(hint: Any) -> tuple[Any, bool]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        inner = [part for part in typing.get_args(hint) if part is not type(None)]
        if len(inner) == 1 and len(inner) < len(typing.get_args(hint)):
            return inner[0], True
    return hint, False


def _plain(value: object) -> object:
    if isinstance(value, ModelId):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def _value(param: Param, value: object) -> object:
    if value is None and param.optional:
        return None
    if param.repeated:
        if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
            return tuple(value)
    elif param.kind is ModelId and isinstance(value, ModelId):
        return value
    elif param.kind is ModelId and isinstance(value, str):
        return param.parse(value)
    elif param.kind is float and type(value) is int:
        return float(value)
    elif type(value) is param.kind and (not param.choices or value in param.choices):
        return value
    raise InputError(f"{param.flags[-1]} {value!r} does not fit parameter {param.name!r}")
