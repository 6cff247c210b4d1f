"""Codex, over the app-server of its own program."""

from agl.adapters.codex.environment import OWN_KEYS
from agl.adapters.codex.runner import CodexRunner

__all__ = ["OWN_KEYS", "CodexRunner"]
