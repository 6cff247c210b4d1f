"""Tools from plain functions."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import dataclasses
import inspect
import json
import typing
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Annotated, Any, get_args, get_origin, overload

from agl import schema
from agl.ports.agents import AgentTool, ToolAnswer
from agl.ports.errors import InputError

Function = Callable[..., Any]

_MAX_THREADS = 256


@overload
def tool(function: Function, /) -> AgentTool: ...


@overload
def tool(
    *, name: str | None = None, description: str | None = None
) -> Callable[[Function], AgentTool]: ...


def tool(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
) -> AgentTool | Callable[[Function], AgentTool]:
    """Makes a tool of a function, with or without arguments of its own: `@tool`, `@tool(name=…)`.

    The schema comes from the type hints, what it is for from the docstring, and a parameter's
    description from `Annotated[str, "…"]`. It may be `async`; else it runs in a thread, and who
    cancels a run waits for it. What it returns is shown as text, or as JSON.

    Raises:
        InputError: a parameter without a type, of a kind a model cannot pass, or no description.
    """

    def made(function: Function) -> AgentTool:
        return _tool(
            function,
            name or function.__name__,
            description or inspect.getdoc(function) or "",
        )

    return made if function is None else made(function)


def _tool(function: Function, name: str, description: str) -> AgentTool:
    if not description.strip():
        raise InputError(f"tool {name!r} has no description; give the function a docstring")
    payload = _payload(function, name)
    known = [field.name for field in dataclasses.fields(payload)]
    act = function if inspect.iscoroutinefunction(function) else partial(_in_thread, function)

    async def handler(arguments: object) -> ToolAnswer:
        problems = [
            f"{argument[:100]}: there is no such argument, only {', '.join(known) or 'none'}"
            for argument in (arguments if isinstance(arguments, dict) else ())
            if argument not in known
        ]
        try:
            given = schema.validate(payload, arguments)
        except schema.Invalid as error:
            problems += error.problems
        if problems:
            listed = "\n".join(f"- {problem}" for problem in problems)
            return ToolAnswer(f"Correct this and call again:\n{listed}", True, arguments_fit=False)
        return ToolAnswer(_shown(await act(**{key: getattr(given, key) for key in known})))

    wanted = {**schema.schema_of(payload), "additionalProperties": False}
    return AgentTool(name, description, wanted, handler)


def _payload(function: Function, name: str) -> type[Any]:
    """A dataclass with a field for each parameter."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise InputError(f"tool {name!r}: {error}; define its types in the module") from error
    fields: list[tuple[str, Any, Any]] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise InputError(f"tool {name!r}: a model cannot pass {parameter}; give it a name")
        if parameter.name not in hints:
            raise InputError(f"tool {name!r}: {parameter.name!r} has no type; annotate it")
        hint = hints[parameter.name]
        told = [note for note in get_args(hint)[1:] if isinstance(note, str)]
        metadata = {"description": told[0]} if get_origin(hint) is Annotated and told else {}
        fields.append((parameter.name, hint, _field(parameter.default, metadata)))
    return dataclasses.make_dataclass(name, fields, frozen=True)


def _field(default: object, metadata: Mapping[str, str]) -> Any:
    if default is inspect.Parameter.empty:
        return dataclasses.field(metadata=metadata, kw_only=True)
    if isinstance(default, Hashable):
        return dataclasses.field(default=default, metadata=metadata, kw_only=True)
    anew = partial(copy.deepcopy, default)
    return dataclasses.field(default_factory=anew, metadata=metadata, kw_only=True)


def _shown(value: object) -> str:
    if value is None:
        return "done"
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


async def _in_thread(function: Function, **arguments: object) -> object:
    """Runs the function in a thread. A thread cannot be stopped, so a cancellation waits for it."""
    work = partial(contextvars.copy_context().run, function, **arguments)
    job = _threads().submit(work)
    done = asyncio.wrap_future(job)
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        job.cancel()
        await _ended(done)
        raise


async def _ended(work: asyncio.Future[object]) -> None:
    while not work.done():
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:
            continue


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="agl-tool")
