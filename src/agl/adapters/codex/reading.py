"""What the program tells, read whatever shape it has: what is not as it should be is not there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]


def part(told: Mapping[str, Any], name: str) -> Json:
    """The object of that name."""
    found = told.get(name)
    return found if isinstance(found, dict) else {}


def parts(told: Mapping[str, Any], name: str) -> list[Json]:
    """The objects in the list of that name."""
    found = told.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def word(told: Mapping[str, Any], name: str) -> str:
    found = told.get(name)
    return found if isinstance(found, str) else ""


def number(told: Mapping[str, Any], name: str) -> int:
    found = told.get(name)
    return int(found) if isinstance(found, int | float) and abs(found) < 2**63 else 0
