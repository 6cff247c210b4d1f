"""How each chunk ended: for the chunks that wait for it, and for the person."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from agl.sdk import Rows, Screen
from agl.workflows.split.plan import Chunk


class State(Enum):
    WAITING = "waiting for a need"
    AT_WORK = "at work"
    LANDING = "waits to land"
    LANDED = "landed"
    NOTHING = "nothing"
    GIVEN_UP = "given up"


@dataclass(frozen=True)
class End:
    """How a chunk ended, or how far it is. `why`: what its implementer said, or why it was given
    up. `by_itself`: it was given up for what is wrong with it, not with a need of it; `again` then:
    what `--again` takes to try it once more, if that can help."""

    state: State
    why: str = ""
    is_needless: bool = False
    by_itself: bool = False
    again: str = ""


class Ends:
    """The ends of all chunks of a plan, as they come."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks
        self._ends = {
            chunk.id: End(State.WAITING if chunk.needs else State.AT_WORK) for chunk in chunks
        }
        self._over = {chunk.id: asyncio.Event() for chunk in chunks}

    async def of(self, chunk: str) -> End:
        """How that chunk ended, once it has."""
        await self._over[chunk].wait()
        return self._ends[chunk]

    def move(self, chunk: str, state: State) -> None:
        """That chunk, which has not ended, is so far."""
        self._ends[chunk] = End(state)

    def note(self, chunk: str, end: End) -> None:
        self._ends[chunk] = end
        self._over[chunk].set()

    def such(self, state: State) -> dict[str, End]:
        """The ends of that state, by the chunk's id."""
        return {chunk: end for chunk, end in self._ends.items() if end.state is state}

    @property
    def summary(self) -> str:
        """How many ended how, as in `2 landed, 1 given up`."""
        counts = [(len(self.such(state)), state.value) for state in State]
        return ", ".join(f"{count} {state}" for count, state in counts if count)

    def screen(self) -> Screen[object]:
        rows = [(chunk.id, self._ends[chunk.id].state.value, chunk.title) for chunk in self._chunks]
        return Screen(f"Chunks: {self.summary}", Rows(rows))
