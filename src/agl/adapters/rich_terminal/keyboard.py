"""The person's keyboard: who may read it, and what it echoes."""

from __future__ import annotations

import os
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_LOCAL_MODES = 3  # the index in what tcgetattr returns


def is_in_front(fd: int) -> bool:
    """Whether this process may use the terminal: a job in the background would be stopped."""
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:  # it is not the terminal that controls this process
        return True


@contextmanager
def quiet(fd: int) -> Iterator[None]:
    """What is typed is not echoed, which would move what is drawn. Ctrl-C works on."""
    try:
        before = termios.tcgetattr(fd)
    except (termios.error, OSError):
        yield
        return
    silent = [*before]
    silent[_LOCAL_MODES] &= ~termios.ECHO
    _set_modes(fd, silent)
    try:
        yield
    finally:
        _set_modes(fd, before)


def forget_typed(fd: int) -> None:
    """Drops what was typed before anything was asked."""
    with suppress(termios.error, OSError):
        termios.tcflush(fd, termios.TCIFLUSH)


def _set_modes(fd: int, modes: list[int | list[bytes | int]]) -> None:
    if is_in_front(fd):
        with suppress(termios.error, OSError):
            termios.tcsetattr(fd, termios.TCSANOW, modes)
