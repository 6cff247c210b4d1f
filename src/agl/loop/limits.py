"""How far a run may go."""

from __future__ import annotations

from dataclasses import dataclass

from agl.loop.trajectory import Trajectory
from agl.ports.errors import LimitReached, UpstreamError


@dataclass(frozen=True, slots=True)
class Limits:
    """None: no limit. What a checkpoint holds counts, but for the time, which is that of one `run`.

    `turns`: answers of the model. `tokens`: in and out. `unfit_turns`: turns in a row in which no
    call had arguments that could be used.
    """

    turns: int | None = 1_000
    tokens: int | None = None
    cost_usd: float | None = None
    time_s: float | None = None
    unfit_turns: int = 5

    def check(self, state: Trajectory) -> None:
        """Refuses one more call of the model.

        Raises:
            LimitReached: with what to raise.
            UpstreamError: the model cannot get its calls right.
        """
        usage = state.usage
        if state.unfit_turns >= self.unfit_turns:
            raise UpstreamError(
                f"model {state.model!r} sent arguments that no tool can use in {state.unfit_turns}"
                " turns one after another; try another model"
            )
        if self.turns is not None and state.turns >= self.turns:
            raise LimitReached(f"the limit of {self.turns} turns is reached; raise `turns`")
        used = usage.input_tokens + usage.output_tokens
        if self.tokens is not None and used >= self.tokens:
            raise LimitReached(
                f"{used} tokens are used, the limit is {self.tokens}; raise `tokens`"
            )
        if self.cost_usd is None or usage.is_nothing:
            return
        if usage.cost_usd is None:
            raise LimitReached(
                f"the price of model {state.model!r} is not known, so the limit of"
                f" {self.cost_usd:g} USD cannot be kept; limit `tokens` instead"
            )
        if usage.cost_usd >= self.cost_usd:
            raise LimitReached(
                f"{usage.cost_usd:g} USD are spent, the limit is {self.cost_usd:g};"
                " raise `cost_usd`"
            )
