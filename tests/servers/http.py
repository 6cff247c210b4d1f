"""As much HTTP/1.1 as a client of a model needs, with a hand on each byte."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


async def read_request(reader: asyncio.StreamReader) -> Asked | None:
    """The next request of a connection, or None when there is none."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = head.split("\r\n")
    method, target, _ = first.split(" ")
    headers = {}
    for line in lines:
        if ":" in line:
            name, value = line.split(":", 1)
            headers[name.strip().lower()] = value.strip()
    path, _, query = target.partition("?")
    body = b""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        while size := int((await reader.readline()).split(b";")[0], 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    elif size := int(headers.get("content-length", "0")):
        body = await reader.readexactly(size)
    return Asked(method, path, query, headers, body)


class Reply:
    """What goes back on one connection."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def whole(
        self,
        status: int,
        body: bytes,
        kind: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        given = {"content-type": kind, "content-length": str(len(body)), **(headers or {})}
        self._writer.write(_head(status, given) + body)
        await self._writer.drain()

    async def begin(self, headers: Mapping[str, str] | None = None) -> None:
        """The head of a stream of events."""
        given = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        self._writer.write(_head(200, {**given, **(headers or {})}))
        await self._writer.drain()

    async def chunk(self, data: bytes) -> None:
        self._writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        await self._writer.drain()

    async def half_chunk(self, data: bytes) -> None:
        """The first half of a chunk that was announced whole."""
        self._writer.write(b"%x\r\n%s" % (len(data), data[: len(data) // 2]))
        await self._writer.drain()

    async def end(self) -> None:
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    def reset(self) -> None:
        """Ends the connection with a reset instead of an end."""
        connection = self._writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Overloaded"
    lines = [
        f"HTTP/1.1 {status} {phrase}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
