"""What may not change behind a run's back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """The repository around a run at one moment, each part as text that differs when it changed.

    `branches`: the commit of each branch that was asked for, None when it is not there.
    `broken_config`: what is wrong with the shared configuration in one sentence with the repair, or
    None. `config`, `shallow`, `stash`, `checkout`: fingerprints of the shared configuration file,
    the shallow file, the stash, and the user's checkout (its HEAD and branch).
    """

    branches: Mapping[str, str | None]
    broken_config: str | None
    config: str
    shallow: str
    stash: str
    checkout: str


class Guards(ABC):
    """Reads what a step must not have touched."""

    @abstractmethod
    async def read(self, branches: tuple[str, ...]) -> Reading:
        """One reading. Reads files and starts no process where the ref format allows it."""
