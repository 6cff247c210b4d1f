"""Models by name."""

from __future__ import annotations

from pathlib import Path

from agl.ports.models import ModelId


def Scripted(path: str | Path) -> ModelId:
    """An agent that does what a JSON file says; offline. A relative path starts at the current
    folder."""
    return ModelId.parse(f"scripted:{path}")
