"""One running program, from its start to the certainty that it is gone."""

from __future__ import annotations

import asyncio
import itertools
import json
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agl.adapters.codex.reading import number, part, word
from agl.ports.processes import Marker, Processes

_CLIENT: Final = {"name": "agl", "title": "AGL", "version": "1"}
_END_S: Final = 3.0
_INTERRUPT_S: Final = 1.0
_LINE_BYTES: Final = 2**30
_STDERR_LINES: Final = 5
_NO_SUCH_METHOD: Final = -32601

Json = dict[str, Any]


class Ended(Exception):
    """The program is no longer there."""


class Refused(Exception):
    """The program answered a request with an error."""


@dataclass(frozen=True, slots=True)
class Message:
    """What the program tells, or, with a number, asks."""

    method: str
    params: Json
    number: object = None


class Opening:
    """The first program is started alone: in a new home, or after an update, it has things to set
    up that another one at the same time trips over (0.163.0)."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._is_over = False

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        if self._is_over:
            yield
            return
        async with self._lock:
            yield
            self._is_over = True


class Conversation:
    """The program's app-server: lines of JSON-RPC over its standard input and output."""

    def __init__(self, processes: Processes, marker: Marker, opening: Opening) -> None:
        self._processes = processes
        self._opening = opening
        self._marker = marker
        self._child: Process | None = None
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Json | Ended]] = {}
        self._messages: asyncio.Queue[Message | Ended] = asyncio.Queue()
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._pumps: list[asyncio.Task[None]] = []

    async def open(self, argv: tuple[str, ...], cwd: Path, env: Mapping[str, str]) -> None:
        """Starts the program.

        Raises:
            Ended: it could not be started, or ended at once.
        """
        async with self._opening.turn():
            try:
                child = await asyncio.create_subprocess_exec(
                    *argv, cwd=cwd, env=env, stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=_LINE_BYTES
                )
            except OSError as error:
                raise Ended(str(error)) from error
            self._child = child
            self._pumps = [
                asyncio.create_task(self._listen(child)),
                asyncio.create_task(self._overhear(child)),
            ]
            await self.ask(
                "initialize", {"clientInfo": _CLIENT, "capabilities": {"experimentalApi": True}}
            )
        await self._send({"method": "initialized"})

    async def ask(self, method: str, params: Mapping[str, object]) -> Json:
        """The answer to a request.

        Raises:
            Refused: it is an error.
            Ended: there is nobody to answer.
        """
        number = next(self._numbers)
        answer: asyncio.Future[Json | Ended] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        try:
            await self._send({"id": number, "method": method, "params": params})
            told = await answer
        finally:
            del self._answers[number]
        if isinstance(told, Ended):
            raise told
        if "error" in told:
            raise Refused(word(part(told, "error"), "message") or str(told["error"]))
        return part(told, "result")

    async def answer(self, message: Message, result: Json | None) -> None:
        """Answers what the program asked; None: that is not answered here."""
        if result is None:
            error = {"code": _NO_SUCH_METHOD, "message": f"no answer to {message.method}"}
            await self._send({"id": message.number, "error": error})
        else:
            await self._send({"id": message.number, "result": result})

    async def next(self, within_s: float) -> Message:
        """The next message.

        Raises:
            TimeoutError: none came.
            Ended: none will come.
        """
        # wait_for of Python 3.11 loses a cancellation that comes with the message.
        async with asyncio.timeout(within_s):
            message = await self._messages.get()
        if isinstance(message, Ended):
            self._messages.put_nowait(message)
            raise message
        return message

    async def interrupt(self, thread: str, turn: str) -> bool:
        """Has it end what it does, its tools too. Whether it does: it then tells the end of its
        turn."""
        try:
            async with asyncio.timeout(_INTERRUPT_S):
                await self.ask("turn/interrupt", {"threadId": thread, "turnId": turn})
        except (Ended, Refused, TimeoutError):
            return False
        return True

    async def close(self, *, kindly: bool) -> None:
        """Ends the program. A kind end lets it go by itself for a moment."""
        child = self._child
        if child is not None and child.stdin is not None and kindly:
            child.stdin.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(_END_S):
                    await child.wait()
        await self._processes.end(self._marker)
        if child is not None:
            with suppress(ProcessLookupError):
                child.kill()  # one whose environment does not show the marker
            await child.wait()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _send(self, message: Mapping[str, object]) -> None:
        assert self._child is not None
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(json.dumps(message).encode() + b"\n")
            await self._child.stdin.drain()
        except (ConnectionError, RuntimeError) as error:
            raise await self._end() from error

    async def _listen(self, child: Process) -> None:
        assert child.stdout is not None
        try:
            async for line in child.stdout:
                self._hear(line)
        finally:
            ended = await self._end()
            self._messages.put_nowait(ended)
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_result(ended)

    def _hear(self, line: bytes) -> None:
        try:
            told = json.loads(line)
        except ValueError:
            return
        if not isinstance(told, dict):
            return
        method = word(told, "method")
        if method:
            self._messages.put_nowait(Message(method, part(told, "params"), told.get("id")))
        elif (answer := self._answers.get(number(told, "id"))) is not None and not answer.done():
            answer.set_result(told)

    async def _overhear(self, child: Process) -> None:
        assert child.stderr is not None
        async for line in child.stderr:
            text = line[:1000].decode(errors="replace").strip()
            if text:
                self._stderr.append(text)

    async def _end(self) -> Ended:
        """The end, with its last words."""
        assert self._child is not None
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_S):
                await self._child.wait()
        status = self._child.returncode
        how = "it closed its output" if status is None else f"it ended with status {status}"
        return Ended(" ".join([how, *self._stderr]))
