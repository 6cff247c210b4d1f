"""Which tools a task gets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from agl.adapters.worktools.edit import edit, write
from agl.adapters.worktools.look import list_folder, read
from agl.adapters.worktools.sandbox import Sandbox
from agl.adapters.worktools.search import search
from agl.adapters.worktools.shell import shell
from agl.ports.agents import AgentTask, Kit, Toolbox
from agl.ports.models import Restriction, SandboxMode
from agl.ports.processes import Processes


class WorkTools(Toolbox):
    """Tools confined to a task's tree. Children get `environ` without what moves git elsewhere, the
    shell also without AGL's variables and vendors' keys.

    No file writes leaves out `write` and `edit`, no shell leaves out `shell`. A shell that is
    offered does what the user can, unless the sandbox keeps it from that.
    """

    def __init__(
        self, processes: Processes, environ: Mapping[str, str], sandbox: SandboxMode = "auto"
    ) -> None:
        self._processes = processes
        self._environ = environ
        self._sandbox = Sandbox(sandbox, processes, environ)

    async def check_ready(self) -> str:
        return await self._sandbox.check_ready()

    @asynccontextmanager
    async def opened(self, task: AgentTask) -> AsyncIterator[Kit]:
        async with self._sandbox.around(task) as enclosure:
            given = (task, self._processes, self._environ, enclosure)
            tools = [read(task.tree), list_folder(task.tree), search(*given)]
            if Restriction.NO_FILE_WRITES not in task.restrictions:
                tools += [write(task.tree), edit(task.tree)]
            if Restriction.NO_SHELL not in task.restrictions:
                tools.append(shell(*given))
            yield Kit(tuple(tools), enclosure.name, enclosure.lack)
