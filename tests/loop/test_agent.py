import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from agl.adapters.memory.llm import MemoryLLM
from agl.loop import (
    Agent,
    ApprovalAnswered,
    ApprovalAsked,
    Approved,
    Event,
    Limits,
    ModelAnswered,
    ModelCalled,
    ModelTold,
    Refused,
    RunFailed,
    RunFinished,
    RunStarted,
    RunStopped,
    TextArrived,
    ToolCalled,
    ToolRaised,
    ToolReturned,
    tool,
)
from agl.ports.agents import AgentTool, ToolAnswer
from agl.ports.errors import InputError, LimitReached, StreamDropped, UpstreamError
from agl.ports.llm import Ending, LLMRequest, LLMResponse, TextBlock, ToolUse, read_arguments
from agl.ports.models import Usage
from loop.world import Bench, agent_of, answer, events_of, results, returned, use


async def test_it_calls_the_model_runs_the_tools_and_repeats() -> None:
    bench = Bench()
    agent, llm = agent_of(
        [answer("I work.", use(1, n=1)), answer("", use(2, n=2)), answer("Ready.")], bench.tool
    )
    outcome = await agent.run("go")
    assert bench.calls == [{"n": 1}, {"n": 2}]
    assert (outcome.text, outcome.turns, outcome.model) == ("Ready.", 3, "memory")
    assert [message.role for message in outcome.messages] == ["user", "assistant"] * 3
    assert outcome.messages[0].text == "go"
    assert [len(request.messages) for request in llm.requests] == [1, 3, 5]


async def test_every_move_is_told_in_order() -> None:
    agent, _ = agent_of([answer("a", use(1), use(2)), answer("b")], Bench().tool)
    assert [type(event) for event in await events_of(agent)] == [
        RunStarted,
        ModelCalled,
        TextArrived,
        ModelAnswered,
        ToolCalled,
        ToolCalled,
        ToolReturned,
        ToolReturned,
        ModelCalled,
        TextArrived,
        ModelAnswered,
        RunFinished,
    ]


async def test_tools_of_a_turn_run_at_once_and_are_told_in_the_order_of_the_calls() -> None:
    finished: list[int] = []
    ended = {n: asyncio.Event() for n in (1, 2, 4, 8)}
    ended[8].set()

    async def act(arguments: dict[str, int]) -> str:
        n = arguments["n"]
        await ended[2 * n].wait()
        finished.append(n)
        ended[n].set()
        return str(n)

    bench = Bench(act)
    agent, _ = agent_of([answer("", *(use(n, n=n) for n in (1, 2, 4))), answer("x")], bench.tool)
    events = await events_of(agent)
    assert bench.most_at_work == 3
    assert finished == [4, 2, 1]
    assert returned(events) == [("c1", "1"), ("c2", "2"), ("c4", "4")]


async def test_calls_with_the_same_id_get_their_own_results() -> None:
    async def act(arguments: dict[str, int]) -> str:
        return str(arguments["n"])

    calls = [ToolUse("same", "work", {"n": 1}), ToolUse("same", "work", {"n": 2})]
    calls += [ToolUse("same_2", "work", {"n": 3}), ToolUse("", "work", {"n": 4})]
    agent, _ = agent_of([answer("", *calls), answer("x")], Bench(act).tool)
    outcome = await agent.run("go")
    ids = [call.id for call in outcome.messages[1].calls]
    assert len(set(ids)) == 4
    assert all(ids)
    assert [result.use_id for result in results(outcome)] == ids
    assert [result.text for result in results(outcome)] == ["1", "2", "3", "4"]


async def test_the_gate_is_asked_in_order_before_any_tool_runs() -> None:
    bench = Bench()
    asked: list[object] = []

    async def gate(call: ToolUse) -> Approved | Refused:
        assert bench.calls == []
        asked.append(call.id)
        await asyncio.sleep(0)
        return Refused("not on Sundays") if call.id == "c2" else Approved()

    agent, _ = agent_of([answer("", use(1), use(2), use(3)), answer("x")], bench.tool, gate=gate)
    events = await events_of(agent)
    assert asked == ["c1", "c2", "c3"]
    assert len(bench.calls) == 2
    assert returned(events)[1] == ("c2", "Refused: not on Sundays")
    verdicts = [event.verdict for event in events if isinstance(event, ApprovalAnswered)]
    assert verdicts == [Approved(), Refused("not on Sundays"), Approved()]
    assert sum(isinstance(event, ApprovalAsked) for event in events) == 3


