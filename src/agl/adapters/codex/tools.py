"""The task's own tools, as a server of the Model Context Protocol in this process."""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import uvicorn
from mcp.server import Server
from mcp.types import CallToolResult, ListToolsResult, Tool
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from agl.ports.agents import AgentTool, ToolAnswer

SERVER: Final = "agl"
_MOST_BYTES: Final = 2**28
_LOGGERS: Final = ("mcp", "uvicorn")


@dataclass(frozen=True, slots=True)
class Address:
    """Where the tools are served, and the secret that opens the door."""

    url: str
    token: str = field(repr=False)


@asynccontextmanager
async def serving(tools: Sequence[AgentTool]) -> AsyncIterator[Address]:
    """Serves the tools on loopback to whom the token was told. At the end nobody listens, and no
    handler is at work."""
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    token = secrets.token_urlsafe(32)
    app = tool_server(tools).streamable_http_app(
        json_response=True, stateless_http=True, max_request_body_size=_MOST_BYTES
    )
    config = uvicorn.Config(
        _guarded(app, token), log_config=None, ws="none", lifespan="on", timeout_graceful_shutdown=0
    )
    server = _Server(config)
    with socket.create_server(("127.0.0.1", 0)) as door:
        work = asyncio.create_task(server.serve(sockets=[door]))
        try:
            yield Address(f"http://127.0.0.1:{door.getsockname()[1]}/mcp", token)
        finally:
            server.should_exit = True
            await work


def tool_server(tools: Sequence[AgentTool]) -> Server[Any]:
    """What does not fit a tool's schema reaches its handler all the same: that answers in AGL's own
    words, and takes note."""
    by_name = {tool.name: tool for tool in tools}
    listed = ListToolsResult(
        tools=[
            Tool.model_validate(
                {"name": one.name, "description": one.description, "inputSchema": dict(one.schema)}
            )
            for one in tools
        ]
    )

    async def on_list_tools(context: Any, params: Any) -> ListToolsResult:
        return listed

    async def on_call_tool(context: Any, params: Any) -> CallToolResult:
        tool = by_name.get(params.name)
        if tool is None:
            return _result(ToolAnswer(f"there is no tool {params.name!r}", is_error=True))
        return _result(await tool.handler(params.arguments or {}))

    return Server(SERVER, on_list_tools=on_list_tools, on_call_tool=on_call_tool)


class _Server(uvicorn.Server):
    """One that leaves the signals of this process alone."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _guarded(app: ASGIApp, token: str) -> ASGIApp:
    expected = f"Bearer {token}".encode()

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, expected):
                await PlainTextResponse("no", 401)(scope, receive, send)
                return
        await app(scope, receive, send)

    return guarded


def _result(answer: ToolAnswer) -> CallToolResult:
    text = answer.text.encode(errors="replace").decode()
    return CallToolResult.model_validate(
        {"content": [{"type": "text", "text": text}], "isError": answer.is_error}
    )
