"""One task, over as many programs as it takes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

from claude_agent_sdk import ClaudeAgentOptions

from agl.adapters.claude_code.conversation import Conversation, Ended
from agl.adapters.claude_code.failures import Failure, error_of
from agl.adapters.claude_code.hearing import Hearing
from agl.ports.agents import AgentOutcome, AgentTask
from agl.ports.clock import Clock
from agl.ports.errors import StreamDropped, Transient, UpstreamError
from agl.ports.processes import Processes
from agl.ports.servers import one_line
from agl.ports.shielding import finish

_BEGIN: Final = "Begin."
_GO_ON: Final = "You were interrupted by a failure that is over. Go on where you were."
_LAST_WORDS_S: Final = 2.0
_STDERR_LINES: Final = 5
_NO_SESSION: Final = "No conversation found with session ID"
_DEATHS: Final = 5
"""So often a program may die at work in one task: then it is the work that kills it."""


class _NoSession(UpstreamError):
    """The program does not find the conversation that it is to go on with."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds: without a message while the model is asked, at work, and until it has started."""

    idle_s: float
    wall_s: float
    start_s: float


class Options(Protocol):
    def __call__(
        self, *, session: str | None, on_stderr: Callable[[str], None]
    ) -> ClaudeAgentOptions: ...


class Attempt:
    """One task. After a failure that may pass, a new program goes on with the session of the one
    before; nothing stays in memory while it is waited for."""

    def __init__(
        self,
        task: AgentTask,
        options: Options,
        hearing: Hearing,
        processes: Processes,
        clock: Clock,
        limits: Limits,
    ) -> None:
        self._task = task
        self._options = options
        self._hearing = hearing
        self._processes = processes
        self._clock = clock
        self._limits = limits
        self._deadline_s = 0.0
        self._deaths = 0
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)

    async def run(self) -> AgentOutcome:
        left_s = self._limits.wall_s
        while True:
            began = self._clock.monotonic_s()
            self._deadline_s = began + left_s
            try:
                await self._work()
            except Transient as error:
                left_s -= self._clock.monotonic_s() - began
                await self._task.wait(error)
            else:
                return AgentOutcome(
                    self._hearing.text, self._hearing.model or self._task.model.name
                )

    async def _work(self) -> None:
        session = self._hearing.session
        self._stderr.clear()
        options = self._options(session=session, on_stderr=self._stderr.append)
        conversation = Conversation(options, self._processes, self._task.marker)
        try:
            await self._open(conversation)
        except _NoSession:
            # One that died early had not written it yet.
            self._hearing.session = None
            return await self._work()
        try:
            text: str | None = _GO_ON if session else self._task.prompt or _BEGIN
            while text is not None:
                await self._turn(conversation, text)
                text = self._task.follow_up()
        finally:
            await finish(self._close(conversation))

    async def _open(self, conversation: Conversation) -> None:
        try:
            await conversation.open(self._limits.start_s)
        except TimeoutError as error:
            raise UpstreamError(
                f"Claude Code did not start within {self._limits.start_s:g} s; see `agl doctor`"
            ) from error
        except Ended as error:
            why = self._why(error)
            kind = _NoSession if self._hearing.session and _NO_SESSION in why else UpstreamError
            raise kind(f"Claude Code did not start: {why}") from error

    async def _turn(self, conversation: Conversation, text: str) -> None:
        self._hearing.begin()
        try:
            await conversation.say(text)
            while True:
                heard = self._hearing.hear(await conversation.next(self._patience_s()))
                if isinstance(heard, Failure):
                    raise error_of(heard)
                if heard:
                    return
        except Ended as error:
            self._deaths += 1
            goes_on = self._hearing.has_answered and self._deaths < _DEATHS
            kind = StreamDropped if goes_on else UpstreamError
            raise kind(f"Claude Code died: {self._why(error)}") from error
        except TimeoutError as error:
            raise self._too_slow() from error

    def _patience_s(self) -> float:
        """A tool may take as long as it likes, the shell has a limit of its own."""
        left_s = max(0.0, self._deadline_s - self._clock.monotonic_s())
        return left_s if self._hearing.tools_at_work else min(left_s, self._limits.idle_s)

    def _too_slow(self) -> UpstreamError:
        if self._clock.monotonic_s() >= self._deadline_s:
            return UpstreamError(
                f"Claude Code was still at work after {self._limits.wall_s:g} s; give the step less"
            )
        return StreamDropped(f"Claude Code has been silent for {self._limits.idle_s:g} s")

    async def _close(self, conversation: Conversation) -> None:
        """In the middle of a turn it is told to end that, for the sake of what it then tells."""
        hearing = self._hearing
        in_between = hearing.turn_is_over
        if not in_between and await conversation.interrupt():
            with suppress(Exception):
                async with asyncio.timeout(_LAST_WORDS_S):
                    while not hearing.turn_is_over:
                        hearing.hear(await conversation.next(_LAST_WORDS_S))
        await conversation.close(kindly=in_between)

    def _why(self, error: Ended) -> str:
        lines = [line for line in self._stderr if line.strip()]
        return one_line(" ".join([str(error), *lines]))
