"""Keeping commits that nothing else would hold."""

from __future__ import annotations

from collections.abc import Iterable

from agl.adapters.git.kept_refs import keep_tip
from agl.adapters.git.runner import GitAt
from agl.ports.clock import Clock
from agl.ports.workspace import Keeping, KeptItem


async def keep_lost(
    git: GitAt,
    commits: Iterable[str | None],
    keeping: Keeping,
    clock: Clock,
    *,
    safe: Iterable[str] = (),
) -> list[KeptItem]:
    """Keeps those of the commits that neither `safe` nor any ref contains, the branch of the scope
    itself not counted."""
    held = tuple(safe)
    unsure = list(dict.fromkeys(one for one in commits if one and one not in held))
    if not unsure:
        return []
    answer = await git.run(
        "rev-list",
        "--parents",
        "--ignore-missing",
        *unsure,
        "--not",
        *held,
        f"--exclude={keeping.scope.branch}",
        "--branches",
        "--tags",
        "--remotes",
        "--glob=refs/agl/kept",
        "--glob=refs/stas[h]",
    )
    rows = [line.split() for line in answer.text.splitlines()]
    inner = {parent for row in rows for parent in row[1:]}
    tips = [row[0] for row in rows if row[0] not in inner]
    return [await keep_tip(git, tip, keeping, clock.now()) for tip in tips]
