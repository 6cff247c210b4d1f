"""The workflows that can be run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agl.config import registry

if TYPE_CHECKING:
    from agl.api.runs import Loaded
    from agl.sdk.params import Param


@dataclass(frozen=True, slots=True)
class Installed:
    """An installed workflow and the `module:attribute` that holds it."""

    name: str
    source: str


@dataclass(frozen=True, slots=True)
class Parameter:
    """One flag of a workflow. `default` is JSON, None also when it is required."""

    name: str
    flags: tuple[str, ...]
    help: str
    kind: str
    choices: tuple[str, ...]
    required: bool
    repeated: bool
    default: object


@dataclass(frozen=True, slots=True)
class Description:
    """A workflow with what it says of itself."""

    name: str
    version: str
    help: str
    parameters: tuple[Parameter, ...]


def listing() -> tuple[Installed, ...]:
    """The installed workflows by name; imports none of them."""
    return tuple(Installed(name, source) for name, source in registry.names().items())


def load(name: str) -> Loaded:
    """One workflow, imported, to be run.

    Raises:
        NotFoundError, InputError, WorkflowFailed: as `registry.load`.
    """
    from agl.api.runs import Loaded

    return Loaded(*registry.load(name))


def details(name: str) -> Description:
    """One workflow, imported: a name of the listing, or a file.

    Raises:
        NotFoundError, InputError, WorkflowFailed: as `registry.load`.
    """
    from agl.sdk.params import params_of

    found, workflow = registry.load(name)
    parameters = tuple(_parameter(param) for param in params_of(workflow.params))
    return Description(found, workflow.version, workflow.help, parameters)


def _parameter(param: Param) -> Parameter:
    from agl.ports.models import ModelId

    default = None if param.required else param.default
    return Parameter(
        name=param.name,
        flags=param.flags,
        help=param.help,
        kind=param.kind.__name__,
        choices=param.choices,
        required=param.required,
        repeated=param.repeated,
        default=str(default) if isinstance(default, ModelId) else default,
    )
