"""One process at a time on a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from agl.ports.errors import RunIsLive
from agl.ports.ids import Scope, collision_key
from agl.ports.locks import LockHeld
from agl.sdk._engine.services import Services

LOCK_WAIT_S = 1.0


@contextmanager
def held(services: Services, root: Scope, *, wait_s: float = LOCK_WAIT_S) -> Iterator[None]:
    """Holds the run's lock.

    Raises:
        RunIsLive: another process is at work on the run.
    """
    try:
        lock = services.locks.hold(lock_of(root), wait_s=wait_s)
        with lock:
            yield
    except LockHeld as error:
        raise RunIsLive(
            f"run {root.label!r} is at work in {error.holder}; wait for it, or stop it there with"
            " Ctrl-C"
        ) from error


def lock_of(root: Scope) -> tuple[str, ...]:
    """The name of a run's lock; labels that are one name share it."""
    return (root.project, collision_key(root.label))
