"""Standard output belongs to the command's answer: what an author's code prints goes elsewhere."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import TextIO

_STDOUT, _STDERR = 1, 2


@contextmanager
def prints_apart() -> Iterator[Callable[[], None]]:
    """Until the end, or until what this yields is called, all that an author's code and its
    children print goes to standard error."""
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(sys.stderr))
        with suppress(OSError):  # what was closed when AGL started stays closed
            # Above 2, so that a closed standard error is not taken for this one.
            kept = fcntl.fcntl(_STDOUT, fcntl.F_DUPFD_CLOEXEC, 3)
            stack.callback(_put_back, kept, sys.__stdout__)
            _point_stdout_away()
        yield stack.close


def _point_stdout_away() -> None:
    try:
        os.dup2(_STDERR, _STDOUT)
    except OSError:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), _STDOUT)


def _put_back(kept: int, buffered: TextIO | None) -> None:
    if buffered is not None:
        with suppress(OSError, ValueError):
            buffered.flush()
    os.dup2(kept, _STDOUT)
    os.close(kept)