async def test_a_gate_is_not_asked_about_what_cannot_run() -> None:
    asked: list[str] = []

    async def gate(call: ToolUse) -> Approved | Refused:
        asked.append(call.id)
        return Approved()

    calls = [ToolUse("a", "work", read_arguments("{")), ToolUse("b", "none", {}), use(1)]
    agent, _ = agent_of([answer("", *calls), answer("x")], Bench().tool, gate=gate)
    await agent.run("go")
    assert asked == ["c1"]


async def test_unusable_calls_are_answered_each_under_its_own_id() -> None:
    bench = Bench()
    junk = ('{"a":', "null", "[1]", "x" * 1_000_000)
    calls = [ToolUse(f"j{n}", "work", read_arguments(raw)) for n, raw in enumerate(junk)]
    calls.append(ToolUse("u", "n" * 1_000, {}))
    agent, _ = agent_of([answer("", *calls, use(1)), answer("x")], bench.tool)
    outcome = await agent.run("go")
    assert bench.calls == [{}]
    found = results(outcome)
    assert [result.use_id for result in found] == ["j0", "j1", "j2", "j3", "u", "c1"]
    assert [result.is_error for result in found] == [True] * 5 + [False]
    assert "the arguments are not usable: not JSON" in found[0].text
    assert "not a JSON object" in found[1].text
    assert "there are: work" in found[4].text
    assert all(len(result.text) < 1_000 for result in found)


async def test_a_model_that_never_sends_usable_arguments_is_stopped() -> None:
    bad = ToolUse("a", "work", read_arguments("{"))
    agent, llm = agent_of([answer("", bad, bad)] * 50, Bench().tool, limits=Limits(unfit_turns=3))
    with pytest.raises(UpstreamError, match="'memory' sent arguments that no tool can use in 3"):
        await agent.run("go")
    assert len(llm.requests) == 3


async def test_arguments_that_a_tool_turns_down_count_too() -> None:
    async def handler(arguments: object) -> ToolAnswer:
        return ToolAnswer("no", is_error=True, arguments_fit=False)

    picky = AgentTool("work", "", {}, handler)
    agent, llm = agent_of([answer("", use(1))] * 50, picky)
    with pytest.raises(UpstreamError, match="in 5 turns"):
        await agent.run("go")
    assert len(llm.requests) == 5


async def test_one_usable_call_in_between_begins_the_count_anew() -> None:
    bad = ToolUse("a", "work", read_arguments("{"))
    turns = [answer("", bad), answer("", bad, use(1)), answer("", bad), answer("x")]
    agent, _ = agent_of(turns, Bench().tool, limits=Limits(unfit_turns=2))
    assert (await agent.run("go")).text == "x"


@pytest.mark.parametrize(
    "raised", [ValueError("bad luck"), SystemExit(3), asyncio.CancelledError(), RecursionError()]
)
async def test_a_tool_that_raises_is_an_error_result_and_an_event(raised: BaseException) -> None:
    async def act(arguments: object) -> str:
        raise raised

    agent, _ = agent_of([answer("", use(1)), answer("x")], Bench(act).tool)
    events = await events_of(agent)
    assert sum(isinstance(event, ToolRaised) for event in events) == 1
    assert returned(events)[0][1].startswith(f"The tool failed: {type(raised).__name__}")
    assert isinstance(events[-1], RunFinished)


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize("raised", [Unspeakable(), ValueError("x" * 1_000_000)])
async def test_what_a_tools_exception_says_is_bounded(raised: Exception) -> None:
    async def act(arguments: object) -> str:
        raise raised

    agent, _ = agent_of([answer("", use(1)), answer("x")], Bench(act).tool)
    [(_, text)] = returned(await events_of(agent))
    assert text.startswith(f"The tool failed: {type(raised).__name__}")
    assert len(text) < 3_000


async def test_a_handler_that_answers_nothing_is_an_error_result() -> None:
    async def handler(arguments: object) -> Any:
        return None

    agent, _ = agent_of([answer("", use(1)), answer("x")], AgentTool("work", "", {}, handler))
    assert "not a ToolAnswer" in returned(await events_of(agent))[0][1]


async def test_a_failure_is_an_event_and_then_raised_and_no_tool_runs() -> None:
    bench, events = Bench(), list[Event]()
    agent, _ = agent_of([answer("", use(1)), StreamDropped("cut off")], bench.tool)
    with pytest.raises(StreamDropped):
        await agent.run("go", events.append)
    assert events[-1] == RunFailed("StreamDropped: cut off")
    assert len(bench.calls) == 1


