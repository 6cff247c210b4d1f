"""Claude Code, over its own SDK."""

from agl.adapters.claude_code.environment import OWN_KEYS
from agl.adapters.claude_code.runner import ClaudeCodeRunner

__all__ = ["OWN_KEYS", "ClaudeCodeRunner"]
