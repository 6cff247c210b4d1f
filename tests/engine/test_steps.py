"""What a step promises, on fakes."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from agl.api import runs
from agl.config import container
from agl.ports.agents import AgentEvent, AgentTask, Equipped, Spent
from agl.ports.errors import AglError, Overloaded, UpstreamError
from agl.ports.guards import Guards, Reading
from agl.ports.ids import Label, Scope
from agl.ports.ledger import entry_address, run_folder
from agl.ports.models import Usage
from agl.ports.stopping import Stopping, stopping
from agl.sdk import (
    Choice,
    InputError,
    ModelId,
    NeedsAnswer,
    Restriction,
    Role,
    Run,
    Screen,
    Stop,
    TextInput,
    Workflow,
    reporting_tool,
    role,
    tool,
    workflow,
)
from agl.sdk._engine.ledger import Ledger
from agl.testing import Interrupted, Play, harness

MODEL = ModelId("fake", "model")


@dataclass(frozen=True)
class Note:
    text: str
    severity: int = 0


def writer(name: str = "write", instructions: str = "Write.") -> Role[None]:
    return Role(name=name, instructions=instructions).on(MODEL)


def reporter(name: str = "report") -> Role[Note]:
    return Role(
        name=name,
        instructions="Report.",
        restrictions=[Restriction.NO_FILE_WRITES],
        tools=[reporting_tool("hand_in", "Hands it in.", Note)],
    ).on(MODEL)


def of(body: Callable[[Run[None]], Awaitable[None]], version: str = "1") -> Workflow[None]:
    async def flow(run: Run[None]) -> None:
        await body(run)

    return workflow(version=version)(flow)


def test_a_step_that_may_write_says_how_it_ends(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        await run.step(writer())

    h = harness(tmp_path)
    report = h.run(of(body))
    assert report.exit_code == 2
    assert "commit=" in report.message
    assert "discard=True" in report.message
    assert h.ran == []


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"commit": "x", "discard": True}, "give one"),
        ({"commit": "  "}, "empty commit message"),
        ({"commit": "a\0b"}, "git cannot hold"),
        ({"commit": "\udc80"}, "git cannot hold"),
        ({"commit": "x", "timeout_s": 0}, "above 0"),
        ({"commit": "x", "timeout_s": float("nan")}, "above 0"),
        ({"commit": "x", "request": float("nan")}, "request"),
        ({"commit": "x", "request": {1: 2}}, "no text"),
        ({"commit": "x", "request": object()}, "request"),
        ({"commit": "x", "request": "\ud800"}, "surrogate"),
    ],
)
def test_a_wrong_call_is_refused_before_an_agent_starts(
    tmp_path: Path, asked: dict[str, object], said: str
) -> None:
    async def body(run: Run[None]) -> None:
        await run.step(writer(), **asked)  # type: ignore[arg-type]

    h = harness(tmp_path)
    report = h.run(of(body))
    assert report.exit_code == 2
    assert said in report.message
    assert h.ran == []


def test_a_role_without_a_model_is_refused(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        await run.step(Role(name="write", instructions="Write."), commit="x")

    report = harness(tmp_path).run(of(body))
    assert report.exit_code == 2
    assert "@role(model=" in report.message


def test_a_step_that_discards_keeps_what_it_wrote(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        await run.step(writer(), discard=True)

    h = harness(tmp_path, agent={"write": Play(files={"a.txt": "gold"})}, files={"b.txt": "b"})
    report = h.run(of(body))
    assert report.result == "needed_nothing"
    assert h.files() == {"b.txt": "b"}
    assert len(report.kept) == 1


def test_a_committing_step_that_changes_nothing_is_told_so(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        await run.step(writer(), commit="x")

    h = harness(tmp_path)
    report = h.run(of(body))
    assert report.result == "produced_nothing"
    assert "warned" in h.events


def test_the_first_valid_report_stands(tmp_path: Path) -> None:
    answers: list[str] = []

    async def play(task: AgentTask, emit: Callable[[AgentEvent], None]) -> None:
        (hand_in,) = task.tools
        for arguments in ({"severity": "x"}, {"text": "one"}, {"text": "two"}):
            answers.append((await hand_in.handler(arguments)).text)

    seen: list[Note] = []

    async def body(run: Run[None]) -> None:
        seen.append(await run.step(reporter()))

    harness(tmp_path, agent={"report": play}).run(of(body))
    assert seen == [Note("one")]
    assert "text" in answers[0]
    assert "severity" in answers[0]
    assert "first one stands" in answers[2]


def test_an_agent_without_its_report_is_nudged_once_and_not_believed(tmp_path: Path) -> None:
    nudges: list[str | None] = []

    async def play(task: AgentTask, emit: Callable[[AgentEvent], None]) -> None:
        nudges.extend([task.follow_up(), task.follow_up()])

    async def body(run: Run[None]) -> None:
        await run.step(reporter())

    h = harness(tmp_path, agent={"report": play})
    report = h.run(of(body))
    assert report.exit_code == 6
    assert "hand_in" in report.message
    assert nudges[0] is not None
    assert nudges[1] is None
    assert h.recorded() == ()


def test_a_report_that_was_never_right_is_named_with_its_problems(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        await run.step(reporter())

    report = harness(tmp_path, agent={"report": Play(report={"severity": 1})}).run(of(body))
    assert report.exit_code == 6
    assert "text: Field required" in report.message


def test_a_step_that_raised_commits_nothing_and_its_files_are_kept(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        await run.step(writer(), commit="x")

    h = harness(tmp_path, agent={"write": Play(files={"a.txt": "half"}, fails=Overloaded("busy"))})
    report = h.run(of(body))
    assert report.exit_code == 6
    assert h.recorded() == ()
    assert h.files() == {}
    h.agent = {"write": Play(files={"b.txt": "whole"})}
    report = h.resume()
    assert report.outcome == "finished"
    assert h.files() == {"b.txt": "whole"}
    assert len(report.kept) == 1


def test_a_step_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    ended: list[str] = []

    async def play(task: AgentTask, emit: Callable[[AgentEvent], None]) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("ended")

    async def body(run: Run[None]) -> None:
        await run.step(writer(), commit="x", timeout_s=0.5)

    report = harness(tmp_path, agent={"write": play}).run(of(body))
    assert report.exit_code == 6
    assert "0.5 s" in report.message
    assert ended == ["ended"]


def test_a_cancellation_waits_for_the_ending(tmp_path: Path) -> None:
    """Cancelled between the agent's last word and the entry, the entry is written all the same."""
    memory = container.in_memory(tmp_path, agent={"write": Play(files={"a.txt": "a"})})
    steps: list[asyncio.Task[None]] = []

    class CancellingGuards(Guards):
        async def read(self, branches: tuple[str, ...]) -> Reading:
            if memory.agent.ran:
                steps[0].cancel()
                await asyncio.sleep(0)
            return await memory.services.guards.read(branches)

    async def body(run: Run[None]) -> None:
        steps.append(asyncio.ensure_future(run.step(writer(), commit="x")))
        with pytest.raises(asyncio.CancelledError):
            await steps[0]
        raise Stop("enough")

    services = dataclasses.replace(memory.services, guards=CancellingGuards())
    loaded = runs.Loaded("flow", of(body))
    report = asyncio.run(runs.run(services, loaded, Label("x"), None))
    assert report.outcome == "stopped"
    assert report.head != report.base
    root = Scope(services.project, Label("x"))
    assert [entry.name for entry in Ledger(services.store, root).entries(root)] == ["write"]


