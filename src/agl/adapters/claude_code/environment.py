"""What of this process's environment the program gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agl.ports import programs
from agl.ports.processes import Marker

OWN_KEYS: Final = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS")
"""By which the program itself may be logged in."""

# What Claude Code 2.1.332 tells its own children about itself. Handed on, it would make the program
# take itself for a part of the session that AGL was started from.
_OUTER_SESSION: Final = frozenset(
    """AI_AGENT CLAUDECODE CLAUDE_AGENT_SDK_VERSION CLAUDE_CODE_CHILD_NOTES_DIR
    CLAUDE_CODE_CHILD_SESSION CLAUDE_CODE_ENTRYPOINT CLAUDE_CODE_EXECPATH
    CLAUDE_CODE_MESSAGING_SOCKET CLAUDE_CODE_MESSAGING_TOKEN CLAUDE_CODE_SESSION_ATTENDED
    CLAUDE_CODE_SESSION_ID CLAUDE_EFFORT CLAUDE_PID""".split()  # noqa: SIM905
)

# With it 2.1.332 leaves empty files in the tree, package.json and .env among them.
_HARMFUL: Final = frozenset({"CLAUDE_CODE_SUBPROCESS_ENV_SCRUB"})

_OWN: Final = "(ANTHROPIC|CLAUDE_CODE)_.*"
"""What is the program's own, keys too."""

_CLOSED: Final = {
    # Its memory is keyed by repository, so all trees of one would share it.
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    # Name look-ups, and a paid request for the title of each session.
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    # The time that a server asks to wait is told only by a program that means to ask again; it is
    # ended before it does.
    "CLAUDE_CODE_MAX_RETRIES": "1",
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
    # A tool may wait for a person.
    "MCP_TOOL_TIMEOUT": "100000000",
}
"""Measured with 2.1.332."""


def environment_for(environ: Mapping[str, str], marker: Marker) -> dict[str, str]:
    """The whole environment of the program, from that of this process."""
    made = programs.environment_for(environ, marker, _OWN)
    kept = {name: value for name, value in made.items() if name not in _OUTER_SESSION | _HARMFUL}
    return {**kept, **_CLOSED}
