"""The project's build."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agl.ports.processes import Marker


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the build said. `status` is its exit status, `tail` the end of its output in the order
    in which it came, `note` a remark of AGL's own (that it ran out of time, say)."""

    passed: bool
    status: int
    tail: str
    note: str = ""


Judge = Callable[[Path, str], bool | Verdict]
"""Makes a verdict from a tree and a command."""

Verdicts = Judge | Sequence[bool | Verdict]
"""Verdicts given beforehand: one after another, or by a function."""


class Verifier(ABC):
    """Runs the build in a tree. A failing build is a verdict, not an error."""

    @abstractmethod
    async def verify(self, tree: Path, command: str, timeout_s: float, marker: Marker) -> Verdict:
        """Runs the command line in the tree, to its end or for `timeout_s` seconds; every process
        it started is gone when this returns.

        Raises:
            UpstreamError: no shell could be started.
        """
