"""The task's own tools, as a server of the Model Context Protocol in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from claude_agent_sdk import McpSdkServerConfig
from mcp.server import Server
from mcp.types import CallToolResult, ListToolsResult, Tool

from agl.ports.agents import AgentTool, ToolAnswer

SERVER: Final = "agl"
PREFIX: Final = f"mcp__{SERVER}__"


def tool_server(tools: Sequence[AgentTool]) -> McpSdkServerConfig:
    """Serves the tools. What does not fit a tool's schema reaches its handler all the same: that
    answers in AGL's own words, and takes note."""
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

    server: Server[Any] = Server(SERVER, on_list_tools=on_list_tools, on_call_tool=on_call_tool)
    return McpSdkServerConfig(type="sdk", name=SERVER, instance=server)


def _result(answer: ToolAnswer) -> CallToolResult:
    text = answer.text.encode(errors="replace").decode()
    return CallToolResult.model_validate(
        {"content": [{"type": "text", "text": text}], "isError": answer.is_error}
    )
