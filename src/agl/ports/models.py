"""Which model a role runs on, what an agent may do, and what it used."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from agl.ports.errors import InputError

_SPELLING = re.compile(r"([a-z][a-z0-9_]*):(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ModelId:
    """A model as `provider:name`, with the settings that belong to its identity (effort, say)."""

    provider: str
    name: str
    settings: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> ModelId:
        """Reads `provider:name`. The PATH of `scripted:PATH` is made absolute here, so that a
        resume from another folder finds the same file.

        Raises:
            InputError: the text is not of that form.
        """
        match = _SPELLING.fullmatch(text)
        if match is None:
            raise InputError(f"model {text!r} is not spelled provider:name, as in claude_code:opus")
        provider, name = match.groups()
        return cls(provider, os.path.abspath(name) if provider == "scripted" else name)

    def __str__(self) -> str:
        return f"{self.provider}:{self.name}"


class Restriction(Enum):
    """What an agent may not do. The values are stored text: never renamed."""

    NO_FILE_WRITES = "no_file_writes"
    NO_SHELL = "no_shell"
    NO_NETWORK = "no_network"
    NO_VCS_WRITES = "no_vcs_writes"


SandboxMode = Literal["auto", "require", "off"]
"""Whether the operating system confines what an agent's shell does. `auto`: where a restriction
asks for it and the machine has it. `require`: always, and no work without. `off`: never."""


class Capability(Enum):
    """What a backend can do for a role. The values are stored text: never renamed."""

    FILE_EDIT = "file_edit"
    SHELL = "shell"
    TOOL_CALLING = "tool_calling"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and money of one or more model calls. `input_tokens` are all that went in,
    `cached_tokens` those of them that came from a cache. `cost_usd` None: the price is not known.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None

    def __add__(self, other: Usage) -> Usage:
        """The sum. A price is known only if it is known of every part that used tokens."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            _sum_of_prices(self, other),
        )

    @property
    def is_nothing(self) -> bool:
        return self == Usage()


def _sum_of_prices(left: Usage, right: Usage) -> float | None:
    if left.is_nothing:
        return right.cost_usd
    if right.is_nothing:
        return left.cost_usd
    if left.cost_usd is None or right.cost_usd is None:
        return None
    return left.cost_usd + right.cost_usd
