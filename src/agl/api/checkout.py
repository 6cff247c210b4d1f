"""The user's checkout: what in it is not part of a run, and what changed while one was at work."""

from __future__ import annotations

import os
from collections.abc import Mapping

from agl.ports.errors import UpstreamError
from agl.sdk._engine.services import Services

Look = Mapping[str, tuple[int, int] | None]
"""The uncommitted paths, each with its time of change in ns and its size, None when it is gone."""

_UNKNOWN: Look = {}


async def look(services: Services) -> Look:
    """The checkout as it is; empty in a bare repository, and where git cannot tell: no run depends
    on it."""
    folder = services.checkout
    if folder is None:
        return _UNKNOWN
    try:
        paths = await services.history.uncommitted(folder)
    except UpstreamError:
        return _UNKNOWN
    return {path: _stat(os.path.join(folder, path)) for path in paths}


def changed(before: Look, after: Look) -> tuple[str, ...]:
    """The paths that became dirty or clean, or are dirty in another way, sorted."""
    if before is _UNKNOWN or after is _UNKNOWN:
        return ()
    return tuple(
        sorted(
            path
            for path in before.keys() | after.keys()
            if path not in before or path not in after or before[path] != after[path]
        )
    )


def shown(paths: tuple[str, ...]) -> str:
    """The first paths, for a sentence."""
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return ", ".join(repr(path) for path in paths[:3]) + more


def _stat(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
