"""Laws of the loop, whatever a model sends."""

import json
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agl.adapters.memory.llm import MemoryLLM
from agl.loop import Agent, Checkpoint, Event, Limits, ToolCalled, ToolReturned, tool
from agl.ports.errors import AglError
from agl.ports.llm import LLMResponse, ToolResult, ToolUse, read_arguments
from loop.world import answer


def _is_json(value: object) -> bool:
    try:
        return bool(json.dumps(value))
    except ValueError:
        return False


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()))
    | st.sampled_from([4000, 5000]).map(lambda digits: 10**digits)
    | st.sampled_from(["walk", "\ud800", "x" * 100_000, "\u2028"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
arguments = st.dictionaries(st.sampled_from(["count", "how", "rest", "x"]), json_values)
written = arguments.filter(_is_json).map(json.dumps)
raw = st.one_of(
    st.text(),
    written,
    st.tuples(written, st.integers(0, 30)).map(lambda cut: cut[0][: cut[1]]),
    st.sampled_from(["", "null", "[1]", '{"a":', "{}", '{"count": 1}', "{" * 5000, "[" * 100_000]),
    st.integers(1, 2_000).map(lambda depth: '{"rest":' + "[" * depth + "]" * depth + "}"),
    st.just("x" * 1_000_000),
)
calls = st.builds(
    ToolUse,
    st.sampled_from(["", "a", "a", "b", "a_2"]),
    st.sampled_from(["plain", "plain", "picky", "raises", "none", ""]),
    raw.map(read_arguments) | arguments | json_values,
)
turns = st.lists(st.lists(calls, max_size=4).map(lambda made: answer("t", *made)), max_size=6)


@tool
async def plain(rest: Any = None) -> Any:
    """Gives back what it gets."""
    return rest


@tool
async def picky(count: Annotated[int, "how many"], how: str, rest: list[dict[str, int]]) -> int:
    """Wants much."""
    return count


@tool
async def raises(count: int = 0, how: Any = None, rest: Any = None, x: Any = None) -> None:
    """Never works."""
    raise ValueError(str(rest))


@settings(max_examples=60, deadline=None)
@given(answers=turns)
async def test_no_exception_leaves_and_each_call_has_its_one_result_in_order(
    tmp_path_factory: pytest.TempPathFactory, answers: list[LLMResponse]
) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "run.jsonl"
    events: list[Event] = []
    llm = MemoryLLM([*answers, answer("end")])
    agent = Agent(
        llm,
        model="memory:x",
        tools=[plain, picky, raises],
        limits=Limits(unfit_turns=3),
        checkpoint=Checkpoint(path),
    )
    try:
        messages = tuple((await agent.run("go", events.append)).messages)
    except AglError:
        messages = tuple(llm.requests[-1].messages)
    assert [m.role for m in messages] == (["user", "assistant"] * len(messages))[: len(messages)]
    for asked, told in zip(messages[1::2], messages[2::2], strict=False):
        ids = [call.id for call in asked.calls]
        assert all(ids)
        assert len(set(ids)) == len(ids)
        if ids:
            assert all(isinstance(block, ToolResult) for block in told.blocks)
            assert [block.use_id for block in told.blocks if isinstance(block, ToolResult)] == ids
    called = [event.call for event in events if isinstance(event, ToolCalled)]
    returned = [event.call for event in events if isinstance(event, ToolReturned)]
    assert called == returned
    with Checkpoint(path).opened() as state:
        assert tuple(state.messages)[: len(messages)] == messages


@given(raw=raw)
def test_arguments_are_read_or_refused_but_never_raise(raw: str) -> None:
    made = ToolUse("a", "b", read_arguments(raw)).arguments
    assert json.dumps(getattr(made, "raw", made), default=dict)
