"""What `fix` has found so far, for the person who looks on."""

from __future__ import annotations

from collections.abc import Sequence

from agl.sdk import Row, Rows, Screen, Verdict
from agl.workflows.fix.roles import Finding

_SEVERITIES = ("high", "medium", "low")


class Progress:
    """The round, the last build, and the last review of what that build was run on."""

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds
        self._turn = 0
        self._is_done = False
        self._verdict: Verdict | None = None
        self._findings: Sequence[Finding] | None = None

    def built(self, verdict: Verdict) -> None:
        self._verdict, self._findings = verdict, None

    def reviewed(self, findings: Sequence[Finding]) -> None:
        self._findings = sorted(findings, key=lambda one: _SEVERITIES.index(one.severity))

    def repairs(self) -> None:
        """The next round begins."""
        self._turn += 1

    def done(self) -> None:
        self._is_done = True

    def screen(self) -> Screen[object]:
        findings = self._findings or ()
        said = []
        if self._verdict is not None:
            said.append(Row("build", _said_of(self._verdict)))
        if self._findings is not None:
            said.append(Row("review", _count(len(findings))))
        rows = [(one.severity, one.file, " ".join(one.problem.split())) for one in findings]
        return Screen(self._title, *([Rows(said)] if said else []), *([Rows(rows)] if rows else []))

    @property
    def _title(self) -> str:
        if self._is_done:
            left = len(self._findings or ())
            return f"Done; {_count(left)} left" if left else "Done"
        rounds = "round" if self._rounds == 1 else "rounds"
        if not self._turn:
            return f"First attempt, then at most {self._rounds} {rounds} of repair"
        return f"Round {self._turn} of {self._rounds} of repair"


def _count(findings: int) -> str:
    return f"{findings or 'no'} finding{'' if findings == 1 else 's'}"


def _said_of(verdict: Verdict) -> str:
    if verdict.passed:
        return "passed"
    note = f" ({verdict.note})" if verdict.note else ""
    last = [line.strip() for line in verdict.tail.splitlines() if line.strip()][-1:]
    return ": ".join((f"failed with status {verdict.status}{note}", *last))
