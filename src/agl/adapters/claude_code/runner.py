"""`claude_code:NAME`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from claude_agent_sdk import ClaudeAgentOptions

from agl.adapters.claude_code.asking import effort_of, options_for
from agl.adapters.claude_code.attempt import Attempt, Limits
from agl.adapters.claude_code.environment import environment_for
from agl.adapters.claude_code.hearing import Hearing
from agl.adapters.claude_code.program import bundled, wanted, wrapped
from agl.adapters.claude_code.sandbox import NAME, Covers, Sandbox
from agl.ports.agents import AgentEvent, AgentOutcome, AgentRunner, AgentTask, Equipped
from agl.ports.clock import Clock
from agl.ports.errors import AuthenticationFailed, UpstreamError
from agl.ports.models import Capability, ModelId, SandboxMode
from agl.ports.processes import Command, Marker, NotStarted, Processes
from agl.ports.programs import Program, find_program

_PROBE_S: Final = 20.0


class ClaudeCodeRunner(AgentRunner):
    """Runs each task in a `claude` of its own, in the task's tree. A program that says nothing for
    `idle_s` while its model is asked is ended, and so is one that works longer than `wall_s`, what
    it waits for not counted. `own` is the program to use when the user has none."""

    def __init__(
        self,
        processes: Processes,
        clock: Clock,
        environ: Mapping[str, str],
        *,
        sandbox: SandboxMode = "auto",
        idle_s: float = 300.0,
        wall_s: float = 6 * 3600.0,
        start_s: float = 60.0,
        own: Path | None = None,
    ) -> None:
        self._processes = processes
        self._clock = clock
        self._environ = environ
        self._sandbox = Sandbox(sandbox, processes, environ)
        self._limits = Limits(idle_s, wall_s, start_s)
        self._own = own or bundled()
        self._found: Program | None = None

    def capabilities(self, model: ModelId) -> frozenset[Capability]:
        return frozenset(Capability)

    def files(self, model: ModelId) -> tuple[Path, ...]:
        return ()

    async def check_ready(self, model: ModelId) -> str:
        effort_of(model)
        sandbox = await self._sandbox.check_ready()
        program = await self._program()
        env = environment_for(self._environ, Marker("preflight"))
        command = Command((str(program.path), "auth", "status"), Path("/"), env, timeout_s=_PROBE_S)
        try:
            done = await self._processes.run(command)
            status = dict(json.loads(done.stdout))
        except (NotStarted, ValueError, TypeError) as error:
            raise UpstreamError(
                f"{program} does not tell whether it is logged in; run"
                f" `{program.line('auth', 'status')}`"
            ) from error
        if not status.get("loggedIn"):
            raise AuthenticationFailed(
                f"{program} is not logged in; run `{program.line('auth', 'login')}`, or set"
                " ANTHROPIC_API_KEY"
            )
        return f"{program}, {sandbox}"

    async def run(self, task: AgentTask, emit: Callable[[AgentEvent], None]) -> AgentOutcome:
        program = await self._program()
        lack = await self._sandbox.lack(task.restrictions)
        confined = lack == ""
        emit(Equipped(str(program), NAME if confined else "", lack or ""))
        env = environment_for(self._environ, task.marker)
        with wrapped(program, os.environ.keys() - env.keys()) as script:
            covers = Covers(task.tree)

            def options(
                *, session: str | None, on_stderr: Callable[[str], None]
            ) -> ClaudeAgentOptions:
                if confined:
                    covers.remove()
                return options_for(
                    *(task, script, env), confined=confined, session=session, on_stderr=on_stderr
                )

            hearing = Hearing(emit, self._clock)
            return await Attempt(
                task, options, hearing, self._processes, self._clock, self._limits
            ).run()

    async def _program(self) -> Program:
        if self._found is None:
            self._found = await find_program(self._processes, self._environ, wanted(self._own))
        return self._found
