"""Searching the tree."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from agl.adapters.worktools.arguments import Arguments, Field, Refused, work_tool
from agl.adapters.worktools.paths import inside
from agl.adapters.worktools.sandbox import Enclosure
from agl.ports.agents import AgentTask, AgentTool
from agl.ports.processes import Command, Processes, Stream, without_git_location

_TIMEOUT_S = 60
_MAX_LINES = 200
_MAX_LINE_CHARS = 300
# git-grep(1): --no-index also looks at files that git does not track, follows no links, and leaves
# `.git` out; its exit status is 1 when nothing matched.
_GREP = (
    *("git", "-c", "core.quotePath=false", "--literal-pathspecs", "grep", "--no-index"),
    *("--exclude-standard", "-n", "-I", "-E", "--no-color", "--no-column", "--full-name"),
)
_NO_MATCH = 1


def search(
    task: AgentTask, processes: Processes, environ: Mapping[str, str], enclosure: Enclosure
) -> AgentTool:
    async def act(arguments: Arguments) -> str:
        given, pattern = arguments.text("path"), arguments.text("pattern")
        if not pattern or "\0" in pattern or "\n" in pattern:
            raise Refused("'pattern' is not one line of text")
        path = inside(task.tree, given)
        if not path.exists():
            raise Refused(f"there is no file or folder {given!r}")
        place = str(path.relative_to(os.path.realpath(task.tree)))
        lines: list[str] = []
        left_out = 0

        def collect(stream: Stream, line: bytes) -> None:
            nonlocal left_out
            if stream is Stream.STDOUT and len(lines) < _MAX_LINES:
                lines.append(_shown(line))
            elif stream is Stream.STDOUT:
                left_out += 1

        done = await processes.run(
            Command(
                argv=(*enclosure.prefix, *_GREP, "-e", pattern, "--", place),
                cwd=Path(task.tree),
                env=without_git_location(environ),
                timeout_s=_TIMEOUT_S,
                keep_bytes=2_000,
                marker=task.marker,
                dies_with_agl=True,
            ),
            collect,
        )
        if done.timed_out:
            raise Refused(f"the search took longer than {_TIMEOUT_S} s; narrow it with 'path'")
        if done.status not in (0, _NO_MATCH):
            raise Refused(done.stderr.decode(errors="replace").strip())
        more = [f"[and {left_out} more lines]"] if left_out else []
        return "\n".join([*lines, *more]) or "[nothing found]"

    return work_tool(
        "search",
        "Finds lines in the tree's text files, ignored ones left out, as path:line:text.",
        (
            Field("pattern", "string", "a POSIX extended regular expression"),
            Field("path", "string", "a file or folder, relative to the tree", default="."),
        ),
        act,
    )


def _shown(line: bytes) -> str:
    text = line.decode(errors="replace")
    return text if len(text) <= _MAX_LINE_CHARS else text[:_MAX_LINE_CHARS] + "…"
