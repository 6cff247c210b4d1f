"""The server of a task's tools."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import socket
from urllib.parse import urlsplit

import pytest

from agl.ports.agents import AgentTool, ToolAnswer

pytestmark = pytest.mark.vendor


@pytest.fixture(autouse=True)
def _packages() -> None:
    for package in ("mcp", "uvicorn"):
        pytest.importorskip(package, reason="needs mcp and uvicorn of agl[codex]")


async def answer(arguments: object) -> ToolAnswer:
    return ToolAnswer(f"heard {arguments!r} \ud800", is_error=arguments == {})


TOOL = AgentTool("greet", "Greets.", {"type": "object", "required": ["whom"]}, answer)


def asked(url: str, method: str, params: object, token: str | None) -> tuple[int, str]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    try:
        connection.request("POST", parts.path, json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


async def test_it_answers_whom_the_token_was_told() -> None:
    from agl.adapters.codex.tools import serving

    async with serving([TOOL]) as address:
        status, text = await asyncio.to_thread(asked, address.url, "tools/list", {}, address.token)
        assert status == 200
        (listed,) = json.loads(text)["result"]["tools"]
        assert (listed["name"], listed["inputSchema"]) == ("greet", TOOL.schema)


@pytest.mark.parametrize(("given", "is_error"), [({"whom": "you"}, False), ({}, True)])
async def test_a_handler_gets_arguments_that_do_not_fit_too(given: object, is_error: bool) -> None:
    from agl.adapters.codex.tools import serving

    async with serving([TOOL]) as address:
        call = {"name": "greet", "arguments": given}
        _, text = await asyncio.to_thread(asked, address.url, "tools/call", call, address.token)
    result = json.loads(text)["result"]
    assert result["content"][0]["text"] == f"heard {given!r} ?"
    assert result["isError"] is is_error


async def test_an_unknown_tool_is_answered() -> None:
    from agl.adapters.codex.tools import serving

    async with serving([TOOL]) as address:
        call = {"name": "other", "arguments": {}}
        _, text = await asyncio.to_thread(asked, address.url, "tools/call", call, address.token)
    assert json.loads(text)["result"]["isError"]


@pytest.mark.parametrize("token", [None, "", "wrong"])
async def test_nobody_else_is_answered(token: str | None) -> None:
    from agl.adapters.codex.tools import serving

    async with serving([TOOL]) as address:
        status, text = await asyncio.to_thread(asked, address.url, "tools/list", {}, token)
    assert status == 401
    assert "greet" not in text
    assert address.token not in repr(address)


async def test_it_is_on_loopback_alone_and_ends() -> None:
    from agl.adapters.codex.tools import serving

    async with serving([TOOL]) as address, serving([TOOL]) as other:
        assert urlsplit(address.url).hostname == "127.0.0.1"
        assert address.token != other.token
        assert (await asyncio.to_thread(asked, other.url, "tools/list", {}, address.token))[
            0
        ] == 401
        port = urlsplit(address.url).port or 0
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.2", port), timeout=1).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=1).close()


async def test_signals_are_left_alone() -> None:
    from agl.adapters.codex.tools import serving

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    async with serving([TOOL]) as address:
        await asyncio.to_thread(asked, address.url, "tools/list", {}, address.token)
        assert [signal.getsignal(number) for number in numbers] == before


async def test_a_handler_that_is_at_work_is_ended(caplog: pytest.LogCaptureFixture) -> None:
    from agl.adapters.codex.tools import serving

    at_work, ended = asyncio.Event(), asyncio.Event()

    async def wait(arguments: object) -> ToolAnswer:
        at_work.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ToolAnswer("never")

    tool = AgentTool("wait", "Waits.", {"type": "object"}, wait)
    async with serving([tool]) as address:
        call = {"name": "wait", "arguments": {}}
        asking = asyncio.create_task(
            asyncio.to_thread(asked, address.url, "tools/call", call, address.token)
        )
        await at_work.wait()
    await asyncio.wait({asking}, timeout=20)
    assert asking.exception() is not None or asking.result()[0] >= 500
    assert ended.is_set()
    assert caplog.records == []
