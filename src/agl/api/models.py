"""Whether agents can work here: what would be used, and one real turn of a model."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agl.config import container
from agl.config.settings import resolve
from agl.ports.agents import AgentEvent, AgentTask, AgentTool, Equipped, Priced, Spent, ToolAnswer
from agl.ports.errors import UpstreamError
from agl.ports.ids import Label, ProjectName, Scope
from agl.ports.models import ModelId, Restriction, Usage
from agl.ports.processes import Marker

PROGRAMS: Final = ("claude_code", "codex")
"""The providers that are programs of this machine."""

_TURN_S: Final = 120.0


async def program(environ: Mapping[str, str], home: str | None, provider: str) -> str:
    """What a step on this provider would be done with.

    Raises:
        InputError, UpstreamError, DeniedError: nothing could be done, with what to type.
    """
    return await container.agents(resolve(environ, home)).check_ready(ModelId(provider, "any"))


async def own_loop(environ: Mapping[str, str], home: str | None) -> str:
    """In which sandbox AGL's own agents would work.

    Raises:
        InputError: one is required, and cannot be had.
    """
    return await container.toolbox(resolve(environ, home)).check_ready()


async def turn(environ: Mapping[str, str], home: str | None, model: ModelId) -> str:
    """Has a model call a tool, which is paid for, and says with what it did and what it used.

    Raises:
        InputError, UpstreamError, DeniedError: it could not, with what to type.
    """
    agents = container.agents(resolve(environ, home))
    await agents.check_ready(model)
    called = asyncio.Event()
    events: list[AgentEvent] = []

    async def hear(arguments: object) -> ToolAnswer:
        called.set()
        return ToolAnswer("Thank you. That is all.")

    marker = Marker(f"doctor-{os.getpid()}-{time.monotonic_ns()}")
    with tempfile.TemporaryDirectory(prefix="agl-doctor-") as folder:
        task = AgentTask(
            scope=Scope(ProjectName("doctor"), Label("doctor")),
            step="doctor",
            nth=1,
            attempt=1,
            model=model,
            instructions="You are asked whether you can be reached. Do nothing but what is asked.",
            prompt="Call the tool `here` once, without arguments. Then end.",
            tree=Path(folder).resolve(),
            restrictions=frozenset(Restriction),
            tools=(AgentTool("here", "Says that you are here.", _NOTHING, hear, reports=True),),
            marker=marker,
            follow_up=lambda: None,
        )
        began = time.monotonic()
        try:
            async with asyncio.timeout(_TURN_S):
                outcome = await agents.run(task, events.append)
        except TimeoutError as error:
            raise UpstreamError(
                f"{model} did not end a turn within {_TURN_S:g} s; try again, or take another model"
            ) from error
        finally:
            await container.processes().end(marker)
    if not called.is_set():
        raise UpstreamError(f"{model} answered and did not call its tool; take another model")
    seconds = time.monotonic() - began
    return f"{outcome.model} called its tool in {seconds:.1f} s{_used(events)}{_by(events)}"


_NOTHING: Final[Mapping[str, object]] = {"type": "object", "properties": {}}


def _used(events: list[AgentEvent]) -> str:
    usage = sum((event.usage for event in events if isinstance(event, Spent)), Usage())
    priced = [event.cost_usd for event in events if isinstance(event, Priced)]
    cost = priced[-1] if priced else usage.cost_usd
    tokens = usage.input_tokens + usage.output_tokens
    price = "" if cost is None else f", ${cost:.4f}"
    return f", {tokens} tokens{price}"


def _by(events: list[AgentEvent]) -> str:
    return "".join(f", {event.program}" for event in events if isinstance(event, Equipped))
