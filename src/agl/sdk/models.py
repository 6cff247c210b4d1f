"""Models by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from agl.ports.models import ModelId


def Scripted(path: str | Path) -> ModelId:
    """An agent that does what a JSON file says; offline. A relative path starts at the current
    folder."""
    return ModelId.parse(f"scripted:{path}")


def Anthropic(name: str, *, effort: str | None = None, thinking: str | None = None) -> ModelId:
    """A model behind Anthropic's Messages API, in the built-in loop. `effort`: low to max;
    `thinking`: adaptive, disabled, or a number of tokens. None leaves it to the model."""
    return _made("anthropic", name, effort=effort, thinking=thinking)


def OpenAICompatible(name: str, *, effort: str | None = None) -> ModelId:
    """A model behind any server that speaks OpenAI's chat completions, in the built-in loop."""
    return _made("openai_compatible", name, effort=effort)


def _made(provider: str, name: str, **settings: str | None) -> ModelId:
    given = tuple((key, value) for key, value in sorted(settings.items()) if value is not None)
    return replace(ModelId.parse(f"{provider}:{name}"), settings=given)
