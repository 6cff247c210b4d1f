"""Looking: one file, one folder."""

from __future__ import annotations

import os
from pathlib import Path

from agl.adapters.worktools.arguments import Arguments, Field, Refused, work_tool
from agl.adapters.worktools.paths import inside, regular
from agl.ports.agents import AgentTool

_MAX_FILE_BYTES = 10_000_000
_MAX_CHARS = 60_000
_MAX_NAMES = 500


def read(tree: Path) -> AgentTool:
    async def act(arguments: Arguments) -> str:
        given = arguments.text("path")
        path = inside(tree, given)
        size = regular(path, given).st_size
        if size > _MAX_FILE_BYTES:
            raise Refused(f"{given!r} is too large to read ({size} bytes); search it instead")
        lines = path.read_bytes().decode(errors="replace").split("\n")
        start = int(arguments.number("start"))
        if start > len(lines):
            raise Refused(f"{given!r} has {len(lines)} lines")
        return _window(lines, start)

    return work_tool(
        "read",
        "Reads a text file of the tree. A long one is cut and says where to go on.",
        (
            Field("path", "string", "relative to the tree"),
            Field("start", "integer", "first line, counted from 1", default=1, least=1, most=1e9),
        ),
        act,
    )


def _window(lines: list[str], start: int) -> str:
    text = "\n".join(lines[start - 1 :])
    if len(text) <= _MAX_CHARS:
        return text
    shown = text[:_MAX_CHARS]
    cut_at = start + shown.count("\n")
    return f"{shown}\n[cut in line {cut_at} of {len(lines)}; go on with start={cut_at}]"


def list_folder(tree: Path) -> AgentTool:
    async def act(arguments: Arguments) -> str:
        given = arguments.text("path")
        path = inside(tree, given)
        if not path.is_dir():
            raise Refused(f"there is no folder {given!r}")
        with os.scandir(path) as entries:
            names = sorted(_shown(entry) for entry in entries if entry.name != ".git")
        if not names:
            return "[empty]"
        left = len(names) - _MAX_NAMES
        return "\n".join(names[:_MAX_NAMES]) + (f"\n[and {left} more]" if left > 0 else "")

    return work_tool(
        "list",
        "Lists a folder of the tree: folders end in /, links in @.",
        (Field("path", "string", "relative to the tree", default="."),),
        act,
    )


def _shown(entry: os.DirEntry[str]) -> str:
    ending = "@" if entry.is_symlink() else "/" if entry.is_dir() else ""
    return entry.name.encode(errors="replace").decode() + ending