async def test_a_gate_that_raises_fails_the_run_before_any_tool() -> None:
    async def gate(call: ToolUse) -> Approved | Refused:
        raise KeyError("who")

    bench, events = Bench(), list[Event]()
    agent, _ = agent_of([answer("", use(1))], bench.tool, gate=gate)
    with pytest.raises(KeyError):
        await agent.run("go", events.append)
    assert isinstance(events[-1], RunFailed)
    assert bench.calls == []


@pytest.mark.parametrize(
    ("limits", "usage", "turns", "told"),
    [
        (Limits(turns=2), Usage(), 2, "limit of 2 turns is reached; raise `turns`"),
        (Limits(tokens=25), Usage(8, 2), 3, "30 tokens are used, the limit is 25"),
        (Limits(cost_usd=0.5), Usage(8, 2, 0, 0.125), 4, "USD are spent, the limit is 0.5"),
        (Limits(cost_usd=0.3), Usage(8, 2), 1, "price of model 'memory' is not known"),
    ],
)
async def test_a_limit_ends_the_run_before_the_next_call_of_the_model(
    limits: Limits, usage: Usage, turns: int, told: str
) -> None:
    bench, events = Bench(), list[Event]()
    agent, llm = agent_of([answer("", use(1), usage=usage)] * 50, bench.tool, limits=limits)
    with pytest.raises(LimitReached, match=told):
        await agent.run("go", events.append)
    assert len(llm.requests) == len(bench.calls) == turns
    assert isinstance(events[-1], RunFailed)


async def test_a_run_that_ends_at_its_limit_has_ended() -> None:
    agent, _ = agent_of([answer("x", usage=Usage(10, 10))], limits=Limits(turns=1, tokens=1))
    assert (await agent.run("go")).text == "x"


async def test_the_time_limit_ends_a_tool_at_work() -> None:
    async def act(arguments: object) -> str:
        await asyncio.sleep(60)
        return "late"

    bench = Bench(act)
    agent, _ = agent_of([answer("", use(1))], bench.tool, limits=Limits(time_s=0.02))
    with pytest.raises(LimitReached, match=r"limit of 0\.02 s"):
        await agent.run("go")
    assert bench.at_work == 0


async def test_a_run_in_which_nothing_waits_can_be_ended() -> None:
    async def handler(arguments: object) -> ToolAnswer:
        return ToolAnswer("")

    never = MemoryLLM(lambda request: answer("", use(1)))
    limits = Limits(turns=None, time_s=0.02)
    agent = Agent(
        never, model="memory:x", tools=[AgentTool("work", "", {}, handler)], limits=limits
    )
    with pytest.raises(LimitReached, match="time_s"):
        await agent.run("go")


async def test_a_timeout_of_the_models_own_is_not_called_a_limit() -> None:
    agent, _ = agent_of([TimeoutError("theirs")], limits=Limits(time_s=60))
    with pytest.raises(TimeoutError, match="theirs"):
        await agent.run("go")


@pytest.mark.parametrize("times", [1, 3])
async def test_a_cancelled_run_leaves_no_tool_at_work(times: int) -> None:
    ended: list[int] = []

    async def act(arguments: dict[str, int]) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            for _ in range(3):
                try:
                    await asyncio.sleep(0.01)
                except asyncio.CancelledError:
                    continue
            ended.append(arguments["n"])
            raise
        return ""

    bench, events = Bench(act), list[Event]()
    agent, llm = agent_of([answer("", use(1, n=1), use(2, n=2))], bench.tool)
    work = asyncio.create_task(agent.run("go", events.append))
    while bench.at_work < 2:
        await asyncio.sleep(0)
    for _ in range(times):
        work.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await work
    assert sorted(ended) == [1, 2]
    assert bench.at_work == 0
    assert events[-1] == RunStopped()
    assert len(llm.requests) == 1


async def test_an_observer_can_neither_break_nor_change_the_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def meddle(event: Event) -> None:
        if isinstance(event, ToolCalled):
            event.call.arguments["n"] = 99  # type: ignore[index]
        if isinstance(event, ModelAnswered):
            call: Any = event.response.blocks[0]
            call.arguments["l"].append(3)
        raise RuntimeError("observer")

    bench = Bench()
    agent, _ = agent_of([answer("", use(1, n=1, l=[1, 2])), answer("x")], bench.tool)
    outcome = await agent.run("go", meddle)
    assert bench.calls == [{"n": 1, "l": [1, 2]}]
    assert outcome.text == "x"
    assert "an observer failed" in caplog.text


