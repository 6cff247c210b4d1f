"""What the three wires have in common: an answer as events, an answer as a whole, an error."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from servers.turns import Failure, Turn

Json = dict[str, Any]
Event = tuple[str | None, Json | str]
"""The name of an event, where the wire has names, and its data."""


@dataclass(frozen=True)
class Said:
    """An error as a vendor words it."""

    status: int
    type: str
    message: str
    code: str | None = None


class Wire(ABC):
    """How one vendor's API speaks."""

    name: str
    errors: Mapping[str, Said]

    @abstractmethod
    def events(self, turn: Turn, asked: Json, quirks: frozenset[str]) -> list[Event]:
        """The stream of an answer."""

    @abstractmethod
    def whole(self, turn: Turn, asked: Json) -> Json:
        """The answer in one piece."""

    @abstractmethod
    def error_body(self, said: Said) -> Json:
        """The body of a failure."""

    @abstractmethod
    def error_event(self, said: Said) -> Event:
        """A failure within the stream."""

    def said(self, kind: str, failure: Failure) -> Said:
        known = self.errors[kind]
        return Said(
            failure.status or known.status,
            known.type,
            known.message if failure.message is None else failure.message,
            known.code if failure.code is None else failure.code,
        )


def encoded(event: Event, quirks: frozenset[str]) -> bytes:
    """One server-sent event."""
    name, data = event
    end = "\r\n" if "crlf" in quirks else "\n"
    space = "" if "no_space" in quirks else " "
    text = data if isinstance(data, str) else json.dumps(data)
    lines = [f"event:{space}{name}"] if name is not None else []
    lines.append(f"data:{space}{text}")
    comment = f": still here{end}{end}" if "comments" in quirks else ""
    return (comment + end.join(lines) + end + end).encode()
