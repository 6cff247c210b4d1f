"""Running a command line in the tree."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkstemp

from agl.adapters.worktools.arguments import Arguments, Field, Refused, work_tool
from agl.adapters.worktools.sandbox import Enclosure
from agl.ports.agents import AgentTask, AgentTool
from agl.ports.processes import Command, Processes, Stream
from agl.ports.programs import environment_for

_MAX_BYTES = 30_000
_TIMEOUT_S = 120
_MAX_TIMEOUT_S = 3_600
_CONFINED = " It is confined on purpose; $TMPDIR can always be written."


def shell(
    task: AgentTask, processes: Processes, environ: Mapping[str, str], enclosure: Enclosure
) -> AgentTool:
    env = {**environment_for(environ, task.marker, own=""), **enclosure.env}

    async def act(arguments: Arguments) -> str:
        command, timeout_s = arguments.text("command"), arguments.number("timeout_s")
        if not command.strip() or "\0" in command:
            raise Refused("'command' is not a command line")
        tail = _Tail()
        done = await processes.run(
            Command(
                argv=(*enclosure.prefix, "/bin/sh", "-c", command),
                cwd=task.tree,
                env=env,
                timeout_s=timeout_s,
                keep_bytes=0,
                marker=task.marker,
                dies_with_agl=True,
            ),
            tail.add,
        )
        if done.timed_out:
            raise Refused(f"ended after {timeout_s:g} s\n{tail.text()}".rstrip())
        if done.status != 0:
            raise Refused(f"exit status {done.status}\n{tail.text()}".rstrip())
        return tail.text() or "[no output]"

    return work_tool(
        "shell",
        "Runs a command line with /bin/sh in the tree and returns the end of its output; what came"
        " before the end is written to a file that is named."
        + (_CONFINED if enclosure.name else ""),
        (
            Field("command", "string", "the command line"),
            Field(
                *("timeout_s", "number", "seconds until it is ended"),
                default=_TIMEOUT_S,
                least=0.1,
                most=_MAX_TIMEOUT_S,
            ),
        ),
        act,
    )


class _Tail:
    """The last bytes of both streams, in the order in which the lines came. What came before them
    is written to a file outside of the tree."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque()
        self._size = 0
        self._left_out = 0
        self._rest: Path | None = None

    def add(self, stream: Stream, line: bytes) -> None:
        kept = line[-_MAX_BYTES:]
        if len(kept) < len(line):
            while self._lines:
                self._drop(self._lines.popleft() + b"\n")
            self._size = 0
            self._drop(line[: -len(kept)])
        self._lines.append(kept)
        self._size += len(kept) + 1
        while self._size > _MAX_BYTES + 1:
            dropped = self._lines.popleft() + b"\n"
            self._size -= len(dropped)
            self._drop(dropped)

    def text(self) -> str:
        text = b"\n".join(self._lines).decode(errors="replace")
        if not self._left_out:
            return text
        where = f" are in {self._rest}" if self._rest is not None else ""
        return f"[{self._left_out} bytes before this{where}]\n{text}"

    def _drop(self, part: bytes) -> None:
        """Writes what no longer fits to the file; where there is no room for it, it is only
        counted."""
        self._left_out += len(part)
        try:
            if self._rest is None:
                handle, name = mkstemp(prefix="agl-output-", suffix=".txt")
                os.close(handle)
                self._rest = Path(name)
            with self._rest.open("ab") as file:
                file.write(part)
        except OSError:
            return
