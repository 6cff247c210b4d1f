import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agl.adapters.scripted import ScriptedLLM
from agl.adapters.system import SystemProcesses
from agl.adapters.worktools import WorkTools
from agl.loop.runner import LoopRunner
from agl.ports.agents import Acted, AgentEvent, AgentRunner, Said
from agl.ports.clock import Clock
from agl.ports.errors import InputError, NotFoundError, Overloaded
from agl.ports.ids import Namespace
from agl.ports.models import ModelId
from agl.testing.contracts.agent_runner import (
    FOREIGN_GIT,
    AgentAtWorkContract,
    Desk,
    RunnerOf,
    ScriptTurn,
    call,
)


class CountedClock(Clock):
    """A sleep passes at once and is counted."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> datetime:
        return datetime(2026, 1, 2, tzinfo=UTC)

    def monotonic_s(self) -> float:
        return sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


@pytest.fixture
def clock() -> CountedClock:
    return CountedClock()


@pytest.fixture
def runner(clock: CountedClock) -> LoopRunner:
    processes = SystemProcesses(grace_s=0.2)
    return LoopRunner(ScriptedLLM(clock), WorkTools(processes, {**os.environ, **FOREIGN_GIT}))


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


def scripted(folder: Path, steps: dict[str, Sequence[ScriptTurn]]) -> ModelId:
    path = folder / "script.json"
    path.write_text(json.dumps({"format": 1, "steps": steps}))
    return ModelId.parse(f"scripted:{path}")


async def said(runner: AgentRunner, desk: Desk, tree: Path, model: ModelId) -> list[AgentEvent]:
    events: list[AgentEvent] = []
    await runner.run(desk.task(tree, model), events.append)
    return events


class TestScriptedRunner(AgentAtWorkContract):
    @pytest.fixture
    def runner_of(self, runner: LoopRunner, tmp_path: Path) -> RunnerOf:
        return lambda turns: (runner, scripted(tmp_path, {"work": turns}))


async def test_the_most_exact_key_is_played(
    runner: LoopRunner, desk: Desk, tree: Path, tmp_path: Path
) -> None:
    keys = ("work", "work#2", "work@left", "work@left/up#2")
    model = scripted(tmp_path, {key: [{"text": key}] for key in keys})
    task = desk.task(tree, model)
    child = task.scope.child(Namespace("left"))
    played = [
        (await runner.run(replace(task, scope=scope, nth=nth), lambda event: None)).text
        for scope in (task.scope, child, child.child(Namespace("up")))
        for nth in (1, 2)
    ]
    assert played == ["work", "work#2", "work@left", "work@left", "work", "work@left/up#2"]


async def test_a_step_without_a_key_reports_what_its_schema_asks_for(
    runner: LoopRunner, desk: Desk, tree: Path, tmp_path: Path
) -> None:
    events = await said(runner, desk, tree, scripted(tmp_path, {}))
    assert desk.report == {"findings": []}
    assert events[1:] == [Said("the script has no part for 'work'"), Acted("report_findings")]


async def test_a_step_without_a_key_says_which_keys_there_are(
    runner: LoopRunner, desk: Desk, tree: Path, tmp_path: Path
) -> None:
    model = scripted(tmp_path, {key: [{"text": "x"}] for key in ("wrok", "work@left", *"abcd")})
    events = await said(runner, desk, tree, model)
    keys = "'wrok', 'work@left', 'a', 'b', 'c'"
    assert Said(f"the script has no part for 'work'; it has {keys}") in events


async def test_the_file_is_part_of_the_model(runner: LoopRunner, tmp_path: Path) -> None:
    assert runner.files(scripted(tmp_path, {})) == (tmp_path / "script.json",)


async def test_a_delay_passes_on_the_clock(
    runner: LoopRunner, clock: CountedClock, desk: Desk, tree: Path, tmp_path: Path
) -> None:
    await said(runner, desk, tree, scripted(tmp_path, {"work": [{"delay_s": 30, "text": "x"}]}))
    assert clock.slept == [30]


async def test_an_error_is_consumed_and_the_next_attempt_does_all_the_work(
    runner: LoopRunner, desk: Desk, tree: Path, tmp_path: Path
) -> None:
    overloaded = {"error": {"kind": "overloaded"}, "text": "after it"}
    turns = [call("write", path="a", content="a"), overloaded]
    model = scripted(tmp_path, {"work": turns})
    with pytest.raises(Overloaded):
        await said(runner, desk, tree, model)
    (tree / "a").unlink()
    events: list[AgentEvent] = []
    await runner.run(replace(desk.task(tree, model), attempt=2), events.append)
    assert (tree / "a").exists()
    assert events[-1] == Said("after it")


async def test_a_call_that_failed_is_told_in_one_line(
    runner: LoopRunner, desk: Desk, tree: Path, tmp_path: Path
) -> None:
    turns = [call("shell", command="echo a; echo b; exit 3"), call("nothing")]
    events = await said(runner, desk, tree, scripted(tmp_path, {"work": turns}))
    assert events[1:] == [
        Acted("shell echo a; echo b; exit 3"),
        Acted("shell echo a; echo b; exit 3 failed: exit status 3 a b"),
        Acted("nothing"),
        Acted(
            "nothing failed: no tool 'nothing'; there are: read, list, search, write, edit, shell,"
            " report_findings"
        ),
    ]


async def test_arguments_that_are_no_object_do_not_reach_the_tool(
    runner: LoopRunner, desk: Desk, tree: Path, tmp_path: Path
) -> None:
    calls = [
        {"tool": "report_findings", "raw_arguments": raw, "id": f"c{number}"}
        for number, raw in enumerate(('{"a":', "null", "[1]", "NaN", "[" * 100_000))
    ]
    good = {"tool": "report_findings", "raw_arguments": '{"findings": []}', "id": "c0"}
    model = scripted(tmp_path, {"work": [{"calls": [*calls, good]}]})
    events = await said(runner, desk, tree, model)
    told = [event.activity for event in events if isinstance(event, Acted)]
    failed = [line for line in told if "failed: the arguments are not usable: not " in line]
    assert len(failed) == len(calls)
    assert [answer.is_error for answer in desk.answers] == [False]


async def test_an_agent_whose_last_turn_is_a_call_is_asked_to_go_on_too(
    runner: LoopRunner, desk: Desk, tree: Path, tmp_path: Path
) -> None:
    await said(runner, desk, tree, scripted(tmp_path, {"work": [call("list")]}))
    assert desk.nudges == 1


async def test_a_missing_script_is_not_found(runner: LoopRunner, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no script '.*none\.json'; pass scripted:PATH"):
        await runner.check_ready(ModelId.parse(f"scripted:{tmp_path / 'none.json'}"))


def doc(**step: object) -> str:
    return json.dumps({"format": 1, "steps": {"fix": [step]}})


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\xff", "it is not UTF-8"),
        ("", "it is not JSON (line 1, column 1)"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "the document: expected an object, found []"),
        ("{}", 'the document: expected "format": 1'),
        ('{"format": "1", "steps": {}}', 'the document: expected "format": 1'),
        ('{"format": true, "steps": {}}', 'the document: expected "format": 1'),
        ('{"format": 0, "steps": {}}', "format: expected 1, found 0"),
        ('{"format": 2, "new": {}}', "format 2 is newer than this AGL reads (1)"),
        ('{"format": 1}', 'the document: expected "steps"'),
        ('{"format": 1, "step": {}}', "the document: unknown 'step'; expected format, steps"),
        ('{"format": 1, "steps": {"a": [], "a": []}}', "'a' stands twice"),
        ('{"format": 1, "steps": []}', "steps: expected an object, found []"),
        ('{"format": 1, "steps": {"a#0": []}}', "steps.a#0: expected a key like"),
        ('{"format": 1, "steps": {"a#1@b": []}}', "steps.a#1@b: expected a key like"),
        ('{"format": 1, "steps": {"a": {}}}', "steps.a: expected a list, found {}"),
        ('{"format": 1, "steps": {"a": [1]}}', "steps.a[0]: expected an object, found 1"),
        ('{"format": 1, "steps": {"a": [{"delay_s": NaN}]}}', "NaN is not JSON"),
        (doc(txt=1), "steps.fix[0]: unknown 'txt'; expected delay_s, error, usage, text, calls"),
        (doc(text=1), "steps.fix[0].text: expected text, found 1"),
        (doc(delay_s=-1), "steps.fix[0].delay_s: expected a number from 0"),
        (doc(delay_s=True), "steps.fix[0].delay_s: expected a number from 0"),
        (doc(error={}), "steps.fix[0].error.kind: expected one of overloaded"),
        (doc(error={"kind": []}), "steps.fix[0].error.kind: expected one of overloaded"),
        (doc(error={"kind": "auth", "x": 1}), "steps.fix[0].error: unknown 'x'"),
        (doc(usage={"tokens": 1}), "steps.fix[0].usage: unknown 'tokens'"),
        (doc(usage={"input_tokens": 1.5}), "steps.fix[0].usage.input_tokens: expected a whole"),
        (doc(usage={"cost_usd": "1"}), "steps.fix[0].usage.cost_usd: expected a number"),
        (doc(calls={}), "steps.fix[0].calls: expected a list"),
        (doc(calls=[{}]), 'steps.fix[0].calls[0]: expected a "tool"'),
        (doc(calls=[{"tool": 1}]), "steps.fix[0].calls[0].tool: expected text"),
        (doc(calls=[{"tool": "a", "id": 1}]), "steps.fix[0].calls[0].id: expected text"),
        (
            doc(calls=[{"tool": "a", "arguments": [1]}]),
            "steps.fix[0].calls[0].arguments: expected an object, found [1]",
        ),
        (
            doc(calls=[{"tool": "a", "raw_arguments": {}}]),
            "steps.fix[0].calls[0].raw_arguments: expected text",
        ),
        (
            doc(calls=[{"tool": "a", "arguments": {}, "raw_arguments": "{}"}]),
            "steps.fix[0].calls[0]: expected arguments or raw_arguments, found both",
        ),
    ],
)
async def test_a_script_that_is_wrong_names_the_file_the_place_and_what_belongs_there(
    runner: LoopRunner, desk: Desk, tree: Path, tmp_path: Path, content: str, problem: str
) -> None:
    path = tmp_path / "script.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    model = ModelId.parse(f"scripted:{path}")
    with pytest.raises(InputError) as refused:
        await runner.check_ready(model)
    assert problem in str(refused.value)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)
    with pytest.raises(InputError):
        await said(runner, desk, tree, model)


async def test_a_folder_is_no_script(runner: LoopRunner, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        await runner.check_ready(ModelId.parse(f"scripted:{tmp_path}"))
