"""What a run's workflow is made of, as one digest."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from agl.ports.errors import InputError
from agl.sdk._engine import fingerprints

GONE = "gone"
"""Stands for the digest of a file that is not there."""


def source_of(module: str) -> str:
    """The digest of the package that the workflow's module lies in, with its prompts; of the module
    alone when it lies in no package; and of the rules by which AGL makes fingerprints.

    Raises:
        InputError: the module has no file.
    """
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    if file is None:
        raise InputError(f"module {module!r} has no file, so a change of it could not be noticed")
    package = getattr(loaded, "__package__", "") or ""
    here = Path(file)
    if not package:
        content = {"": digest_of(here)}
    else:
        content = {
            path.relative_to(here.parent).as_posix(): digest_of(path)
            for path in sorted(here.parent.rglob("*"))
            if path.is_file() and _is_source(path.relative_to(here.parent))
        }
    return fingerprints.digest({"fingerprints": fingerprints.FORMAT, "files": content})


def _is_source(path: Path) -> bool:
    """Whether a file of a package counts: no compiled one, and none that an editor or a file
    manager leaves under a name that begins with a dot."""
    hidden = any(part.startswith(".") or part == "__pycache__" for part in path.parts)
    return not hidden and path.suffix != ".pyc"


def digests_of(files: Iterable[str]) -> Mapping[str, str]:
    """The present digest of each outside file."""
    return {file: digest_of(Path(file)) for file in sorted(set(files))}


def digest_of(file: Path) -> str:
    """The SHA-256 of a file's content, or GONE."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return GONE
