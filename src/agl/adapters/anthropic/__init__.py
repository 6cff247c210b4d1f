"""Models behind Anthropic's Messages API, over its own SDK."""

from agl.adapters.anthropic.llm import AnthropicLLM

__all__ = ["AnthropicLLM"]
