"""`Landing`: what came of `integrate`."""

from __future__ import annotations

from agl.ports.integrator import Conflict
from agl.ports.verifier import Verdict
from agl.sdk._engine.landing import LandingAtWork
from agl.sdk._engine.landings import State
from agl.sdk._engine.state import RunState


class Landing:
    """What came of a landing; recorded, so that a workflow can branch on it.

    While it is `conflicted`, the parent's tree is held: nothing else lands or runs there until
    `retry` or `abort` was called. A person or an agent can resolve the conflict in between.
    """

    def __init__(self, at_work: LandingAtWork, run: RunState) -> None:
        self._at_work = at_work
        self._run = run

    @property
    def landed(self) -> bool:
        """The child's commits are in the parent, and the build passed on them."""
        return self._at_work.last.state is State.LANDED

    @property
    def nothing(self) -> bool:
        """The parent had them all before."""
        return self._at_work.last.state is State.NOTHING

    @property
    def conflicted(self) -> bool:
        """The landing waits: for a conflict to be resolved, or for a red build. False once it is
        settled."""
        return self._at_work.is_open

    @property
    def refused_by_the_gate(self) -> bool:
        """It merged, and the build failed on it."""
        return self._at_work.last.state is State.REFUSED

    @property
    def conflict(self) -> Conflict:
        """Every path that could not be merged, and why in plain words; none for a red build."""
        return self._at_work.last.conflict

    @property
    def verdict(self) -> Verdict | None:
        """The build's verdict on the landing; None when no build was run."""
        return self._at_work.last.verdict

    @property
    def head(self) -> str:
        """The commit that the parent is at: the merge, if it has landed."""
        return self._at_work.last.head

    async def retry(self) -> None:
        """Takes what was resolved in the parent's tree as the merge, or, if the child has moved
        since, merges anew; then builds again.

        Raises:
            StateError: it is settled, or another task's call on it is at work.
            UpstreamError: git or the disk failed; it is settled, and has not landed.
        """
        with self._run.call():
            await self._at_work.retry()

    async def abort(self) -> None:
        """Gives the landing up: the parent is at its head again, and what was typed in its tree is
        kept.

        Raises:
            StateError: it is settled, or another task's call on it is at work.
            UpstreamError: git or the disk failed; it is settled.
        """
        with self._run.call():
            await self._at_work.abort()
