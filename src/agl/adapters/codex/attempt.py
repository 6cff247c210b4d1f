"""One task, over as many programs as it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agl.adapters.codex.asking import effort_of
from agl.adapters.codex.conversation import (
    Conversation,
    Ended,
    Json,
    Message,
    Opening,
    Refused,
)
from agl.adapters.codex.failures import Failure, error_of
from agl.adapters.codex.hearing import Hearing
from agl.adapters.codex.permissions import Permissions
from agl.adapters.codex.reading import part, word
from agl.ports.agents import AgentOutcome, AgentTask
from agl.ports.clock import Clock
from agl.ports.errors import StreamDropped, Transient, UpstreamError
from agl.ports.processes import Processes
from agl.ports.servers import one_line
from agl.ports.shielding import finish

_BEGIN: Final = "Begin."
_GO_ON: Final = "You were interrupted by a failure that is over. Go on where you were."
_LAST_WORDS_S: Final = 2.0
_DEATHS: Final = 5
"""So often a program may die at work in one task: then it is the work that kills it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds: without a message while the model is asked, at work, until it has started, and for
    a command."""

    idle_s: float
    wall_s: float
    start_s: float
    command_s: float


@dataclass(frozen=True, slots=True)
class Launch:
    """How the program is started, and what a thread in it is asked for, given the program."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    opening: Opening
    thread: Callable[[Conversation], Awaitable[Json]]


class Attempt:
    """One task. After a failure that may pass, a new program goes on with the thread of the one
    before; nothing stays in memory while it is waited for."""

    def __init__(
        self,
        task: AgentTask,
        launch: Launch,
        permissions: Permissions,
        hearing: Hearing,
        processes: Processes,
        clock: Clock,
        limits: Limits,
    ) -> None:
        self._task = task
        self._launch = launch
        self._permissions = permissions
        self._hearing = hearing
        self._processes = processes
        self._clock = clock
        self._limits = limits
        self._deadline_s = 0.0
        self._deaths = 0

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
                return AgentOutcome(self._hearing.text, self._hearing.model)

    async def _work(self) -> None:
        hearing = self._hearing
        conversation = Conversation(self._processes, self._task.marker, self._launch.opening)
        try:
            await self._open(conversation, hearing.thread if hearing.has_answered else None)
        except BaseException:
            await finish(conversation.close(kindly=False))
            raise
        try:
            text: str | None = _GO_ON if hearing.has_answered else self._task.prompt or _BEGIN
            while text is not None:
                await self._turn(conversation, text)
                text = self._task.follow_up()
        finally:
            await finish(self._close(conversation))

    async def _open(self, conversation: Conversation, thread: str | None) -> None:
        launch = self._launch
        try:
            async with asyncio.timeout(self._limits.start_s):
                await conversation.open(launch.argv, launch.cwd, launch.env)
                asked = await launch.thread(conversation)
                told = await _begin(conversation, asked, thread)
        except TimeoutError as error:
            raise UpstreamError(
                f"Codex did not start within {self._limits.start_s:g} s; see `agl doctor`"
            ) from error
        except (Ended, Refused) as error:
            raise UpstreamError(f"Codex did not start: {one_line(str(error))}") from error
        if not self._permissions.are_in_force(told):
            raise UpstreamError(
                "Codex did not take over what this step may do; update it, or look into its"
                " configuration and that of this machine"
            )
        named = word(part(told, "thread"), "id")
        if not named:
            raise UpstreamError("Codex did not start: it named no thread; see `agl doctor`")
        self._hearing.opened(named, word(told, "model"))

    async def _turn(self, conversation: Conversation, text: str) -> None:
        hearing = self._hearing
        hearing.begin()
        asked: dict[str, Any] = {
            "threadId": hearing.thread,
            "input": [{"type": "text", "text": text}],
        }
        effort = effort_of(self._task.model)
        if effort is not None:
            asked["effort"] = effort
        try:
            async with asyncio.timeout(self._limits.start_s):
                begun = await conversation.ask("turn/start", asked)
            hearing.turn = word(part(begun, "turn"), "id")
            while True:
                heard = await self._heed(conversation, await conversation.next(self._patience_s()))
                if isinstance(heard, Failure):
                    raise error_of(heard)
                if heard:
                    return
        except Ended as error:
            self._deaths += 1
            goes_on = hearing.has_answered and self._deaths < _DEATHS
            kind = StreamDropped if goes_on else UpstreamError
            raise kind(f"Codex died: {one_line(str(error))}") from error
        except Refused as error:
            raise error_of(Failure(str(error))) from error
        except TimeoutError as error:
            raise self._too_slow() from error

    async def _heed(self, conversation: Conversation, message: Message) -> Failure | bool:
        if message.method == "item/started":
            self._permissions.note(part(message.params, "item"))
        if message.number is not None:
            answer = self._permissions.answer(message.method, message.params)
            await conversation.answer(message, answer)
            return False
        return self._hearing.hear(message)

    def _patience_s(self) -> float:
        """A tool of the task may take as long as it likes, a command until Codex looks after it."""
        left_s = max(0.0, self._deadline_s - self._clock.monotonic_s())
        if self._hearing.waits_for_a_tool:
            return left_s
        busy_s = self._limits.command_s if self._hearing.runs_a_command else 0.0
        return min(left_s, self._limits.idle_s + busy_s)

    def _too_slow(self) -> UpstreamError:
        if self._clock.monotonic_s() >= self._deadline_s:
            return UpstreamError(
                f"Codex was still at work after {self._limits.wall_s:g} s; give the step less"
            )
        return StreamDropped(f"Codex has been silent for {self._limits.idle_s:g} s")

    async def _close(self, conversation: Conversation) -> None:
        """In the middle of a turn it is told to end that, for the sake of what it then tells."""
        hearing = self._hearing
        in_between = hearing.turn_is_over
        if not in_between and await conversation.interrupt(str(hearing.thread), hearing.turn):
            with suppress(Exception):
                async with asyncio.timeout(_LAST_WORDS_S):
                    while not hearing.turn_is_over:
                        hearing.hear(await conversation.next(_LAST_WORDS_S))
        await conversation.close(kindly=in_between)


async def _begin(conversation: Conversation, asked: Json, thread: str | None) -> Json:
    """The thread again, or, where it is no more, a new one."""
    if thread is not None:
        with suppress(Refused):
            return await conversation.ask("thread/resume", {**asked, "threadId": thread})
    return await conversation.ask("thread/start", asked)
