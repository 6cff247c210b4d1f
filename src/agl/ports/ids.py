"""Names that become paths and branches, checked once where they enter and trusted after."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

from agl.ports.errors import InputError

_ALLOWED = re.compile(r"[A-Za-z0-9._-]+")
# HEAD: git-rev-parse(1) reads it as what is checked out, in a branch of any case on some systems.
_RESERVED = frozenset({"_base", "_work", "_kept", "head"})
_MAX_BYTES = 100
# Device names that Windows refuses as a file name, with or without an extension
# (Microsoft, "Naming Files, Paths, and Namespaces").
_WINDOWS = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)

_N = TypeVar("_N", bound="Name")


class Name(str):
    """A text that is safe as a folder, as a part of a git ref, and on Windows."""

    __slots__ = ()
    kind: ClassVar[str] = "name"

    def __new__(cls: type[_N], text: str) -> _N:
        problem = _problem(text)
        if problem is not None:
            raise InputError(
                f"{cls.kind} {text!r} {problem}; use A-Z a-z 0-9 . _ - (at most {_MAX_BYTES} bytes)"
            )
        return super().__new__(cls, text)


class Label(Name):
    """A run's name, unique in its project."""

    __slots__ = ()
    kind = "label"


class Namespace(Name):
    """A child run's name, unique below its parent."""

    __slots__ = ()
    kind = "namespace"


class ProjectName(Name):
    """A registered repository's name."""

    __slots__ = ()
    kind = "project name"


def _problem(text: str) -> str | None:
    if not text:
        return "is empty"
    if not _ALLOWED.fullmatch(text):
        return "has a character that a branch or a folder cannot hold"
    if len(text.encode()) > _MAX_BYTES:
        return "is too long"
    if text.casefold() in _RESERVED:
        return "is reserved"
    # git-check-ref-format(1): no part may begin with a dot, end with ".lock" or hold "..";
    # a leading dash would be read as a flag.
    if text[0] in ".-" or text.endswith((".", ".lock")) or ".." in text:
        return "cannot be a part of a branch name"
    if _WINDOWS.fullmatch(text):
        return "is a device name on Windows"
    return None


def collision_key(text: str) -> str:
    """Two names with one key are one folder on some file system, so they count as the same name."""
    return unicodedata.normalize("NFC", text.casefold())


@dataclass(frozen=True, slots=True)
class Scope:
    """Where steps are counted and a tree belongs: a run, or a child of it down a path of names."""

    project: ProjectName
    label: Label
    path: tuple[Namespace, ...] = field(default=())

    @property
    def branch(self) -> str:
        """The branch that the scope's tree has checked out, without `refs/heads/`."""
        if not self.path:
            return f"agl/{self.label}"
        return f"agl/_work/{self.label}/{'+'.join(self.path)}"

    @property
    def tree(self) -> str:
        """The name of the scope's folder below the run's trees."""
        return "+".join(self.path) or "_base"

    @property
    def parent(self) -> Scope:
        """The scope that a child is a child of; the run's own scope has none."""
        return Scope(self.project, self.label, self.path[:-1])

    def child(self, namespace: Namespace) -> Scope:
        return Scope(self.project, self.label, (*self.path, namespace))
