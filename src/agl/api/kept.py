"""What was set aside instead of destroyed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agl.ports.errors import InputError, NotFoundError
from agl.ports.ids import Label
from agl.ports.workspace import KeptItem
from agl.sdk._engine.services import Services

_MOST_SUBJECTS = 200


@dataclass(frozen=True, slots=True)
class KeptThing:
    """Something that was kept. `kind`: `commit` or `folder`; `subject`: the first line of a
    commit's message, empty where it says no more than `why`."""

    name: str
    kind: str
    label: str
    namespace: str
    when: str
    why: str
    subject: str
    commit: str | None
    folder: Path | None


async def items(services: Services, label: Label | None = None) -> tuple[KeptThing, ...]:
    """All that is kept of the project, or of one label, oldest first. Beyond 200, the older
    commits come without their subjects."""
    found = await services.kept.items(label)
    commits = [item.commit for item in found if item.commit is not None][-_MOST_SUBJECTS:]
    gone = await services.history.missing(commits)
    there = [commit for commit in dict.fromkeys(commits) if commit not in gone]
    subjects = {commit: await _subject(services, commit) for commit in there}
    return tuple(
        KeptThing(
            name=item.name,
            kind="folder" if item.commit is None else "commit",
            label=item.label,
            namespace=item.namespace,
            when=item.when,
            why=item.why,
            subject=subjects.get(item.commit or "", ""),
            commit=item.commit,
            folder=item.folder,
        )
        for item in found
    )


async def bring_back(services: Services, name: str, branch: str) -> KeptItem:
    """Makes a branch at what was kept under that name.

    Raises:
        NotFoundError: nothing is kept under that name.
        StateError: the branch exists, or what was kept is a folder.
        InputError: the branch's name is not one that git takes, or is one of AGL's own.
    """
    if branch.casefold().partition("/")[0] == "agl":
        raise InputError(
            f"branches called {branch!r} are those of AGL's own runs; give another name"
        )
    for item in await services.kept.items():
        if item.name == name:
            await services.kept.bring_back(item, branch)
            return item
    raise NotFoundError(f"nothing is kept as {name!r}; `agl recover` lists what there is")


async def _subject(services: Services, commit: str) -> str:
    first = (await services.history.message(commit)).partition("\n")[0]
    return "" if first.startswith("agl kept: ") else first
