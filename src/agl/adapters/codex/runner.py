"""`codex:NAME`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from agl.adapters.codex.asking import argv_for, effort_of, key_for, thread_for, without
from agl.adapters.codex.attempt import Attempt, Launch, Limits
from agl.adapters.codex.conversation import Conversation, Ended, Json, Opening, Refused
from agl.adapters.codex.environment import (
    environment_for,
    is_literal,
    login_of,
    scratch_folder,
)
from agl.adapters.codex.hearing import Hearing
from agl.adapters.codex.known import Known, learn, model_of, skills_for
from agl.adapters.codex.permissions import Permissions
from agl.adapters.codex.program import bundled, can_confine, wanted
from agl.adapters.codex.tools import serving
from agl.ports.agents import AgentEvent, AgentOutcome, AgentRunner, AgentTask, Equipped
from agl.ports.clock import Clock
from agl.ports.errors import AuthenticationFailed, InputError, UpstreamError
from agl.ports.models import Capability, ModelId, SandboxMode
from agl.ports.processes import Marker, Processes
from agl.ports.programs import PROBE_S, Program, find_program
from agl.ports.servers import one_line
from agl.ports.shielding import finish

_PREFLIGHT: Final = Marker("preflight")


class CodexRunner(AgentRunner):
    """Runs each task in a `codex` of its own, in the task's tree. A program that says nothing for
    `idle_s` while its model is asked is ended, and so is one that works longer than `wall_s`, what
    it waits for not counted. `command_s` is the longest that Codex waits for a command before it
    asks the model what now. `own` is the program to use when the user has none."""

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
        command_s: float = 300.0,
        own: Path | None = None,
    ) -> None:
        self._processes = processes
        self._clock = clock
        self._environ = environ
        self._sandbox = sandbox
        self._limits = Limits(idle_s, wall_s, start_s, command_s)
        self._own = own or bundled()
        self._opening = Opening()
        self._found: tuple[Program, bool] | None = None

    def capabilities(self, model: ModelId) -> frozenset[Capability]:
        return frozenset(Capability)

    def files(self, model: ModelId) -> tuple[Path, ...]:
        return ()

    async def check_ready(self, model: ModelId) -> str:
        effort_of(model)
        program, is_confined = await self._equipment()
        known = await self._ask(program)
        if not known.is_logged_in and known.needs_login and key_for(known, self._environ) is None:
            raise AuthenticationFailed(
                f"{program} is not logged in; run `{program.line('login')}`, or set OPENAI_API_KEY"
            )
        if known.key_name is not None and not self._environ.get(known.key_name):
            raise AuthenticationFailed(
                f"{program} wants the key of its provider in {known.key_name}; set it"
            )
        return f"{program}, {'its sandbox' if is_confined else 'no sandbox'}"

    async def run(self, task: AgentTask, emit: Callable[[AgentEvent], None]) -> AgentOutcome:
        program, is_confined = await self._equipment()
        lack = "" if is_confined or self._sandbox == "off" else "Codex's does not work here"
        emit(Equipped(str(program), "Codex's sandbox" if is_confined else "", lack))
        with scratch_folder(self._environ) as scratch:
            env = environment_for(self._environ, task.marker, scratch)
            permissions = Permissions(
                task.restrictions,
                task.tree,
                is_confined=is_confined,
                scratch=scratch,
                login=login_of(env),
            )
            async with serving(task.tools) as address:

                async def thread(conversation: Conversation) -> Json:
                    asked = thread_for(
                        task, await learn(conversation), permissions, address, self._environ
                    )
                    asked["model"] = await model_of(conversation, task.model.name)
                    skills = await skills_for(conversation, task.tree)
                    asked["config"] |= without(skills)
                    return asked

                launch = Launch(argv_for(program), env, task.tree, self._opening, thread)
                hearing = Hearing(emit, self._clock)
                return await Attempt(
                    task, launch, permissions, hearing, self._processes, self._clock, self._limits
                ).run()

    async def _equipment(self) -> tuple[Program, bool]:
        """The program, and whether its sandbox is in force.

        Raises:
            InputError: a sandbox is required, and does not work here; or it would leave the login
                open.
        """
        if self._found is None:
            program = await find_program(self._processes, self._environ, wanted(self._own))
            is_confined = self._sandbox != "off"
            if is_confined:
                with scratch_folder(self._environ) as scratch:
                    env = environment_for(self._environ, _PREFLIGHT, scratch)
                    is_confined = await can_confine(self._processes, program, env)
            if self._sandbox == "require" and not is_confined:
                raise InputError(
                    "the sandbox is required, and Codex's does not work here; run"
                    f" `{program.path} sandbox -P :read-only true`, or set sandbox to 'auto'"
                )
            login = login_of(self._environ)
            if is_confined and not is_literal(login):
                raise InputError(
                    f"Codex's sandbox cannot close its login at {str(login)!r}, whose path has one"
                    " of '*?[]' in it; move it, set CODEX_HOME, or set sandbox to 'off'"
                )
            self._found = program, is_confined
        return self._found

    async def _ask(self, program: Program) -> Known:
        with scratch_folder(self._environ) as scratch:
            marker = Marker(f"preflight {scratch.name}")
            env = environment_for(self._environ, marker, scratch)
            conversation = Conversation(self._processes, marker, self._opening)
            try:
                async with asyncio.timeout(PROBE_S):
                    await conversation.open(argv_for(program), Path("/"), env)
                    return await learn(conversation)
            except TimeoutError as error:
                raise UpstreamError(
                    f"{program} said nothing for {PROBE_S:g} s; run"
                    f" `{program.line('login', 'status')}`"
                ) from error
            except (Ended, Refused) as error:
                raise UpstreamError(
                    f"{program} does not start: {one_line(str(error))}; run `{program.line()}`"
                ) from error
            finally:
                await finish(conversation.close(kindly=True))
