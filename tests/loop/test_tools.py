import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from agl.loop import Agent, ToolRaised, tool
from agl.ports.agents import AgentTool, ToolAnswer
from agl.ports.errors import InputError
from agl.ports.llm import ToolUse
from loop.world import agent_of, answer, events_of, returned


@dataclass(frozen=True)
class Place:
    x: int
    y: int = 0


@tool
def go_to(
    place: Place,
    how: Annotated[Literal["walk", "fly"], "the way to go"] = "walk",
    via: list[str] = [],  # noqa: B006 - a copy is handed in each time
) -> str:
    """Goes there.

    At once.
    """
    via.append(how)
    return f"{place} {via}"


async def use(made: AgentTool, **arguments: object) -> ToolAnswer:
    return await made.handler(arguments)


def test_its_schema_comes_from_its_hints() -> None:
    assert (go_to.name, go_to.description) == ("go_to", "Goes there.\n\nAt once.")
    schema: Any = go_to.schema
    assert schema["properties"]["how"] == {
        "type": "string",
        "enum": ["walk", "fly"],
        "default": "walk",
        "description": "the way to go",
    } | {"title": "How"}
    assert schema["required"] == ["place"]
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["Place"]["required"] == ["x"]


async def test_it_gets_values_of_its_types() -> None:
    expected = ToolAnswer("Place(x=1, y=0) ['walk']")
    assert await use(go_to, place={"x": 1}) == expected
    assert await use(go_to, place={"x": 1}) == expected
    flown = await use(go_to, place={"x": 1, "y": 2}, how="fly", via=["a"])
    assert flown.text == "Place(x=1, y=2) ['a', 'fly']"


async def test_what_does_not_fit_is_told_whole() -> None:
    told = await use(go_to, place={"y": "z"}, how="swim", where=1)
    assert (told.is_error, told.arguments_fit) == (True, False)
    for part in ("where: there is no such", "place.x: ", "place.y: ", "how: "):
        assert part in told.text


async def test_arguments_that_are_no_object_do_not_fit() -> None:
    for arguments in (None, [1], "x", 1):
        assert not (await go_to.handler(arguments)).arguments_fit


@pytest.mark.parametrize(
    ("value", "shown"),
    [("é", "é"), (None, "done"), ({"é": [1, True]}, '{"é": [1, true]}'), (Path("a"), '"a"')],
)
async def test_what_it_returns_is_shown_as_text(value: object, shown: str) -> None:
    @tool(name="give", description="Gives.")
    async def unnamed() -> object:
        return value

    assert unnamed.name == "give"
    assert await use(unnamed) == ToolAnswer(shown)


def no_docs(a: int) -> None: ...


def no_type(a) -> None:  # type: ignore[no-untyped-def]
    """Untyped."""


def stars(*a: int) -> None:
    """Many."""


def unknown(a: "Nowhere") -> None:  # type: ignore[name-defined]  # noqa: F821
    """Of a type that is not there."""


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (no_docs, "'no_docs' has no description"),
        (no_type, "'no_type': 'a' has no type"),
        (stars, r"'stars': a model cannot pass \*a"),
        (unknown, "'unknown': name 'Nowhere' is not defined"),
    ],
)
def test_a_function_that_is_no_tool_is_refused(
    function: Callable[..., object], problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        tool(function)


async def test_plain_functions_run_at_once_in_threads() -> None:
    everyone = threading.Barrier(50, timeout=10)

    @tool
    def wait() -> str:
        """Waits for all."""
        everyone.wait()
        return "met"

    calls = [ToolUse(str(n), "wait", {}) for n in range(50)]
    agent, _ = agent_of([answer("", *calls), answer("x")], wait)
    assert [text for _, text in returned(await events_of(agent))] == ["met"] * 50


async def test_a_plain_function_sees_the_context_of_its_caller() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("seen")

    @tool
    def look() -> str:
        """Looks."""
        return variable.get()

    assert (await use(look)).text == "seen"


async def test_an_exception_of_a_function_is_told_to_the_model() -> None:
    @tool
    def fail() -> str:
        """Fails."""
        raise ValueError("bad luck")

    agent, _ = agent_of([answer("", ToolUse("a", "fail", {})), answer("x")], fail)
    events = await events_of(agent)
    assert returned(events) == [("a", "The tool failed: ValueError: bad luck")]
    assert any(isinstance(event, ToolRaised) for event in events)


@pytest.mark.parametrize("times", [1, 3])
async def test_who_cancels_waits_for_a_thread_at_work(times: int) -> None:
    begun, ended = threading.Event(), threading.Event()

    @tool
    def slow() -> str:
        """Cannot be stopped."""
        begun.set()
        time.sleep(0.05)
        ended.set()
        return ""

    agent, _ = agent_of([answer("", ToolUse("a", "slow", {}))], slow)
    work = asyncio.create_task(agent.run("go"))
    await asyncio.to_thread(begun.wait)
    for _ in range(times):
        work.cancel()
        await asyncio.sleep(0.001)
    with pytest.raises(asyncio.CancelledError):
        await work
    assert ended.is_set()


async def test_what_had_not_begun_when_a_run_was_cancelled_never_begins() -> None:
    begun: list[int] = []
    go_on = threading.Event()

    @tool
    def slow(n: int) -> None:
        """Waits to be let go."""
        begun.append(n)
        go_on.wait(10)

    calls = [ToolUse(str(n), "slow", {"n": n}) for n in range(300)]
    agent, _ = agent_of([answer("", *calls)], slow)
    work = asyncio.create_task(agent.run("go"))
    while len(begun) < 256:
        await asyncio.sleep(0.001)
    work.cancel()
    await asyncio.sleep(0.01)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert len(begun) == 256


async def test_a_tool_of_no_arguments_takes_none() -> None:
    @tool
    async def ping() -> str:
        """Answers."""
        return "pong"

    assert (await use(ping)).text == "pong"
    assert not (await use(ping, a=1)).arguments_fit


def test_a_tool_is_one_of_the_ports() -> None:
    assert isinstance(go_to, AgentTool)
    assert isinstance(agent_of([], go_to)[0], Agent)
