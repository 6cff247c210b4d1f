"""Writing and editing files, byte for byte."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from pathlib import Path

from agl.adapters.worktools.arguments import Arguments, Field, Refused, work_tool
from agl.adapters.worktools.paths import inside, regular
from agl.ports.agents import AgentTool

_BARE_LF = re.compile(rb"(?<!\r)\n")


def write(tree: Path) -> AgentTool:
    async def act(arguments: Arguments) -> str:
        given = arguments.text("path")
        path = inside(tree, given)
        content = arguments.text("content").encode()
        if path.exists():
            regular(path, given)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise Refused(f"a folder on the way to {given!r} is a file") from None
        _put(path, content)
        return f"wrote {given} ({len(content)} bytes)"

    return work_tool(
        "write",
        "Creates a file of the tree, with its folders, or replaces its whole content.",
        (
            Field("path", "string", "relative to the tree"),
            Field("content", "string", "the whole content"),
        ),
        act,
    )


def edit(tree: Path) -> AgentTool:
    async def act(arguments: Arguments) -> str:
        given = arguments.text("path")
        path = inside(tree, given)
        regular(path, given)
        content = path.read_bytes()
        old, new = arguments.text("old").encode(), arguments.text("new").encode()
        if _ends_lines_with_crlf(content):
            old, new = _BARE_LF.sub(b"\r\n", old), _BARE_LF.sub(b"\r\n", new)
        if not old:
            raise Refused("'old' is empty; use write for a new file")
        if old == new:
            raise Refused("'old' and 'new' are the same")
        first = content.find(old)
        if first < 0:
            raise Refused(f"'old' does not occur in {given!r}; read it again")
        if arguments.flag("all"):
            count = content.count(old)
            _put(path, content.replace(old, new))
            return f"edited {given} in {count} places"
        if content.find(old, first + 1) >= 0:
            raise Refused(
                f"'old' occurs more than once in {given!r}; add lines around it, or pass all=true"
            )
        _put(path, content[:first] + new + content[first + len(old) :])
        return f"edited {given}"

    return work_tool(
        "edit",
        "Replaces a piece of text in a file of the tree; every other byte stays. In a file whose"
        " lines end in CRLF, line breaks in old and new are CRLF.",
        (
            Field("path", "string", "relative to the tree"),
            Field("old", "string", "what is there now; must occur exactly once unless all"),
            Field("new", "string", "what shall be there"),
            Field("all", "boolean", "replace every occurrence", default=False),
        ),
        act,
    )


def _ends_lines_with_crlf(content: bytes) -> bool:
    return b"\r\n" in content and _BARE_LF.search(content) is None


def _put(path: Path, content: bytes) -> None:
    """Old or new, never half, also on a full disk; the mode stays."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".agl-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).chmod(_mode(path))
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        mask = os.umask(0o077)
        os.umask(mask)
        return 0o666 & ~mask
