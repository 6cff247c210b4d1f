"""What every `AgentRunner` promises, told as scripts in the turns of `scripted:PATH`."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from agl.ports.agents import (
    Acted,
    AgentEvent,
    AgentOutcome,
    AgentRunner,
    AgentTask,
    AgentTool,
    Equipped,
    Said,
    Spent,
    ToolAnswer,
)
from agl.ports.errors import (
    AglError,
    AuthenticationFailed,
    ContextTooLong,
    Overloaded,
    RateLimited,
    StreamDropped,
    Transient,
)
from agl.ports.ids import Label, ProjectName, Scope
from agl.ports.models import ModelId, Restriction, Usage
from agl.ports.processes import ATTEMPT_VARIABLE, RUN_VARIABLE, Marker

ScriptTurn = Mapping[str, object]
RunnerOf = Callable[[Sequence[ScriptTurn]], tuple[AgentRunner, ModelId]]

FOREIGN_GIT = {"GIT_DIR": "/elsewhere/.git", "GIT_INDEX_FILE": "/elsewhere/index"}
"""To be in the environment that the runner under test gets."""

_SCOPE = Scope(ProjectName("shop"), Label("one"))
_SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {"findings": {"type": "array", "items": {"type": "string"}}},
    "required": ["findings"],
}


def call(tool: str, **arguments: object) -> ScriptTurn:
    """A turn of one call."""
    return {"calls": [{"tool": tool, "arguments": arguments}]}


class Desk:
    """Takes reports as the engine does: problems are answered, the first valid one stands."""

    def __init__(self) -> None:
        self.report: object = None
        self.answers: list[ToolAnswer] = []
        self.follow_ups = 0
        self.nudges = 0

    async def _take(self, arguments: object) -> ToolAnswer:
        answer = self._judged(arguments)
        self.answers.append(answer)
        return answer

    def _judged(self, arguments: object) -> ToolAnswer:
        if self.report is not None:
            return ToolAnswer("a report is in already", is_error=True)
        if not isinstance(arguments, Mapping) or not isinstance(arguments.get("findings"), list):
            return ToolAnswer("findings: expected a list", is_error=True)
        self.report = arguments
        return ToolAnswer("thank you")

    def _follow_up(self) -> str | None:
        self.follow_ups += 1
        if self.report is not None or self.nudges:
            return None
        self.nudges += 1
        return "report, please"

    def task(self, tree: Path, model: ModelId, *restrictions: Restriction) -> AgentTask:
        tool = AgentTool("report_findings", "Hands in.", _SCHEMA, self._take, reports=True)
        return AgentTask(
            scope=_SCOPE,
            step="work",
            nth=1,
            attempt=1,
            model=model,
            instructions="Work.",
            prompt="",
            tree=tree,
            restrictions=frozenset(restrictions),
            tools=(tool,),
            marker=Marker(f"contract-{os.getpid()}-{time.monotonic_ns()}", "1"),
            follow_up=self._follow_up,
        )


class AgentRunnerContract:
    """Subclass, and give `runner_of`: a runner whose agent does these turns in the step `work`.
    `tells_prices`: whether its vendor says what a call cost."""

    tells_prices: ClassVar[bool] = True

    @pytest.fixture
    def runner_of(self) -> RunnerOf:
        raise NotImplementedError

    @pytest.fixture
    def tree(self, tmp_path: Path) -> Path:
        tree = tmp_path / "tree"
        tree.mkdir()
        return tree

    @pytest.fixture
    def desk(self) -> Desk:
        return Desk()

    async def test_a_ready_model_is_not_refused(self, runner_of: RunnerOf) -> None:
        runner, model = runner_of([])
        assert await runner.check_ready(model)
        assert runner.capabilities(model) == runner.capabilities(model)
        assert all(file.is_file() for file in runner.files(model))

    async def test_the_work_is_in_the_tree(
        self, runner_of: RunnerOf, tree: Path, desk: Desk
    ) -> None:
        await _ran(
            runner_of, [call("write", path="new/a.txt", content="a\n"), {"text": "x"}], tree, desk
        )
        assert (tree / "new/a.txt").read_bytes() == b"a\n"

    async def test_it_first_tells_what_it_works_with(
        self, runner_of: RunnerOf, tree: Path, desk: Desk
    ) -> None:
        _, events = await _ran(runner_of, [{"text": "x"}], tree, desk)
        assert isinstance(events[0], Equipped)
        assert events[0].program
        assert sum(isinstance(event, Equipped) for event in events) == 1

    async def test_what_it_says_comes_up_and_is_its_outcome(
        self, runner_of: RunnerOf, tree: Path, desk: Desk
    ) -> None:
        outcome, events = await _ran(runner_of, [{"text": "all is well"}], tree, desk)
        assert Said("all is well") in events
        assert outcome.text == "all is well"
        assert outcome.model

    async def test_a_report_arrives_through_its_tool(
        self, runner_of: RunnerOf, tree: Path, desk: Desk
    ) -> None:
        await _ran(
            runner_of, [call("report_findings", findings=["x"]), {"text": "done"}], tree, desk
        )
        assert desk.report == {"findings": ["x"]}

    async def test_a_report_is_repaired_after_its_problems_were_answered(
        self, runner_of: RunnerOf, tree: Path, desk: Desk
    ) -> None:
        turns = [call("report_findings"), call("report_findings", findings=[]), {"text": "done"}]
        await _ran(runner_of, turns, tree, desk)
        assert [answer.is_error for answer in desk.answers] == [True, False]
        assert desk.report == {"findings": []}

    async def test_the_first_report_stands(
        self, runner_of: RunnerOf, tree: Path, desk: Desk
    ) -> None:
        turns = [
            call("report_findings", findings=["first"]),
            call("report_findings", findings=["second"]),
            {"text": "done"},
        ]
        await _ran(runner_of, turns, tree, desk)
        assert desk.report == {"findings": ["first"]}
        assert [answer.is_error for answer in desk.answers] == [False, True]

    async def test_an_agent_that_ended_goes_on_when_told_to(
        self, runner_of: RunnerOf, tree: Path, desk: Desk
    ) -> None:
        turns = [{"text": "I am done"}, call("report_findings", findings=[]), {"text": "now"}]
        await _ran(runner_of, turns, tree, desk)
        assert desk.nudges == 1
        assert desk.report == {"findings": []}

    async def test_an_agent_with_nothing_more_to_do_ends(
        self, runner_of: RunnerOf, tree: Path, desk: Desk
    ) -> None:
        await _ran(runner_of, [{"text": "I am done"}], tree, desk)
        assert desk.nudges == 1
        assert desk.report is None

    async def test_usage_adds_up(self, runner_of: RunnerOf, tree: Path, desk: Desk) -> None:
        usage = {"input_tokens": 10, "output_tokens": 2, "cost_usd": 0.5}
        turns = [{"text": "a", "usage": usage}, {"text": "b", "usage": usage}]
        _, events = await _ran(runner_of, turns, tree, desk)
        total = sum((e.usage for e in events if isinstance(e, Spent)), Usage())
        assert total == Usage(20, 4, 0, 1.0 if self.tells_prices else None)

    @pytest.mark.parametrize(
        ("kind", "error"),
        [
            ("overloaded", Overloaded),
            ("rate_limited", RateLimited),
            ("dropped", StreamDropped),
            ("auth", AuthenticationFailed),
            ("too_long", ContextTooLong),
        ],
    )
    async def test_a_failure_has_its_own_error(
        self, runner_of: RunnerOf, tree: Path, desk: Desk, kind: str, error: type[AglError]
    ) -> None:
        failure = {"kind": kind, "retry_after_s": 3}
        with pytest.raises(error) as raised:
            await _ran(runner_of, [{"error": failure}], tree, desk)
        if isinstance(raised.value, Transient):
            assert raised.value.retry_after_s in ((3, None) if kind == "dropped" else (3,))


class AgentAtWorkContract(AgentRunnerContract):
    """For runners whose agents work with real tools and start real processes. Its environment must
    hold FOREIGN_GIT."""

    async def test_what_it_does_comes_up_in_lines(
        self, runner_of: RunnerOf, tree: Path, desk: Desk
    ) -> None:
        turns = [call("shell", command="true"), {"text": "done"}]
        _, events = await _ran(runner_of, turns, tree, desk)
        lines = [event.activity for event in events if isinstance(event, Acted)]
        assert any("true" in line for line in lines)
        assert not any("\n" in line for line in lines)

    async def test_junk_for_arguments_does_not_end_the_work(
        self, runner_of: RunnerOf, tree: Path, desk: Desk
    ) -> None:
        junk = ('{"a":', "null", "[1]", "x" * 1_000_000)
        calls = [{"tool": "report_findings", "raw_arguments": raw} for raw in junk]
        turns = [{"calls": calls}, call("report_findings", findings=[]), {"text": "done"}]
        await _ran(runner_of, turns, tree, desk)
        assert desk.report == {"findings": []}

    async def test_an_unknown_tool_does_not_end_the_work(
        self, runner_of: RunnerOf, tree: Path, desk: Desk
    ) -> None:
        turns = [call("no_such_tool"), call("report_findings", findings=[]), {"text": "done"}]
        await _ran(runner_of, turns, tree, desk)
        assert desk.report == {"findings": []}

    async def test_who_may_not_write_files_writes_none(
        self, runner_of: RunnerOf, tree: Path, desk: Desk
    ) -> None:
        (tree / "a.txt").write_text("old")
        turns = [
            call("write", path="b.txt", content="b"),
            call("edit", path="a.txt", old="old", new="new"),
            {"text": "done"},
        ]
        await _ran(runner_of, turns, tree, desk, Restriction.NO_FILE_WRITES)
        assert [path.name for path in tree.iterdir()] == ["a.txt"]
        assert (tree / "a.txt").read_text() == "old"

    async def test_who_may_not_use_the_shell_uses_none(
        self, runner_of: RunnerOf, tree: Path, desk: Desk
    ) -> None:
        turns = [call("shell", command="touch a.txt"), {"text": "done"}]
        await _ran(runner_of, turns, tree, desk, Restriction.NO_SHELL)
        assert list(tree.iterdir()) == []

    async def test_its_children_carry_the_marker_and_no_foreign_git(
        self, runner_of: RunnerOf, tree: Path, desk: Desk
    ) -> None:
        turns = [call("shell", command="env > seen.txt"), {"text": "done"}]
        await _ran(runner_of, turns, tree, desk)
        seen = dict(
            line.split("=", 1)
            for line in (tree / "seen.txt").read_text().split("\n")
            if "=" in line
        )
        assert not FOREIGN_GIT.keys() & seen.keys()
        assert seen[RUN_VARIABLE].startswith("contract-")
        assert seen[ATTEMPT_VARIABLE] == "1"

    @pytest.mark.parametrize("times", [1, 3])
    async def test_a_cancelled_agent_leaves_nobody(
        self, runner_of: RunnerOf, tree: Path, desk: Desk, times: int
    ) -> None:
        stubborn = "trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done"
        turns = [call("shell", command=stubborn), call("write", path="late.txt", content="x")]
        work = asyncio.create_task(_ran(runner_of, turns, tree, desk))
        async with asyncio.timeout(60):
            while not (tree / "pid").exists() or not (tree / "pid").read_text():
                await asyncio.sleep(0.01)
        for _ in range(times):
            work.cancel()
            await asyncio.wait({work}, timeout=0.05)
        with pytest.raises(asyncio.CancelledError):
            await work
        assert _is_gone(tree / "pid")
        assert not (tree / "late.txt").exists()


async def _ran(
    runner_of: RunnerOf,
    turns: Sequence[ScriptTurn],
    tree: Path,
    desk: Desk,
    *restrictions: Restriction,
) -> tuple[AgentOutcome, list[AgentEvent]]:
    runner, model = runner_of(turns)
    events: list[AgentEvent] = []
    outcome = await runner.run(desk.task(tree, model, *restrictions), events.append)
    return outcome, events


def _is_gone(pid_file: Path) -> bool:
    """A zombie that its new parent has not reaped yet is gone. What is not, is ended after all."""
    pid = int(pid_file.read_text())
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False)
    state = shown.stdout.strip()
    if not state or state.startswith(b"Z"):
        return True
    os.kill(pid, signal.SIGKILL)
    return False
