"""What is the runner's own; what every AgentRunner promises is tested with the scripted model."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from agl.adapters.memory.llm import MemoryLLM, answer
from agl.loop.runner import LoopRunner
from agl.ports.agents import Acted, AgentEvent, AgentTask, Equipped, Kit, Said, Spent
from agl.ports.errors import InputError, UpstreamError
from agl.ports.ids import Namespace
from agl.ports.llm import LLM, LLMResponse, Purpose, ToolUse, read_arguments
from agl.ports.models import ModelId, Restriction, Usage
from agl.testing.contracts.agent_runner import Desk
from loop.world import Bench, Box, use


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def task(desk: Desk, tmp_path: Path) -> AgentTask:
    return desk.task(tmp_path, ModelId("memory", "x"))


async def told(
    task: AgentTask, *answers: LLMResponse, bench: Bench | None = None
) -> list[AgentEvent]:
    events: list[AgentEvent] = []
    offered = (bench or Bench()).tool
    await LoopRunner(MemoryLLM(answers), Box(offered, sandbox="a fence")).run(task, events.append)
    return events


async def test_the_model_gets_what_the_task_says(task: AgentTask) -> None:
    llm = MemoryLLM()
    scope = task.scope.child(Namespace("left")).child(Namespace("up"))
    asked = replace(task, scope=scope, nth=2, attempt=3, prompt="the inputs")
    await LoopRunner(llm, Box()).run(asked, lambda event: None)
    request = llm.requests[0]
    assert (request.system, request.messages[0].text) == ("Work.", "the inputs")
    assert request.purpose == Purpose("work", "left/up", 2, 3)
    assert [(spec.name, spec.reports) for spec in request.tools] == [("report_findings", True)]


async def test_an_empty_prompt_is_not_sent(task: AgentTask) -> None:
    llm = MemoryLLM()
    await LoopRunner(llm, Box()).run(task, lambda event: None)
    assert llm.requests[0].messages[0].text == "Begin."


async def test_what_happens_comes_up_in_order(task: AgentTask) -> None:
    first = answer("I look.", use(1, path="a.txt"), use(2), usage=Usage(1, 2))
    assert (await told(task, first, answer("x")))[:6] == [
        Equipped("AGL's own loop", "a fence"),
        Spent(Usage(1, 2)),
        Said("I look."),
        Acted("work a.txt"),
        Acted("work"),
        Said("x"),
    ]


async def test_a_line_is_one_short_printable_line(task: AgentTask) -> None:
    calls = [use(1, command="a\n\tb" + "x" * 5_000), use(2, path="\ud800")]
    events = await told(task, answer("", *calls))
    lines = [event.activity for event in events if isinstance(event, Acted)]
    assert lines[0].startswith("work a bxxx")
    assert len(lines[0]) == 120
    assert lines[1] == "work ?"


async def test_the_toolbox_decides_what_is_offered(desk: Desk, tmp_path: Path) -> None:
    class Picky(Box):
        @asynccontextmanager
        async def opened(self, task: AgentTask) -> AsyncIterator[Kit]:
            yield Kit(() if Restriction.NO_SHELL in task.restrictions else (Bench().tool,))

    free, bound = (
        desk.task(tmp_path, ModelId("memory", "x"), *restrictions)
        for restrictions in ((), (Restriction.NO_SHELL,))
    )
    llm = MemoryLLM()
    for task in (free, bound):
        await LoopRunner(llm, Picky()).run(task, lambda event: None)
    assert [len(request.tools) for request in llm.requests[::2]] == [2, 1]


async def test_reports_that_are_never_right_end_the_step(task: AgentTask, desk: Desk) -> None:
    bad = answer("", ToolUse("a", "report_findings", read_arguments("[]")))
    with pytest.raises(UpstreamError, match="arguments that no tool can use"):
        await told(task, *[bad] * 50)
    assert desk.answers == []


@pytest.mark.parametrize("calls", [0, 1])
async def test_an_emit_that_raises_ends_the_run_before_the_next_tool(
    task: AgentTask, calls: int
) -> None:
    def emit(event: AgentEvent) -> None:
        raise UpstreamError("no space")

    bench = Bench()
    llm = MemoryLLM([answer("x", *[use(1)] * calls), answer("y")])
    with pytest.raises(UpstreamError, match="no space"):
        await LoopRunner(llm, Box(bench.tool)).run(task, emit)
    assert bench.calls == []


async def test_files_and_readiness_are_the_models(task: AgentTask, tmp_path: Path) -> None:
    class Local(MemoryLLM):
        def files(self, model: ModelId) -> tuple[Path, ...]:
            return (tmp_path / model.name,)

        async def check_ready(self, model: ModelId) -> None:
            raise UpstreamError(f"not {model.name}")

    llm: LLM = Local()
    runner = LoopRunner(llm, Box())
    assert runner.files(task.model) == (tmp_path / "x",)
    with pytest.raises(UpstreamError, match="not x"):
        await runner.check_ready(task.model)


async def test_readiness_tells_the_sandbox(task: AgentTask) -> None:
    said = await LoopRunner(MemoryLLM(), Box(sandbox="a fence")).check_ready(task.model)
    assert said == "AGL's own loop, a fence"


async def test_a_toolbox_that_cannot_be_had_is_told_after_the_model(task: AgentTask) -> None:
    class Empty(Box):
        async def check_ready(self) -> str:
            raise InputError("the sandbox is required")

    with pytest.raises(InputError, match="sandbox is required"):
        await LoopRunner(MemoryLLM(), Empty()).check_ready(task.model)
