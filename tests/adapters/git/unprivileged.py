"""Running a piece of a test as a user to whom the modes of files mean something."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from adapters.git.hands import GitTrees

_NOBODY = 65534
_BECOME = ("--reuid", str(_NOBODY), "--regid", str(_NOBODY), "--clear-groups")


def as_a_plain_user(piece: Callable[[GitTrees], Coroutine[None, None, None]]) -> None:
    """Runs the piece on a new repository; as root, in a child that is not."""
    place = Path(os.path.realpath(tempfile.mkdtemp()))
    try:
        if os.geteuid() != 0:
            asyncio.run(piece(GitTrees(place)))
            return
        os.chown(place, _NOBODY, _NOBODY)
        if _as_nobody(place, "import agl, pytest, adapters.git.hands").returncode != 0:
            pytest.skip("neither is this a plain user, nor can one be made that reads the code")
        module = piece.__module__.removeprefix("tests.")
        ended = _as_nobody(
            place,
            "import asyncio, pathlib\n"
            "from adapters.git.hands import GitTrees\n"
            f"from {module} import {piece.__name__} as piece\n"
            f"asyncio.run(piece(GitTrees(pathlib.Path({str(place)!r}))))\n",
        )
        assert ended.returncode == 0, ended.stderr.decode()
    finally:
        for folder, names, _ in os.walk(place):
            for name in names:
                if not Path(folder, name).is_symlink():
                    Path(folder, name).chmod(0o700)
        shutil.rmtree(place)


def _as_nobody(place: Path, code: str) -> subprocess.CompletedProcess[bytes]:
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return subprocess.CompletedProcess((), 1)
    return subprocess.run(
        [setpriv, *_BECOME, sys.executable, "-c", code],
        cwd=place,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(place),
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        check=False,
    )
