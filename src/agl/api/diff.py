"""What a run, or a child of it, changed."""

from __future__ import annotations

from dataclasses import dataclass

from agl.api import reading
from agl.ports.errors import NotFoundError
from agl.ports.ids import Label
from agl.sdk._engine.services import Services


@dataclass(frozen=True, slots=True)
class Diff:
    """A patch from one commit to another. `namespace` is empty for the run itself."""

    label: str
    namespace: str
    base: str
    head: str
    patch: str


async def diff(services: Services, label: Label, namespace: str = "") -> Diff:
    """What the recorded steps and landings of a run changed since its base; with `namespace`, as
    `a/b`, those of that child since it began.

    Raises:
        NotFoundError: there is no such run, or no such child of it.
    """
    run = await reading.run(services, label)
    base, head = run.base, run.head
    if namespace:
        part = next((one for one in run.children if one.namespace == namespace), None)
        if part is None:
            known = ", ".join(repr(one.namespace) for one in run.children) or "none"
            raise NotFoundError(f"run {str(label)!r} has no child {namespace!r}; it has {known}")
        base, head = part.base, part.head
    return Diff(label, namespace, base, head, await services.history.patch(base, head))
