"""Which tools a task gets."""

from __future__ import annotations

from collections.abc import Mapping

from agl.adapters.worktools.edit import edit, write
from agl.adapters.worktools.look import list_folder, read
from agl.adapters.worktools.search import search
from agl.adapters.worktools.shell import shell
from agl.ports.agents import AgentTask, AgentTool, Toolbox
from agl.ports.models import Restriction
from agl.ports.processes import Processes


def worktools(processes: Processes, environ: Mapping[str, str]) -> Toolbox:
    """Tools confined to a task's tree. Children get `environ` without what moves git elsewhere.

    No file writes leaves out `write` and `edit`, no shell leaves out `shell`; a shell that is
    offered can still write, and whoever forbade it discards what it wrote.
    """

    def toolbox(task: AgentTask) -> tuple[AgentTool, ...]:
        tools = [read(task.tree), list_folder(task.tree), search(task, processes, environ)]
        if Restriction.NO_FILE_WRITES not in task.restrictions:
            tools += [write(task.tree), edit(task.tree)]
        if Restriction.NO_SHELL not in task.restrictions:
            tools.append(shell(task, processes, environ))
        return tuple(tools)

    return toolbox
