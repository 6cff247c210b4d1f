"""Models behind any server that speaks OpenAI's chat completions, over OpenAI's SDK."""

from agl.adapters.openai_compatible.llm import OpenAICompatibleLLM

__all__ = ["OpenAICompatibleLLM"]