async def test_a_tool_that_changes_its_arguments_changes_nothing_else() -> None:
    async def act(arguments: Any) -> str:
        arguments["l"].append(arguments.pop("n"))
        return str(arguments["l"])

    agent, llm = agent_of([answer("", use(1, n=1, l=[]))] * 2 + [answer("x")], Bench(act).tool)
    events = await events_of(agent)
    assert [text for _, text in returned(events)] == ["[1]", "[1]"]
    assert llm.requests[-1].messages[1].calls[0].arguments == {"n": 1, "l": ()}


async def test_what_a_request_shows_never_changes() -> None:
    seen: list[LLMRequest] = []

    def say(request: LLMRequest) -> LLMResponse:
        seen.append(request)
        return answer("", use(1)) if len(seen) < 4 else answer("x")

    agent = Agent(MemoryLLM(say), model="memory:x", tools=[Bench().tool])
    outcome = await agent.run("go")
    assert [len(request.messages) for request in seen] == [1, 3, 5, 7]
    assert [len(list(request.messages)) for request in seen] == [1, 3, 5, 7]
    assert seen[1].messages[-1] == outcome.messages[2]
    assert seen[1].messages[:2] == tuple(outcome.messages)[:2]
    with pytest.raises(IndexError):
        seen[0].messages[1]


async def test_a_model_that_ended_is_told_to_go_on_as_long_as_there_is_more_to_tell() -> None:
    more = ["and the tests?", None]
    agent, llm = agent_of([answer("a"), answer("b"), answer("c")], follow_up=lambda: more.pop(0))
    events = await events_of(agent)
    assert [e.text for e in events if isinstance(e, ModelTold)] == ["and the tests?"]
    assert llm.requests[1].messages[2].text == "and the tests?"
    assert len(llm.requests) == 2


@pytest.mark.parametrize("ending", [Ending.PAUSED, Ending.CUT])
async def test_a_model_that_was_cut_short_goes_on(ending: Ending) -> None:
    agent, _ = agent_of([answer("a", ending=ending), answer("b")])
    assert (await agent.run("go")).text == "b"


async def test_the_last_words_are_the_outcome_also_when_the_last_answer_is_silent() -> None:
    agent, _ = agent_of([answer("a", use(1)), answer()], Bench().tool)
    assert (await agent.run("go")).text == "a"


async def test_the_model_is_asked_what_was_asked() -> None:
    bench = Bench()
    agent, llm = agent_of([answer("x")], bench.tool, system="be brief", max_output_tokens=7)
    await agent.run("go")
    [request] = llm.requests
    assert (request.system, request.max_output_tokens) == ("be brief", 7)
    assert str(request.model) == "memory:x"
    assert [(spec.name, spec.schema) for spec in request.tools] == [("work", {"type": "object"})]


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match="two tools are called 'work'"):
        agent_of([], Bench().tool, Bench().tool)


async def test_usage_adds_up() -> None:
    turns: Sequence[LLMResponse] = [
        answer("", use(1), usage=Usage(1, 2, 3, 0.5)),
        answer("x", usage=Usage(10, 20, 30, 0.25)),
    ]
    agent, _ = agent_of(turns, Bench().tool)
    assert (await agent.run("go")).usage == Usage(11, 22, 33, 0.75)


async def test_one_agent_can_run_many_times_at_once() -> None:
    @tool
    async def echo(text: str) -> str:
        """Says it again."""
        await asyncio.sleep(0)
        return text

    def say(request: LLMRequest) -> LLMResponse:
        prompt = request.messages[0].text
        if len(request.messages) == 1:
            return answer("", ToolUse("a", "echo", {"text": prompt}))
        [result] = request.messages[2].blocks
        return answer(f"{prompt} {result.text}")  # type: ignore[union-attr]

    agent = Agent(MemoryLLM(say), model="memory:x", tools=[echo])
    outcomes = await asyncio.gather(*(agent.run(str(n)) for n in range(20)))
    assert [outcome.text for outcome in outcomes] == [f"{n} {n}" for n in range(20)]
    assert outcomes[0].messages[0].blocks == (TextBlock("0"),)
