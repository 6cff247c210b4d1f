"""`@workflow`: what makes an async function a workflow."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from agl.ports.errors import InputError
from agl.sdk.params import params_of
from agl.sdk.run import Run

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Workflow(Generic[P]):
    """A workflow's function with its version and the class of its parameters (NoneType: none)."""

    function: Callable[[Run[P]], Awaitable[None]]
    version: str
    params: type

    @property
    def help(self) -> str:
        """The function's docstring, cleaned."""
        return inspect.getdoc(self.function) or ""

    @property
    def module(self) -> str:
        return self.function.__module__


def workflow(*, version: str) -> Callable[[Callable[[Run[P]], Awaitable[None]]], Workflow[P]]:
    """Makes a workflow of `async def name(run: Run[Params]) -> None`. Change `version` when its
    shape changes: a run that was begun under another version is not resumed.

    Raises:
        InputError: the version is empty, or the function is not of that form.
    """
    if not isinstance(version, str) or not version:
        raise InputError("@workflow(version=…) takes a text, as in version='1'")

    def decorate(function: Callable[[Run[P]], Awaitable[None]]) -> Workflow[P]:
        return Workflow(function, version, _params_class(function))

    return decorate


def _params_class(function: Callable[..., object]) -> type:
    name = getattr(function, "__qualname__", repr(function))
    if not inspect.iscoroutinefunction(function):
        raise InputError(f"workflow {name!r} is not an async function")
    parameters = list(inspect.signature(function).parameters)
    if len(parameters) != 1:
        raise InputError(f"workflow {name!r} takes one argument, its run: Run[…]")
    try:
        hint = typing.get_type_hints(function).get(parameters[0])
    except NameError as error:
        raise InputError(f"workflow {name!r}: {error}") from error
    if typing.get_origin(hint) is not Run:
        raise InputError(f"workflow {name!r}: annotate its argument, as in run: Run[Params]")
    (kind,) = typing.get_args(hint)
    params_of(kind)
    return typing.cast(type, kind)
