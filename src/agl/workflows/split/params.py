"""What `split` is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agl.sdk import Claude, InputError, ModelId, arg


@dataclass(frozen=True)
class Params:
    """What is asked, of whom, how far it is divided, and what is done where a landing waits."""

    request: str = arg(
        "-r", "--request", from_file=True, help="what to do; @FILE reads a file, - standard input"
    )
    chunks: int = arg("--chunks", default=4, help="into how many chunks at most")
    verify: bool = arg(
        "--verify", default=False, help="run the build on each chunk before it lands, too"
    )
    on_conflict: Literal["ask", "stop", "repair", "skip"] = arg(
        "--on-conflict",
        default="ask",
        help="where a chunk conflicts, or the build is red with it: ask the person (where nobody is"
        " there, the run ends and can be resumed), stop the run, let the implementer repair it and"
        " give the chunk up when --rounds are over, or skip it, that is, give it up at once",
    )
    rounds: int = arg("--rounds", default=3, help="how many repairs of one chunk at most")
    planner: ModelId = arg("--planner", default=Claude.OPUS, help="who divides")
    implementer: ModelId = arg("--implementer", default=Claude.OPUS, help="who writes and repairs")

    def __post_init__(self) -> None:
        if not self.request.strip():
            raise InputError("the request is empty; say with --request what to do")
        if self.chunks < 1:
            raise InputError(f"--chunks {self.chunks} is less than 1; give 1 or more")
        if self.rounds < 0:
            raise InputError(f"--rounds {self.rounds} is less than 0; give 0 or more")
