"""What an agent may do: the tools it is offered, and the word on each call of one."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from claude_agent_sdk import (
    PermissionResult,
    PermissionResultAllow,
    PermissionResultDeny,
    ToolPermissionContext,
)

from agl.adapters.claude_code.tools import PREFIX
from agl.ports.confinement import is_writable
from agl.ports.models import Restriction

_READS: Final = ("Read", "Glob", "Grep")
_WRITES: Final = {"Edit": "file_path", "Write": "file_path", "NotebookEdit": "notebook_path"}
_WEB: Final = ("WebFetch", "WebSearch")
_VCS_VERBS: Final = "|".join(
    """add am apply branch checkout cherry-pick clean commit commit-tree config fetch gc init merge
    mv notes pull push rebase reflog remote replace reset restore revert rm stash submodule switch
    symbolic-ref tag update-index update-ref worktree""".split()  # noqa: SIM905
)
_GIT_WRITES: Final = re.compile(
    rf"\bgit(?:\s+(?:-[Cc]\s+\S+|--?[\w-]+(?:=\S+)?))*\s+(?:{_VCS_VERBS})(?![\w./-])"
)
"""A fence for the honest: a command line can be written in too many ways. AGL looks at the
repository itself after each step."""

Judge = Callable[[str, dict[str, Any], ToolPermissionContext], Awaitable[PermissionResult]]


def tools_for(restrictions: frozenset[Restriction]) -> list[str]:
    """The program's own tools that are offered. A shell that is offered can still write and reach
    the network, unless the sandbox keeps it from that."""
    tools = list(_READS)
    if Restriction.NO_FILE_WRITES not in restrictions:
        tools += _WRITES
    if Restriction.NO_SHELL not in restrictions:
        tools.append("Bash")
    if Restriction.NO_NETWORK not in restrictions:
        tools += _WEB
    return tools


def judge_for(tree: Path, restrictions: frozenset[Restriction]) -> Judge:
    """Says whether a call may go ahead: file tools in the tree alone, and what was offered."""
    offered = frozenset(tools_for(restrictions))
    no_vcs = Restriction.NO_VCS_WRITES in restrictions

    async def judge(
        tool: str, arguments: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResult:
        if tool.startswith(PREFIX):
            return PermissionResultAllow()
        if tool not in offered:
            return PermissionResultDeny(message=f"{tool} is not allowed in this step.")
        if tool == "Bash" and no_vcs and _GIT_WRITES.search(str(arguments.get("command"))):
            return PermissionResultDeny(message="This step does not change the git repository.")
        place = _WRITES.get(tool)
        if place is not None and not is_writable(arguments.get(place), tree):
            return PermissionResultDeny(
                message=f"{tool} writes in {tree} alone, and not in its .git."
            )
        return PermissionResultAllow()

    return judge
