import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from agl.adapters.memory.agent import MemoryAgent
from agl.ports.agents import AgentEvent, AgentTask, Said
from agl.ports.errors import (
    AuthenticationFailed,
    ContextTooLong,
    InternalError,
    Overloaded,
    RateLimited,
    StreamDropped,
)
from agl.ports.models import ModelId, Usage
from agl.ports.scripts import Play
from agl.testing.contracts.agent_runner import (
    AgentRunnerContract,
    Desk,
    RunnerOf,
    ScriptTurn,
    call,
)

MODEL = ModelId("claude_code", "opus")
FAILURES: dict[str, Callable[[float], Exception]] = {
    "overloaded": lambda after: Overloaded("x", retry_after_s=after),
    "rate_limited": lambda after: RateLimited("x", retry_after_s=after),
    "dropped": lambda after: StreamDropped("x", retry_after_s=after),
    "auth": lambda after: AuthenticationFailed("x"),
    "too_long": lambda after: ContextTooLong("x"),
}


def play_of(turn: ScriptTurn) -> Play:
    """A script's turn, in the words of a play."""
    read = json.loads(json.dumps(turn))
    calls = read.get("calls", [])
    writes = [call["arguments"] for call in calls if call["tool"] == "write"]
    failure = read.get("error")
    return Play(
        files={write["path"]: write["content"] for write in writes},
        calls=[(call["tool"], call["arguments"]) for call in calls if call["tool"] != "write"],
        says=read.get("text", ""),
        usage=Usage(**read["usage"]) if "usage" in read else None,
        fails=FAILURES[failure["kind"]](failure["retry_after_s"]) if failure else None,
    )


class TestMemoryAgent(AgentRunnerContract):
    @pytest.fixture
    def runner_of(self) -> RunnerOf:
        def make(turns: Sequence[ScriptTurn]) -> tuple[MemoryAgent, ModelId]:
            return MemoryAgent({"work": [play_of(turn) for turn in turns]}), MODEL

        return make

    async def test_a_file_is_written_and_deleted(self, tree: Path, desk: Desk) -> None:
        (tree / "old").write_text("x")
        agent = MemoryAgent({"work": Play(files={"old": None, "a/b": b"\0\r\n"})})
        await agent.run(desk.task(tree, MODEL), ignored)
        assert [str(path.relative_to(tree)) for path in tree.rglob("*")] == ["a", "a/b"]
        assert (tree / "a/b").read_bytes() == b"\0\r\n"

    async def test_a_play_reports(self, tree: Path, desk: Desk) -> None:
        agent = MemoryAgent({"work": Play(report={"findings": ["x"]})})
        await agent.run(desk.task(tree, MODEL), ignored)
        assert desk.report == {"findings": ["x"]}

    async def test_a_step_without_a_play_reports_what_its_schema_asks_for(
        self, tree: Path, desk: Desk
    ) -> None:
        outcome = await MemoryAgent().run(desk.task(tree, MODEL), ignored)
        assert (desk.report, outcome.text) == ({"findings": []}, "done")

    async def test_a_function_plays_every_step(self, tree: Path, desk: Desk) -> None:
        async def work(task: AgentTask, emit: Callable[[AgentEvent], None]) -> str | None:
            (task.tree / "made").write_text(task.step)
            return "made it"

        agent, events = MemoryAgent(work), list[AgentEvent]()
        outcome = await agent.run(desk.task(tree, MODEL), events.append)
        assert (tree / "made").read_text() == "work"
        assert (outcome.text, events[1:]) == ("made it", [Said("made it")])
        assert (agent.ran, agent.tasks[0].tree, desk.follow_ups) == (["work#1"], tree, 1)

    async def test_a_failure_is_met_once_and_what_was_written_before_it_stays(
        self, tree: Path, desk: Desk
    ) -> None:
        agent = MemoryAgent({"work#1": Play(files={"a": "a"}, fails=Overloaded("x"), says="ok")})
        task = desk.task(tree, MODEL)
        with pytest.raises(Overloaded):
            await agent.run(task, ignored)
        assert (tree / "a").read_text() == "a"
        again = dataclasses.replace(task, attempt=2)
        assert (await agent.run(again, ignored)).text == "ok"

    async def test_a_play_that_asks_for_what_is_not_there_is_named(
        self, tree: Path, desk: Desk
    ) -> None:
        agent = MemoryAgent({"work": play_of(call("no_such"))})
        with pytest.raises(InternalError, match="no tool 'no_such'"):
            await agent.run(desk.task(tree, MODEL), ignored)


def ignored(event: AgentEvent) -> None:
    pass
