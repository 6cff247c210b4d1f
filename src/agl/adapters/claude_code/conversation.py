"""One running program, from its start to the certainty that it is gone."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Final

import claude_agent_sdk
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, Message

from agl.ports.processes import Marker, Processes
from agl.ports.shielding import finish

_END_S: Final = 3.0
_INTERRUPT_S: Final = 1.0


class Ended(Exception):
    """The program is no longer there."""


class Conversation:
    """The program with its messages. The SDK is never cancelled in the middle: that would leave
    the program behind for seconds. Instead the program is ended, and the SDK sees that."""

    def __init__(self, options: ClaudeAgentOptions, processes: Processes, marker: Marker) -> None:
        self._client = ClaudeSDKClient(options)
        self._processes = processes
        self._marker = marker
        self._messages: asyncio.Queue[Message | Exception] = asyncio.Queue()
        self._pump: asyncio.Task[None] | None = None

    async def open(self, within_s: float) -> None:
        """Starts the program.

        Raises:
            TimeoutError: it does not speak.
            Ended: it could not be started, or ended at once.
        """
        # What the SDK would say on standard error is raised as well.
        logging.getLogger(claude_agent_sdk.__name__).setLevel(logging.CRITICAL + 1)
        connecting = asyncio.ensure_future(self._client.connect())
        try:
            await asyncio.wait({connecting}, timeout=within_s)
            if not connecting.done():
                raise TimeoutError
            connecting.result()
        except TimeoutError:
            await finish(self._give_up(connecting))
            raise
        except asyncio.CancelledError:
            await finish(self._give_up(connecting))
            raise
        except Exception as error:
            raise Ended(str(error)) from error
        self._pump = asyncio.create_task(self._listen())

    async def say(self, text: str) -> None:
        """Raises Ended when nobody listens."""
        try:
            await self._client.query(text)
        except Exception as error:
            raise Ended(str(error)) from error

    async def next(self, within_s: float) -> Message:
        """The next message.

        Raises:
            TimeoutError: none came.
            Ended: none will come.
        """
        # wait_for of Python 3.11 loses a cancellation that comes with the message.
        async with asyncio.timeout(within_s):
            message = await self._messages.get()
        if isinstance(message, Exception):
            raise Ended(str(message) or "it ended") from message
        return message

    async def interrupt(self) -> bool:
        """Has it end what it does, its tools too. Whether it does: it then tells the end of its
        turn."""
        try:
            async with asyncio.timeout(_INTERRUPT_S):
                await self._client.interrupt()
        except Exception:  # noqa: BLE001 - one that is gone, or mute, is ended otherwise
            return False
        return True

    async def close(self, *, kindly: bool) -> None:
        """Ends the program. A kind end lets it go by itself for a moment."""
        if not kindly:
            await self._processes.end(self._marker)
        leaving = asyncio.ensure_future(self._client.disconnect())
        await asyncio.wait({leaving}, timeout=_END_S)
        if not leaving.done():
            await self._processes.end(self._marker)
        with suppress(Exception):
            await leaving
        if self._pump is not None:
            await asyncio.wait({self._pump})

    async def _listen(self) -> None:
        try:
            async for message in self._client.receive_messages():
                self._messages.put_nowait(message)
        except Exception as error:  # noqa: BLE001 - handed to whoever waits for a message
            self._messages.put_nowait(error)
        else:
            self._messages.put_nowait(Ended("it ended"))

    async def _give_up(self, connecting: asyncio.Future[None]) -> None:
        await self._processes.end(self._marker)
        with suppress(Exception):
            await connecting
