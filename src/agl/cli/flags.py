"""The flags that a workflow declares, on the command line of `agl run`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from agl.cli.parsing import Parser
from agl.cli.words import metavar, needs
from agl.ports.errors import AglError, InputError, WorkflowFailed
from agl.sdk.params import Param, params_from_json, params_of

if TYPE_CHECKING:
    from agl.api.runs import Loaded

_PREFIX = "param_"


def add_flags(parser: Parser, loaded: Loaded) -> None:
    """Adds the workflow's own flags.

    Raises:
        InputError: one of them is AGL's own.
    """
    group = parser.add_argument_group(f"flags of {loaded.name}")
    for param in params_of(loaded.workflow.params):
        options: dict[str, Any] = {
            "dest": _PREFIX + param.name,
            "default": argparse.SUPPRESS,
            "required": param.required,
            "help": _help(param),
        }
        if param.is_switch:
            options["action"] = "store_true"
        else:
            options["action"] = "append" if param.repeated else "store"
            options["metavar"] = metavar(param.kind.__name__, param.choices)
        try:
            group.add_argument(*param.flags, **options)
        except argparse.ArgumentError as error:
            raise InputError(
                f"workflow {loaded.name!r}: parameter {param.name!r} takes a flag that is AGL's own"
                f" ({', '.join(param.flags)}); rename it in the workflow"
            ) from error


def params_from(args: argparse.Namespace, loaded: Loaded) -> object:
    """The workflow's parameters as they were typed.

    Raises:
        InputError: a value does not fit.
        WorkflowFailed: the author's own check of the parameters broke.
    """
    kind = loaded.workflow.params
    values: dict[str, object] = {}
    for param in params_of(kind):
        if hasattr(args, _PREFIX + param.name):
            values[param.name] = _value(param, getattr(args, _PREFIX + param.name))
    try:
        return params_from_json(kind, values)
    except AglError:
        raise
    except ValueError as error:
        raise InputError(f"workflow {loaded.name!r}: {error}") from error
    except Exception as error:
        raise WorkflowFailed(
            f"workflow {loaded.name!r} cannot take its parameters: {type(error).__name__}: {error}"
        ) from error


def _value(param: Param, typed: object) -> object:
    if isinstance(typed, list):
        return tuple(param.parse(text) for text in typed)
    return param.parse(typed) if isinstance(typed, str) else typed


def _help(param: Param) -> str:
    default = None if param.required else param.default
    need = needs(default, required=param.required, repeated=param.repeated)
    text = f"{param.help} ({need})".lstrip() if need else param.help
    return text.replace("%", "%%")  # argparse formats help with %
