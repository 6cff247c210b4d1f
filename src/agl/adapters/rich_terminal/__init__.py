"""The terminal for a person: rich renders, and prompt_toolkit has the screen where one types."""

from agl.adapters.rich_terminal.keyboard import is_in_front
from agl.adapters.rich_terminal.terminal import RichTerminal

__all__ = ["RichTerminal", "is_in_front"]