def test_who_handles_a_failure_while_being_stopped_begins_nothing_more(tmp_path: Path) -> None:
    async def play(task: AgentTask, emit: Callable[[AgentEvent], None]) -> None:
        told.is_asked = True
        raise UpstreamError("the vendor failed")

    told = Stopping()

    ended: list[bool] = []

    async def body(run: Run[None]) -> None:
        async def work() -> None:
            with contextlib.suppress(UpstreamError):
                await run.step(writer(), commit="x")
            await run.record("after", lambda: 1)

        stopping.set(told)
        working = asyncio.create_task(work())
        await asyncio.wait({working})
        stopping.set(None)
        ended.append(working.cancelled())

    h = harness(tmp_path, agent=play)
    h.run(of(body))
    assert ended == [True]
    assert "recorded" not in h.events


def test_a_sandbox_that_is_lacking_is_told_once(tmp_path: Path) -> None:
    async def play(task: AgentTask, emit: Callable[[AgentEvent], None]) -> None:
        emit(Equipped("claude 9", lack="no fence here"))
        if task.tools:
            await task.tools[0].handler({"text": "x"})

    async def body(run: Run[None]) -> None:
        shut = Role(name="shut", instructions="Look.", restrictions=list(Restriction)).on(MODEL)
        await run.step(shut)
        await run.step(reporter())
        await run.step(reporter("again"))

    h = harness(tmp_path, agent=play)
    assert h.run(of(body)).exit_code == 0
    told = [one.details["text"] for one in h._now.terminal.told if one.kind == "warned"]
    assert len(told) == 1
    assert "shell of step 'report'" in str(told[0])
    assert "no fence here; `agl doctor`" in str(told[0])


