"""What comes out of a child's pipe."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import IO

_CHUNK_BYTES = 256 * 1024


class Output:
    """One pipe, read whenever there is something in it. Counts all bytes, keeps the last of them,
    and hands out whole lines of any length."""

    def __init__(
        self, pipe: IO[bytes], keep_bytes: int, on_line: Callable[[bytes], None] | None
    ) -> None:
        self._pipe = pipe
        self._keep_bytes = keep_bytes
        self._on_line = on_line
        self._tail = bytearray()
        self._line = bytearray()
        self.total_bytes = 0
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(pipe.fileno(), False)
        self._loop.add_reader(pipe.fileno(), self._read)

    @property
    def tail(self) -> bytes:
        return bytes(self._tail[max(0, len(self._tail) - self._keep_bytes) :])

    def close(self) -> None:
        """Reads no further; what came of the last line is a line."""
        if self._pipe.closed:
            return
        self._loop.remove_reader(self._pipe.fileno())
        self._pipe.close()
        if self._on_line is not None and self._line:
            self._on_line(bytes(self._line))
        self.ended.set_result(None)

    def _read(self) -> None:
        try:
            chunk = os.read(self._pipe.fileno(), _CHUNK_BYTES)
        except BlockingIOError:
            return
        if not chunk:
            self.close()
            return
        self.total_bytes += len(chunk)
        self._tail += chunk
        if len(self._tail) > 2 * self._keep_bytes + _CHUNK_BYTES:
            del self._tail[: len(self._tail) - self._keep_bytes]
        if self._on_line is not None:
            self._split(chunk, self._on_line)

    def _split(self, chunk: bytes, on_line: Callable[[bytes], None]) -> None:
        first, *rest = chunk.split(b"\n")
        self._line += first
        for part in rest:
            on_line(bytes(self._line).removesuffix(b"\r"))
            self._line = bytearray(part)
