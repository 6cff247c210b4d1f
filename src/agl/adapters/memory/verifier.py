"""A build whose verdicts are given beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agl.ports.errors import InternalError
from agl.ports.processes import Marker
from agl.ports.verifier import Judge, Verdict, Verdicts, Verifier


class MemoryVerifier(Verifier):
    """Takes its verdicts one after another from `verdicts`, or asks it as a function of tree and
    command. `calls` holds each (command, tree), in order."""

    def __init__(self, verdicts: Verdicts) -> None:
        self._judge = verdicts if callable(verdicts) else _in_turn(verdicts)
        self.calls: list[tuple[str, Path]] = []

    async def verify(self, tree: Path, command: str, timeout_s: float, marker: Marker) -> Verdict:
        self.calls.append((command, tree))
        verdict = self._judge(tree, command)
        if isinstance(verdict, Verdict):
            return verdict
        return Verdict(passed=verdict, status=0 if verdict else 1, tail="")


def _in_turn(verdicts: Sequence[bool | Verdict]) -> Judge:
    left = iter(verdicts)

    def judge(tree: Path, command: str) -> bool | Verdict:
        try:
            return next(left)
        except StopIteration:
            raise InternalError(
                f"no verdict is left for {command!r} after {len(verdicts)}; give one more"
            ) from None

    return judge