def test_usage_is_summed_over_attempts_also_of_dead_processes(tmp_path: Path) -> None:
    seen: list[Usage] = []

    async def play(task: AgentTask, emit: Callable[[AgentEvent], None]) -> None:
        emit(Spent(Usage(10, 1, 0, 0.5)))
        if len(seen) == 0:
            seen.append(Usage())
            raise Interrupted

    async def body(run: Run[None]) -> None:
        await run.step(writer(), commit="x")
        seen.append(run.usage)

    h = harness(tmp_path, agent={"write": play})
    with pytest.raises(Interrupted):
        h.run(of(body))
    h.resume()
    assert seen[-1] == Usage(20, 2, 0, 1.0)


def test_a_changed_input_runs_again_and_an_equal_one_does_not(tmp_path: Path) -> None:
    """G7: step B took A's value; A's value changed, so B runs again."""
    value = "one"

    async def play(task: AgentTask, emit: Callable[[AgentEvent], None]) -> None:
        await task.tools[0].handler({"text": value})

    async def body(run: Run[None]) -> None:
        note = await run.step(reporter("a"))
        await run.step(reporter("b"), note=note)
        raise Stop("not yet")

    h = harness(tmp_path, agent={"a": play, "b": play})
    h.run(of(body))
    assert h.ran == ["a#1", "b#1"]
    h.resume()
    assert h.ran == []
    value = "two"
    h.resume(again="a")
    assert h.ran == ["a#1", "b#1"]


