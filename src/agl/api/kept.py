"""What was set aside instead of destroyed."""

from __future__ import annotations

from agl.ports.errors import NotFoundError
from agl.ports.ids import Label
from agl.ports.workspace import KeptItem
from agl.sdk._engine.services import Services


async def items(services: Services, label: Label | None = None) -> tuple[KeptItem, ...]:
    """All that is kept of the project, or of one label, oldest first."""
    return await services.kept.items(label)


async def bring_back(services: Services, name: str, branch: str) -> KeptItem:
    """Makes a branch at what was kept under that name.

    Raises:
        NotFoundError: nothing is kept under that name.
        StateError: the branch exists, or what was kept is a folder.
        InputError: the branch's name is not one that git takes.
    """
    for item in await services.kept.items():
        if item.name == name:
            await services.kept.bring_back(item, branch)
            return item
    raise NotFoundError(f"nothing is kept as {name!r}; `agl recover` lists what there is")
