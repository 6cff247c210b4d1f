"""The plan that the planner hands in, and what must hold of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from agl.sdk import InputError, describe

_ID = re.compile(r"[a-z0-9][a-z0-9-]*")
_TITLE_CHARS = 72


@dataclass(frozen=True)
class Chunk:
    """A part of the request that one agent implements by itself."""

    id: str = describe("a short name of lower-case letters, digits and dashes")
    title: str = describe(f"the subject of its commit: one line of at most {_TITLE_CHARS} letters")
    task: str = describe("all that its implementer must know")
    needs: tuple[str, ...] = describe("ids of the chunks that must have landed first", default=())


@dataclass(frozen=True)
class Plan:
    """The request, divided."""

    chunks: tuple[Chunk, ...]


def plan_of(most: int, name: Callable[[str], object]) -> type[Plan]:
    """The class of a plan of at most so many chunks; one that does not hold cannot be made, and its
    problems are told to the planner. `name` raises InputError for an id that cannot be used."""

    @dataclass(frozen=True)
    class CheckedPlan(Plan):
        """The request, divided."""

        def __post_init__(self) -> None:
            problems = tuple(_problems(self.chunks, most, name))
            if problems:
                raise ValueError("; ".join(problems))

    return CheckedPlan


def _problems(chunks: Sequence[Chunk], most: int, name: Callable[[str], object]) -> Iterator[str]:
    if not chunks:
        yield "there is no chunk; one is enough"
    if len(chunks) > most:
        yield f"there are {len(chunks)} chunks, and at most {most} are asked for"
    ids = [chunk.id for chunk in chunks]
    for one in sorted({one for one in ids if ids.count(one) > 1}):
        yield f"two chunks have the id {one!r}"
    for chunk in chunks:
        yield from _problems_of(chunk, ids, name)
    try:
        TopologicalSorter({chunk.id: chunk.needs for chunk in chunks}).prepare()
    except CycleError as error:
        yield f"chunks need each other in a circle: {', '.join(map(repr, error.args[1]))}"


def _problems_of(chunk: Chunk, ids: Sequence[str], name: Callable[[str], object]) -> Iterator[str]:
    if not _ID.fullmatch(chunk.id):
        yield f"the id {chunk.id!r} has more in it than lower-case letters, digits and dashes"
    else:
        try:
            name(chunk.id)
        except InputError as error:
            yield str(error)
    if not chunk.title.strip() or not chunk.title.isprintable():
        yield f"the title {chunk.title!r} of {chunk.id!r} is not one line of text"
    if len(chunk.title) > _TITLE_CHARS:
        yield f"the title of {chunk.id!r} has more than {_TITLE_CHARS} letters"
    if not chunk.task.strip():
        yield f"the task of {chunk.id!r} is empty"
    for need in chunk.needs:
        if need not in ids:
            yield f"{chunk.id!r} needs {need!r}, which is no chunk"