def test_a_run_killed_before_its_first_epoch_was_not_changed(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        await run.step(writer(), discard=True)

    flow = of(body)
    loaded = runs.Loaded(flow.module, flow)
    old = container.in_memory(tmp_path)
    asyncio.run(runs.run(old.services, loaded, Label("run"), None))
    folder = run_folder(old.services.project, Label("run"))
    for left in ("outcome", "epochs/1"):
        old.store.remove((*folder, *left.split("/")))
    new = container.in_memory(tmp_path, after=old)
    asyncio.run(runs.resume(new.services, lambda _: loaded, Label("run")))
    kinds = [event.kind for event in new.terminal.told]
    assert "run_ended" in kinds
    assert "source_changed" not in kinds


def test_steps_whose_names_differ_in_case_may_share_a_folder(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        await run.step(writer("write"), discard=True)

    flow = of(body)
    old = container.in_memory(tmp_path)
    asyncio.run(runs.run(old.services, runs.Loaded(flow.module, flow), Label("run"), None))
    root = Scope(old.services.project, Label("run"))
    (entry,) = Ledger(old.store, root).entries(root)
    *above, _, name = entry_address(root, entry)
    document = old.store.read((*above, "write", name))
    assert document is not None
    old.store.remove((*above, "write", name))
    old.store.write((*above, "Write", name), document)
    assert Ledger(old.store, root).entries(root) == (entry,)


def test_again_leaves_what_came_before(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        await run.step(writer("a"), commit="a")
        await run.step(writer("b"), commit="b")
        await run.step(writer("b"), commit="b2")

    plays = {
        "a": Play(files={"a": "1"}),
        "b": Play(files={"b": "1"}),
        "b#2": Play(files={"c": "1"}),
    }
    h = harness(tmp_path, agent=plays)
    h.run(of(body))
    h.agent = {**plays, "b#2": Play(files={"d": "1"})}
    report = h.resume(again="b#2")
    assert h.ran == ["b#2"]
    assert h.files() == {"a": "1", "b": "1", "d": "1"}
    assert report.result == "landed"


@pytest.mark.parametrize("again", ["none", "a#2", "a#x", "a#0"])
def test_again_of_what_is_not_recorded_is_refused(tmp_path: Path, again: str) -> None:
    async def body(run: Run[None]) -> None:
        await run.step(writer("a"), commit="a")

    h = harness(tmp_path)
    h.run(of(body))
    with pytest.raises(AglError) as caught:
        h.resume(again=again)
    assert caught.value.exit_code in (2, 3)


def test_a_verdict_can_be_asked_for_again(tmp_path: Path) -> None:
    """The build failed for a reason outside of the tree."""

    async def body(run: Run[None]) -> None:
        await run.step(writer("a"), commit="a")
        verdict = await run.verify()
        if not verdict.passed:
            raise Stop("red")
        await run.step(writer("b"), commit="b")

    h = harness(tmp_path, verdicts=[False])
    assert h.run(of(body)).outcome == "stopped"
    assert h.resume().outcome == "stopped"
    h.verdicts = [True]
    assert h.resume(again="verify").outcome == "finished"
    assert h.ran == ["b#1"]


def test_an_answer_can_be_taken_back(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        await run.step(writer("a"), commit="a")
        screen = Screen("Go on?", responses=[Choice("yes", value=True), Choice("no", value=False)])
        if not await run.ask(screen):
            raise Stop("the person said no")
        await run.ask(Screen("Really?", responses=[Choice("yes", value=True)]))

    h = harness(tmp_path, answers=["no"])
    assert h.run(of(body)).outcome == "stopped"
    h.answers = ["yes", "yes"]
    assert h.resume(again="Go on?").outcome == "finished"
    assert h.asked == ["Go on?", "Really?"]
    assert h.ran == []
    h.answers = []
    assert h.resume().message.startswith("finished already")


def test_a_record_can_be_taken_again(tmp_path: Path) -> None:
    taken: list[str] = []

    def take() -> str:
        taken.append("x")
        return "x"

    async def body(run: Run[None]) -> None:
        await run.record("now", take)
        raise Stop("not yet")

    h = harness(tmp_path)
    h.run(of(body))
    h.resume(again="now")
    h.resume()
    assert taken == ["x", "x"]


def test_another_version_is_refused_naming_both(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        raise Stop("not yet")

    h = harness(tmp_path)
    h.run(of(body, version="1"))
    with pytest.raises(AglError) as caught:
        h.resume(of(body, version="2"))
    assert caught.value.exit_code == 4
    assert "'1'" in str(caught.value)
    assert "'2'" in str(caught.value)


def test_each_question_is_asked_once(tmp_path: Path) -> None:
    """G18: step, question, step, question, interrupted after each."""

    async def body(run: Run[None]) -> None:
        for turn in ("one", "two"):
            await run.step(writer(turn), commit=turn)
            text = await run.ask(
                Screen(f"Which {turn}?", responses=[TextInput("name", maps=str.upper)])
            )
            assert text == "X"

    h = harness(tmp_path, answers=["x"])
    asked: list[str] = []
    for process in range(4):
        go = h.resume if process else partial(h.run, of(body))
        with pytest.raises(Interrupted):
            go(interrupt_after=1)
        asked += h.asked
    h.resume()
    assert asked + h.asked == ["Which one?", "Which two?"]


def test_nobody_there_names_every_open_question(tmp_path: Path) -> None:
    """J5: two questions in one turn, nobody there: both are in the record."""

    async def body(run: Run[None]) -> None:
        async with asyncio.TaskGroup() as group:
            for title in ("First?", "Second?"):
                group.create_task(run.ask(Screen(title, responses=[Choice("yes", value=1)])))

    h = harness(tmp_path)
    report = h.run(of(body))
    assert (report.outcome, report.exit_code) == ("needs_answer", 6)
    assert report.questions == ("First?", "Second?")
    h.answers = ["yes", "yes"]
    assert h.resume().outcome == "finished"


def test_an_open_question_says_what_may_be_answered(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        await run.ask(Screen("Go?", responses=[Choice("yes", value=1), Choice("no", value=0)]))

    report = harness(tmp_path).run(of(body))
    assert "(yes, no)" in report.message
    assert '{"Go?": "yes"}' in report.message


def test_an_answer_that_no_longer_fits_is_asked_again(tmp_path: Path) -> None:
    labels = ["red"]

    async def body(run: Run[None]) -> None:
        choices = [Choice(label, value=label) for label in labels]
        await run.ask(Screen("Colour?", responses=choices), key="colour")
        raise Stop("not yet")

    h = harness(tmp_path, answers=["red"])
    h.run(of(body))
    labels[:] = ["blue"]
    h.answers = ["blue"]
    h.resume()
    assert h.asked == ["Colour?"]
    assert "entry_set_aside" in h.events


def test_a_typed_answer_that_does_not_fit_is_asked_again(tmp_path: Path) -> None:
    wanted: list[Callable[[str], object]] = [str]

    async def body(run: Run[None]) -> None:
        await run.ask(Screen("How many?", responses=[TextInput("n", wanted[0])]))
        raise Stop("not yet")

    h = harness(tmp_path, answers=["many"])
    h.run(of(body))
    wanted[:] = [int]
    h.answers = ["3"]
    assert h.resume().outcome == "stopped"
    assert h.asked == ["How many?"]
    assert "entry_set_aside" in h.events


async def test_an_answer_given_beforehand_that_does_not_fit_is_an_input_error(
    tmp_path: Path,
) -> None:
    async def body(run: Run[None]) -> None:
        await run.ask(Screen("How many?", responses=[TextInput("n", int)]))

    flow = of(body)
    report = await runs.run(
        container.in_memory(tmp_path).services,
        runs.Loaded(flow.module, flow),
        Label("run"),
        None,
        answers={"How many?": "many"},
    )
    assert report.exit_code == InputError.exit_code
    assert "'many' does not fit" in report.message


def test_a_question_that_nobody_had_to_answer_is_not_open(tmp_path: Path) -> None:
    async def ask(note: Note) -> str:
        return await run_now[0].ask(Screen("Which?", responses=[TextInput("name", str)]))

    async def body(run: Run[None]) -> None:
        run_now[:] = [run]
        asking = Role(name="ask", instructions="Ask.", tools=[tool("person", "Asks.", Note, ask)])
        await run.step(asking.on(MODEL), discard=True)
        with contextlib.suppress(NeedsAnswer):
            await run.ask(Screen("Really?", responses=[TextInput("why", str)]))
        if stops:
            await run.ask(Screen("Now?", responses=[TextInput("why", str)]))

    run_now: list[Run[None]] = []
    stops = False
    plays = {"ask": Play(calls=[("person", {"text": "?"})])}
    report = harness(tmp_path / "finished", agent=plays).run(of(body))
    assert (report.outcome, report.questions) == ("finished", ())
    stops = True
    report = harness(tmp_path / "open", agent=plays).run(of(body))
    assert (report.outcome, "Which?" in report.questions) == ("needs_answer", False)
    assert "Now?" in report.questions


def test_an_agents_question_is_journaled_under_its_step(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Question:
        text: str

    answers: list[str] = []
    fail = True

    async def play(task: AgentTask, emit: Callable[[AgentEvent], None]) -> None:
        answers.append((await task.tools[0].handler({"text": "tabs?"})).text)
        if fail:
            raise Overloaded("busy")

    async def body(run: Run[None]) -> None:
        async def ask(question: Question) -> str:
            return await run.ask(Screen(question.text, responses=[TextInput("answer", maps=str)]))

        asker: Role[None] = Role(
            name="ask", instructions="Ask.", tools=[tool("ask", "Asks.", Question, ask)]
        )
        await run.step(asker.on(MODEL), commit="x")

    h = harness(tmp_path, agent={"ask": play})
    h.run(of(body))
    assert "Nobody is present" in answers[0]
    h.answers = ["tabs"]
    h.resume()
    fail = False
    h.answers = []
    h.resume()
    assert answers[1:] == ["tabs", "tabs"]


def test_a_record_is_taken_once(tmp_path: Path) -> None:
    taken: list[int] = []

    def take(step: int) -> dict[str, int]:
        taken.append(step)
        return {"taken": len(taken)}

    async def body(run: Run[None]) -> None:
        assert await run.record("count", take, step=1) == {"taken": 1}
        assert await run.record("count", take, step=2) == {"taken": 2}
        raise Stop("not yet")

    h = harness(tmp_path)
    h.run(of(body))
    assert h.resume().outcome == "stopped"
    assert taken == [1, 2]


def test_a_record_without_a_place_in_json_is_refused(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        await run.record("set", lambda: {1, 2})

    report = harness(tmp_path).run(of(body))
    assert report.exit_code == 2


def test_a_verdict_is_recorded_and_replayed(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        first = await run.verify()
        second = await run.verify()
        assert (first.passed, second.passed) == (False, True)
        raise Stop("not yet")

    h = harness(tmp_path, verdicts=[False, True])
    assert h.run(of(body)).outcome == "stopped"
    h.verdicts = []
    assert h.resume().outcome == "stopped"


def test_verify_without_a_build_says_how_to_set_one(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        await run.verify()

    report = harness(tmp_path, build=None).run(of(body))
    assert report.exit_code == 2
    assert "agl init --build" in report.message


def test_an_authors_own_exception_is_theirs(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        raise KeyError("mine")

    report = harness(tmp_path).run(of(body))
    assert (report.outcome, report.exit_code) == ("failed", 1)
    assert report.failure is not None
    assert "KeyError" in report.failure


def test_awaiting_what_was_cancelled_is_the_workflows_failure(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        task = asyncio.create_task(asyncio.sleep(60))
        task.cancel()
        await task

    report = harness(tmp_path).run(of(body))
    assert (report.outcome, report.exit_code) == ("failed", 1)
    assert "cancelled" in report.message


def test_an_exit_of_the_authors_own_is_theirs(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        raise SystemExit(3)

    report = harness(tmp_path).run(of(body))
    assert (report.outcome, report.exit_code) == ("failed", 1)
    assert "sys.exit(3)" in report.message


def test_failures_that_disagree_end_with_8(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        raise ExceptionGroup("", [Stop("a"), ExceptionGroup("", [InputError("b")])])

    report = harness(tmp_path).run(of(body))
    assert (report.outcome, report.exit_code) == ("failed", 8)
    assert "a; b" in report.message


def test_failures_that_agree_keep_their_code(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        raise ExceptionGroup("", [Stop("a"), ExceptionGroup("", [Stop("b")])])

    assert harness(tmp_path).run(of(body)).exit_code == 7


def test_a_finished_run_says_so(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        await run.step(writer(), commit="x")

    h = harness(tmp_path)
    h.run(of(body))
    report = h.resume()
    assert "finished already" in report.message
    assert h.ran == []


def test_a_label_that_is_taken_is_refused(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        raise Stop("not yet")

    h = harness(tmp_path)
    h.run(of(body), label="fix")
    for label in ("fix", "Fix"):
        with pytest.raises(AglError) as caught:
            h.run(of(body), label=label)
        assert caught.value.exit_code == 4


def test_a_factory_binds_the_model_it_is_called_with(tmp_path: Path) -> None:
    @role()
    def chosen(text: str) -> Role[None]:
        return Role(name="write", instructions=text)

    made = chosen("Write.", model=MODEL)
    assert made.model == MODEL
    with pytest.raises(InputError):
        chosen("Write.")


@pytest.mark.parametrize("what", ["step", "verify"])
def test_what_would_wait_for_the_step_around_it_is_refused(tmp_path: Path, what: str) -> None:
    runs_: list[Run[None]] = []

    async def inner(_: Note) -> str:
        if what == "verify":
            await runs_[0].verify()
        else:
            await runs_[0].step(writer("inner"), commit="inner")
        return "done"

    outer = Role(
        name="outer", instructions="Write.", tools=[tool("inner", "Waits.", Note, inner)]
    ).on(MODEL)

    async def body(run: Run[None]) -> None:
        runs_.append(run)
        async with asyncio.timeout(60):
            await run.step(outer, commit="outer")
        await run.step(writer("after"), commit="after")

    h = harness(tmp_path, agent={"outer": Play(calls=[("inner", {"text": "x"})])})
    report = h.run(of(body))
    assert report.outcome == "finished", report.message
    assert h.ran == ["outer#1", "after#1"]
    assert "warned" in h.events


@pytest.mark.parametrize("raises", [False, True])
def test_a_task_that_was_forgotten_does_not_go_on_after_the_end(
    tmp_path: Path, raises: bool
) -> None:
    tasks: list[asyncio.Task[None]] = []

    async def others(run: Run[None]) -> None:
        for number in range(3):
            await run.step(writer(f"other{number}"), commit="x")

    async def body(run: Run[None]) -> None:
        tasks.append(asyncio.ensure_future(others(run)))
        while "step_started" not in h.events:
            await asyncio.sleep(0)
        if raises:
            raise Stop("enough")

    async def never(task: AgentTask, emit: Callable[[AgentEvent], None]) -> str:
        await asyncio.Event().wait()
        return "done"

    h = harness(tmp_path, agent={"other0": never})
    report = h.run(of(body))
    assert h.ran == ["other0#1"]
    assert report.exit_code == (7 if raises else 1)
    assert ("await every task" in report.message) is not raises
    assert [entry.name for entry in h.recorded()] == []


def test_nothing_is_asked_of_a_run_whose_workflow_has_ended(tmp_path: Path) -> None:
    late: list[BaseException] = []

    async def later(run: Run[None]) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            try:
                await run.step(writer(), commit="x")
            except AglError as error:
                late.append(error)

    async def body(run: Run[None]) -> None:
        asyncio.ensure_future(later(run))  # noqa: RUF006
        await asyncio.sleep(0)

    h = harness(tmp_path)
    assert h.run(of(body)).outcome == "finished"
    assert h.ran == []
    assert "has ended" in str(late[0])


def test_an_outcome_that_cannot_be_read_does_not_stop_a_resume(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        await run.step(writer(), commit="x")
        raise Stop("enough")

    h = harness(tmp_path)
    assert h.run(of(body)).exit_code == 7
    services = h._now.services
    folder = run_folder(services.project, Label("run"))
    services.store.write((*folder, "outcome"), {"format": 1, "kind": 5})
    report = h.resume()
    assert (report.exit_code, report.replayed, report.ran) == (7, 1, 0)
    assert "entry_set_aside" in h.events


def test_a_role_that_was_not_made_is_named(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        await run.step(writer, commit="x")  # type: ignore[arg-type]

    report = harness(tmp_path).run(of(body))
    assert report.exit_code == 2
    assert "call the factory" in report.message


def test_a_command_that_no_shell_takes_is_refused(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        await run.verify("a\0b")

    assert harness(tmp_path).run(of(body)).exit_code == 2
