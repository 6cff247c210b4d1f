"""Models by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

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


class _ClaudeModels:
    """Models in Claude Code, with its own login. `Claude(name)` is any that it knows by that name;
    `effort`: low to max. None leaves it to the program."""

    OPUS: Final = ModelId("claude_code", "opus")
    SONNET: Final = ModelId("claude_code", "sonnet")
    HAIKU: Final = ModelId("claude_code", "haiku")
    FABLE: Final = ModelId("claude_code", "fable")

    def __call__(self, name: str, *, effort: str | None = None) -> ModelId:
        return _made("claude_code", name, effort=effort)


Claude = _ClaudeModels()


class _CodexModels:
    """Models in Codex, with its own login. `Codex(name)` is any that it knows by that name, and the
    newest of a family by the family's; `effort`: low to ultra. None leaves it to the program."""

    SOL: Final = ModelId("codex", "sol")
    TERRA: Final = ModelId("codex", "terra")
    LUNA: Final = ModelId("codex", "luna")
    ASTRA: Final = ModelId("codex", "astra")

    def __call__(self, name: str, *, effort: str | None = None) -> ModelId:
        return _made("codex", name, effort=effort)


Codex = _CodexModels()


def _made(provider: str, name: str, **settings: str | None) -> ModelId:
    given = tuple((key, value) for key, value in sorted(settings.items()) if value is not None)
    return replace(ModelId.parse(f"{provider}:{name}"), settings=given)
