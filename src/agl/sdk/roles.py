"""Roles: what an agent is told, what it may do, and what it hands in."""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

from agl.ports.errors import InputError
from agl.ports.ids import Name
from agl.ports.models import Capability, ModelId, Restriction
from agl.ports.reasons import reason
from agl.sdk.tools import ReportingTool, Tool

P = TypeVar("P")
P_co = TypeVar("P_co", covariant=True)
A = ParamSpec("A")


class StepName(Name):
    """A role's name, which is its steps' name."""

    __slots__ = ()
    kind = "role name"


class Role(Generic[P_co]):
    """What is asked of an agent. `Role[P]` reports a P; a role without a reporting tool is a
    `Role[None]`. Immutable; the model is bound by `@role`.

    Raises:
        InputError: a text is empty, two tools share a name, or there are two reporting tools.
    """

    __slots__ = ("instructions", "model", "name", "requires", "restrictions", "tools")

    name: StepName
    instructions: str
    restrictions: frozenset[Restriction]
    tools: tuple[Tool | ReportingTool[P_co], ...]
    requires: frozenset[Capability]
    model: ModelId | None

    @overload
    def __init__(
        self: Role[None],
        *,
        name: str,
        instructions: str,
        restrictions: Iterable[Restriction] = (),
        tools: Sequence[Tool] = (),
        requires: Iterable[Capability] = (),
    ) -> None: ...

    @overload
    def __init__(
        self: Role[P],
        *,
        name: str,
        instructions: str,
        restrictions: Iterable[Restriction] = (),
        tools: Sequence[Tool | ReportingTool[P]],
        requires: Iterable[Capability] = (),
    ) -> None: ...

    def __init__(
        self,
        *,
        name: str,
        instructions: str,
        restrictions: Iterable[Restriction] = (),
        tools: Sequence[Tool | ReportingTool[Any]] = (),
        requires: Iterable[Capability] = (),
    ) -> None:
        if not instructions.strip():
            raise InputError(f"role {name!r} has no instructions")
        names = [one.name for one in tools]
        if len(set(names)) != len(names):
            raise InputError(f"role {name!r} has two tools of one name")
        if sum(isinstance(one, ReportingTool) for one in tools) > 1:
            raise InputError(f"role {name!r} has two reporting tools; a step has one result")
        needs = frozenset(requires) | ({Capability.TOOL_CALLING} if tools else frozenset())
        self._set(StepName(name), instructions, frozenset(restrictions), tuple(tools), needs, None)

    def _set(self, *values: object) -> None:
        names = ("name", "instructions", "restrictions", "tools", "requires", "model")
        for name, value in zip(names, values, strict=True):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a role is immutable; make another one instead of setting {name!r}")

    def __repr__(self) -> str:
        return f"Role(name={str(self.name)!r}, model={str(self.model) if self.model else None!r})"

    def on(self, model: ModelId) -> Role[P_co]:
        """The same role, on that model."""
        made: Role[P_co] = object.__new__(type(self))
        made._set(self.name, self.instructions, self.restrictions, self.tools, self.requires, model)
        return made

    @property
    def may_write(self) -> bool:
        return Restriction.NO_FILE_WRITES not in self.restrictions

    @property
    def reporting(self) -> ReportingTool[P_co] | None:
        """The tool through which the result is handed in, or None."""
        return next((one for one in self.tools if isinstance(one, ReportingTool)), None)


class RoleFactory(Generic[A, P]):
    """A factory of roles with its model, as `@role` makes it; preflight asks it for the model."""

    def __init__(self, make: Callable[A, Role[P]], model: ModelId | None) -> None:
        self._make = make
        self.model = model
        functools.update_wrapper(cast(Any, self), make)

    def __call__(self, *args: A.args, **kwargs: A.kwargs) -> Role[P]:
        chosen = self.model
        if chosen is None:
            asked = kwargs.pop("model", None)
            if not isinstance(asked, ModelId):
                name = getattr(self._make, "__name__", "the role")
                raise InputError(f"{name}(model=…) takes a model, as in model=run.params.model")
            chosen = asked
        return self._make(*args, **kwargs).on(chosen)


@overload
def role(*, model: ModelId) -> Callable[[Callable[A, Role[P]]], RoleFactory[A, P]]: ...


@overload
def role() -> Callable[[Callable[..., Role[P]]], Callable[..., Role[P]]]: ...


def role(*, model: ModelId | None = None) -> Callable[[Callable[..., Role[Any]]], Any]:
    """Makes a factory of roles on a model. Without one, the factory is called with `model=`."""
    return lambda make: RoleFactory(make, model)


def prompt_file(path: str | Path) -> str:
    """The text of a prompt's file; a relative path starts at the caller's own file. The file counts
    as source of the workflow: a run that meets it changed begins a new epoch.

    Raises:
        InputError: the file cannot be read as UTF-8.
    """
    caller = Path(sys._getframe(1).f_globals.get("__file__", "."))
    place = (caller.parent / path).resolve()
    try:
        content = place.read_bytes()
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"prompt file {str(place)!r} cannot be read: {reason(error)}") from error
    _taken_in[str(place)] = hashlib.sha256(content).hexdigest()
    return text


_taken_in: dict[str, str] = {}


def files_taken_in() -> Mapping[str, str]:
    """The prompt files that this process has read, each with the digest of what it read."""
    return MappingProxyType(_taken_in)
