"""`split` on fakes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agl.api.endings import Report
from agl.ports.agents import AgentEvent, AgentTask
from agl.ports.ids import Label, Namespace, ProjectName, Scope
from agl.ports.ledger import Kind
from agl.ports.scripts import AgentFunction
from agl.ports.terminal import Answers
from agl.sdk import (
    InputError,
    ModelId,
    Restriction,
    Rows,
    Run,
    Screen,
    Text,
    Verdict,
    workflow,
)
from agl.testing import Harness, Interrupted, Play, harness
from agl.workflows.split import Params, split
from agl.workflows.split.chunk import ChunkAtWork
from agl.workflows.split.ends import Ends, State
from agl.workflows.split.plan import Chunk
from agl.workflows.split.trouble import red_build

Emit = Callable[[AgentEvent], None]
Plays = dict[str, Play | Sequence[Play] | AgentFunction]

MODELS = {"planner": ModelId("fake", "a"), "implementer": ModelId("fake", "b")}
FILES = {"same.txt": "base"}
DONE = {"summary": "done"}
RETRY, REPAIR, GIVE_UP = "retry", "let the agent repair it", "give up this chunk"
BOTH = "same.txt: changed on both sides"


def params(**more: Any) -> Params:
    return Params(**{"request": "do it all\n\nplease", **MODELS, **more})


def chunk(name: str, *needs: str, **more: str) -> dict[str, object]:
    return {"id": name, "title": f"Do {name}", "task": f"Make {name}.", "needs": needs, **more}


def plan(*chunks: Mapping[str, object]) -> Play:
    return Play(report={"chunks": chunks})


def writes(**files: str) -> Play:
    return Play(files={f"{name}.txt": text for name, text in files.items()}, report=DONE)


def project(folder: Path, plays: Plays, **more: Any) -> Harness:
    given = {"verdicts": lambda tree, command: True, "files": FILES, **more}
    return harness(folder, agent=plays, **given)


def ended(report: Report) -> tuple[str, str, int]:
    return report.outcome, report.result, report.exit_code


async def hand_in(task: AgentTask, report: object) -> str:
    answer = await next(tool for tool in task.tools if tool.reports).handler(report)
    return answer.text


THREE: Plays = {
    "plan": plan(chunk("a"), chunk("b"), chunk("c", "a", "b")),
    **{f"implement@{name}": writes(**{name: name}) for name in "abc"},
}


def clash(folder: Path, plays: Plays, **more: Any) -> Harness:
    """`a` and `b` change one file, and `b` comes second; `c` needs `b`."""

    async def second(task: AgentTask, emit: Emit) -> str:
        while (h.tree() / "same.txt").read_text() != "a":
            await asyncio.sleep(0.001)
        (task.tree / "same.txt").write_text("b")
        return await hand_in(task, DONE)

    clashing: Plays = {
        "plan": plan(chunk("a"), chunk("b"), chunk("c", "b")),
        "implement@a": writes(same="a"),
        "implement@b": second,
        "implement@c": writes(c="c"),
    }
    h = project(folder, {**clashing, **plays}, **more)
    return h


def types(h: Harness, text: str, *answers: str) -> Answers:
    """A person who writes the text into the held tree, then answers these."""
    left = list(answers)

    def answer(screen: Screen[object]) -> str | None:
        (h.tree() / "same.txt").write_text(text)
        return left.pop(0) if left else None

    return answer


def test_chunks_land_one_by_one(tmp_path: Path) -> None:
    h = project(tmp_path, THREE)
    report = h.run(split, params())
    assert ended(report) == ("finished", "landed", 0), report.message
    assert h.files() == {**FILES, "a.txt": "a", "b.txt": "b", "c.txt": "c"}
    assert h.shown == ["Chunks: 1 waiting for a need, 2 at work", "Chunks: 3 landed"]
    assert [one.kind for one in h.recorded()].count(Kind.LANDING) == 3


def test_chunks_that_need_nothing_work_side_by_side(tmp_path: Path) -> None:
    met = asyncio.Barrier(2)

    async def waits(task: AgentTask, emit: Emit) -> str:
        await asyncio.wait_for(met.wait(), 60)
        return await hand_in(task, DONE)

    plays = {**THREE, "implement@a": waits, "implement@b": waits, "implement@c": writes(c="c")}
    assert project(tmp_path, plays).run(split, params()).outcome == "finished"


def test_a_chunk_begins_when_its_needs_have_landed_and_sees_them(tmp_path: Path) -> None:
    seen: list[set[str]] = []

    async def looks(task: AgentTask, emit: Emit) -> str:
        seen.append({file.name for file in task.tree.glob("?.txt")})
        (task.tree / "c.txt").write_text("c")
        return await hand_in(task, DONE)

    h = project(tmp_path, {**THREE, "implement@c": looks})
    h.run(split, params())
    assert seen == [{"a.txt", "b.txt"}]


def test_agents_are_told_their_part(tmp_path: Path) -> None:
    tasks: dict[str, AgentTask] = {}

    async def all_of_them(task: AgentTask, emit: Emit) -> str:
        tasks["/".join(task.scope.path)] = task
        (task.tree / f"{task.scope.path or 'plan'}.txt").write_text("x")
        two = {"chunks": [chunk("a"), chunk("b")]}
        return await hand_in(task, DONE if task.scope.path else two)

    h = harness(tmp_path, agent=all_of_them, verdicts=lambda tree, command: True)
    assert h.run(split, params(chunks=2)).result == "landed"
    assert tasks[""].restrictions == {Restriction.NO_FILE_WRITES, Restriction.NO_SHELL}
    assert "# at_most\n\n2\n" in tasks[""].prompt
    for told in ("do it all\n\nplease", "# chunk\n\nMake a.\n", "b: Do b"):
        assert told in tasks["a"].prompt
    assert "Make b." not in tasks["a"].prompt
    assert "a: Do a" not in tasks["a"].prompt


@pytest.mark.parametrize(
    ("chunks", "said"),
    [
        ([], "there is no chunk"),
        ([chunk(name) for name in "abc"], "there are 3 chunks, and at most 2"),
        ([chunk("a"), chunk("a")], "two chunks have the id 'a'"),
        ([chunk("A")], "the id 'A' has more in it than"),
        ([chunk("_base")], "the id '_base' has more in it than"),
        ([chunk("con")], "namespace 'con' is a device name"),
        ([chunk("con", "z")], "bytes); 'con' needs 'z', which is no chunk"),
        ([chunk("a" * 101)], "is too long"),
        ([chunk("a", "z")], "'a' needs 'z', which is no chunk"),
        ([chunk("a", "a")], "in a circle: 'a', 'a'"),
        ([chunk("a", "b"), chunk("b", "a")], "need each other in a circle: "),
        ([chunk("a", title=" ")], "is not one line"),
        ([chunk("a", title="x\ny")], "is not one line"),
        ([chunk("a", title="x" * 73)], "more than 72"),
        ([chunk("a", task="\n")], "the task of 'a' is empty"),
        ([chunk("a", "y"), chunk("B", "z")], "'y', which is no chunk; the id 'B'"),
        ([{"id": "a"}], "chunks.0.title"),
    ],
)
def test_a_plan_that_does_not_hold_goes_back_to_the_planner(
    tmp_path: Path, chunks: list[dict[str, object]], said: str
) -> None:
    answers: list[str] = []

    async def plans(task: AgentTask, emit: Emit) -> str:
        for one in (chunks, [chunk("a")]):
            answers.append(await hand_in(task, {"chunks": one}))
        return "done"

    h = project(tmp_path, {**THREE, "plan": plans})
    assert h.run(split, params(chunks=2)).result == "landed"
    assert said in answers[0]
    assert answers[1].startswith("Taken")


def test_a_planner_without_a_plan_ends_the_run_with_its_problems(tmp_path: Path) -> None:
    report = project(tmp_path, {"plan": plan()}).run(split, params())
    assert report.exit_code == 6
    assert "there is no chunk" in report.message


def test_a_person_types_what_is_right_and_retries(tmp_path: Path) -> None:
    h = clash(tmp_path, {})
    h.answers = types(h, "both", RETRY)
    report = h.run(split, params())
    assert ended(report) == ("finished", "landed", 0), report.message
    assert h.asked == ["b: conflict (1)"]
    assert h.files() == {"same.txt": "both", "c.txt": "c"}


def test_what_is_not_resolved_is_asked_again_and_can_be_given_up(tmp_path: Path) -> None:
    h = clash(tmp_path, {}, answers=[RETRY, GIVE_UP])
    report = h.run(split, params())
    assert ended(report) == ("stopped", "not_landed", 7)
    assert h.asked == ["b: conflict (1)", "b: conflict (2)"]
    assert report.message.splitlines() == [
        "not all has landed: 1 landed, 2 given up",
        f"  b: conflict: {BOTH}",
        "  c: it needs 'b', which was given up",
        "`agl resume run --again 'b: conflict (2)'` tries it once more",
    ]
    assert h.shown[-1] == "Chunks: 1 landed, 2 given up"
    assert h.files() == {"same.txt": "a"}
    assert "implement@c#1" not in h.ran


def test_an_agent_repairs_a_conflict_when_told_to(tmp_path: Path) -> None:
    prompts: list[str] = []

    async def repairs(task: AgentTask, emit: Emit) -> str:
        prompts.append(task.prompt)
        assert "<<<<" in (task.tree / "same.txt").read_text()
        (task.tree / "same.txt").write_text("both")
        return await hand_in(task, DONE)

    h = clash(tmp_path, {"repair": repairs}, answers=[REPAIR])
    assert h.run(split, params()).result == "landed"
    assert h.files() == {"same.txt": "both", "c.txt": "c"}
    assert f"conflict in {BOTH}" in prompts[0]
    assert "Make b." in prompts[0]


def test_the_screen_shows_paths_and_where_the_tree_is(tmp_path: Path) -> None:
    screens: list[Screen[object]] = []

    def answer(screen: Screen[object]) -> str:
        screens.append(screen)
        return REPAIR if len(screens) == 1 else GIVE_UP

    h = clash(tmp_path, {"repair": Play(report=DONE)}, answers=answer)
    h.run(split, params(rounds=1))
    first, second = screens
    assert first.body[0] == Text(BOTH)
    assert str(h.tree()) in str(first.body[-1])
    assert [one.label for one in first.responses] == [RETRY, REPAIR, GIVE_UP]
    assert [one.label for one in second.responses] == [RETRY, GIVE_UP]


def test_where_nobody_is_a_conflict_waits_for_an_answer(tmp_path: Path) -> None:
    h = clash(tmp_path, {})
    report = h.run(split, params())
    assert ended(report) == ("needs_answer", "not_landed", 6)
    assert report.questions == ("b: conflict (1)",)
    before = h.ran
    h.answers = types(h, "both", RETRY)
    report = h.resume()
    assert report.result == "landed", report.message
    assert not set(before) & (set(h.ran) - {"implement@c#1"})
    assert h.files() == {"same.txt": "both", "c.txt": "c"}


def test_an_answer_given_beforehand_holds_once(tmp_path: Path) -> None:
    h = clash(tmp_path, {}, answers={"b: conflict (1)": RETRY})
    assert h.run(split, params()).questions == ("b: conflict (2)",)


def test_one_landing_is_asked_about_at_a_time(tmp_path: Path) -> None:
    most = 0

    def answer(screen: Screen[object]) -> str:
        nonlocal most
        counts = Counter(h.events)
        most = max(most, counts["asked"] - counts["answered"])
        return GIVE_UP

    def landed(tree: Path, command: str) -> bool:
        return not any((tree / f"{name}.txt").exists() for name in "ab")

    h = project(tmp_path, THREE, answers=answer, verdicts=landed)
    h.run(split, params())
    assert h.asked == [f"{name}: red build (1)" for name in ("a", "b")]
    assert most == 1


RED = Verdict(False, 1, "".join(f"line {n}\n\n" for n in range(9)))


def test_a_red_build_shows_its_last_lines_and_is_tried_again(tmp_path: Path) -> None:
    screens: list[Screen[object]] = []

    def answer(screen: Screen[object]) -> str:
        screens.append(screen)
        return RETRY

    h = project(tmp_path, {**THREE, "plan": plan(chunk("a"))}, answers=answer, verdicts=[RED, True])
    assert h.run(split, params()).result == "landed"
    assert h.asked == ["a: red build (1)"]
    assert screens[0].body[:-1] == (
        Text("the build failed with status 1"),
        *(Text(f"line {n}") for n in range(4, 9)),
    )


def test_stop_ends_the_run_at_the_first_conflict(tmp_path: Path) -> None:
    async def waits(task: AgentTask, emit: Emit) -> str:
        await asyncio.sleep(60)
        raise AssertionError

    plays: Plays = {"plan": plan(chunk("a"), chunk("b"), chunk("d")), "implement@d": waits}
    h = clash(tmp_path, plays)
    report = h.run(split, params(on_conflict="stop"))
    assert ended(report) == ("stopped", "not_landed", 7)
    assert report.message.splitlines() == [
        "not all has landed: 1 at work, 1 landed, 1 given up",
        f"  b: conflict: {BOTH}",
        "what was done is on the branch 'agl/_work/run/b': `agl diff run b` shows it,"
        " `git merge agl/_work/run/b` takes it; or run anew with `--on-conflict ask`",
    ]
    assert Scope(ProjectName("p"), Label("run"), (Namespace("b"),)).branch == "agl/_work/run/b"
    assert h.asked == []


def test_skip_gives_up_and_goes_on_with_the_others(tmp_path: Path) -> None:
    plays: Plays = {
        "plan": plan(chunk("a"), chunk("b"), chunk("d", "a")),
        "implement@d": writes(d="d"),
    }
    h = clash(tmp_path, plays)
    report = h.run(split, params(on_conflict="skip"))
    assert ended(report) == ("stopped", "not_landed", 7)
    assert report.unlanded == ("b",)
    assert h.files() == {"same.txt": "a", "d.txt": "d"}
    assert h.asked == []


def test_repair_lets_the_agent_do_it(tmp_path: Path) -> None:
    h = clash(tmp_path, {"repair": writes(same="both")})
    report = h.run(split, params(on_conflict="repair"))
    assert report.result == "landed", report.message
    assert h.files() == {"same.txt": "both", "c.txt": "c"}
    assert h.asked == []


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_repair_ends_after_so_many_rounds(tmp_path: Path, rounds: int) -> None:
    h = clash(tmp_path, {"repair": Play(report=DONE)})
    report = h.run(split, params(on_conflict="repair", rounds=rounds))
    assert ended(report) == ("stopped", "not_landed", 7)
    assert h.ran.count("repair@b#1") == rounds
    assert h.events.count("landing_conflicted") == 1
    after = ["", " after 1 round of repair", " after 2 rounds of repair"][rounds]
    assert f"  b: conflict{after}: {BOTH}\n" in report.message


def test_a_red_build_is_repaired_with_what_it_said(tmp_path: Path) -> None:
    prompts: list[str] = []

    async def repairs(task: AgentTask, emit: Emit) -> str:
        prompts.append(task.prompt)
        (task.tree / "a.txt").write_text(f"better {task.nth}")
        return await hand_in(task, DONE)

    def judge(tree: Path, command: str) -> Verdict:
        green = (tree / "a.txt").read_text() == "better 2"
        return Verdict(True, 0, "") if green else RED

    plays = {**THREE, "plan": plan(chunk("a")), "repair": repairs}
    h = project(tmp_path, plays, verdicts=judge)
    assert h.run(split, params(on_conflict="repair")).result == "landed"
    assert h.files() == {**FILES, "a.txt": "better 2"}
    assert "the build failed with status 1:" in prompts[0]
    assert "line 0" in prompts[0]


@pytest.mark.parametrize(
    "verdict", [Verdict(False, 127, "not found\n"), Verdict(False, 1, "", "!")]
)
def test_a_build_that_cannot_be_run_costs_no_repair(tmp_path: Path, verdict: Verdict) -> None:
    h = project(tmp_path, THREE, verdicts=lambda tree, command: verdict)
    report = h.run(split, params(on_conflict="repair"))
    assert report.exit_code == 7
    assert not any("repair" in one for one in h.ran)
    assert f"status {verdict.status}" in report.message


def test_verify_repairs_in_the_chunks_own_tree(tmp_path: Path) -> None:
    trees: list[str] = []

    def judge(tree: Path, command: str) -> bool:
        trees.append(tree.name)
        return (tree / "a.txt").read_text() == "better"

    plays = {**THREE, "plan": plan(chunk("a")), "repair": writes(a="better")}
    h = project(tmp_path, plays, verdicts=judge)
    assert h.run(split, params(verify=True)).result == "landed"
    assert trees == ["a", "a", "_base"]
    assert h.asked == []


def test_what_verify_cannot_repair_is_for_the_landing(tmp_path: Path) -> None:
    plays = {**THREE, "plan": plan(chunk("a")), "repair": Play(report=DONE)}
    h = project(tmp_path, plays, verdicts=lambda tree, command: False)
    report = h.run(split, params(verify=True, on_conflict="skip", rounds=2))
    assert [one for one in h.ran if "repair" in one] == ["repair@a#1", "repair@a#2"]
    assert "a: red build after 2 rounds of repair: " in report.message


def test_verify_without_a_build_is_refused_before_anybody_works(tmp_path: Path) -> None:
    h = project(tmp_path, THREE, build=None)
    report = h.run(split, params(verify=True))
    assert (report.exit_code, h.ran) == (2, [])
    assert "--verify" in report.message
    assert h.resume(again="build").exit_code == 2


NOTHING = Play(report={"summary": "I looked"})
NEEDLESS = Play(report={"summary": "it is there", "nothing_needed": True})


def test_a_chunk_with_nothing_to_land_lets_others_go_on(tmp_path: Path) -> None:
    h = project(tmp_path, {**THREE, "implement@a": NOTHING})
    report = h.run(split, params())
    assert ended(report) == ("finished", "landed", 0)
    assert h.shown[-1] == "Chunks: 2 landed, 1 nothing"
    assert h.files() == {**FILES, "b.txt": "b", "c.txt": "c"}


def test_no_change_at_all_is_not_success(tmp_path: Path) -> None:
    h = project(tmp_path, {"plan": THREE["plan"], "implement": NOTHING, "implement@b": NEEDLESS})
    report = h.run(split, params())
    assert ended(report) == ("stopped", "produced_nothing", 7)
    assert "a: I looked" in report.message


def test_needing_nothing_is_an_outcome_of_its_own(tmp_path: Path) -> None:
    h = project(tmp_path, {"plan": THREE["plan"], "implement": NEEDLESS})
    report = h.run(split, params())
    assert ended(report) == ("finished", "needed_nothing", 0)
    assert "b: it is there" in report.message


def test_the_implementer_may_ask_the_person(tmp_path: Path) -> None:
    asks = Play(calls=[("ask_person", {"question": "Which?"})], files={"a.txt": "a"}, report=DONE)
    h = project(tmp_path, {**THREE, "implement@a": asks}, answers=["this"])
    assert h.run(split, params()).result == "landed"
    assert h.asked == ["Which?"]


@pytest.mark.parametrize("wrong", [{"request": "  \n"}, {"rounds": -1}, {"chunks": 0}])
def test_a_wrong_parameter_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"--[rc]"):
        params(**wrong)


def test_a_resume_of_what_was_given_up_runs_nothing(tmp_path: Path) -> None:
    for policy in ("ask", "skip", "stop"):
        h = clash(tmp_path / policy, {}, answers=[GIVE_UP])
        first = h.run(split, params(on_conflict=policy))
        again = h.resume()
        assert (again.message, again.head) == (first.message, first.head)
        assert [one for one in h.ran if "@c" not in one] == []


def again_of(message: str) -> str:
    return message.split("--again '")[1].split("'")[0]


def test_what_was_given_up_is_tried_again_as_the_message_says(tmp_path: Path) -> None:
    h = clash(tmp_path, {}, answers=[GIVE_UP])
    said = h.run(split, params()).message
    h.answers = types(h, "both", RETRY, RETRY)
    report = h.resume(again=again_of(said))
    assert report.result == "landed", report.message
    assert h.files() == {"same.txt": "both", "c.txt": "c"}
    assert h.ran == ["implement@c#1"]


@pytest.mark.parametrize(
    "more",
    [{"on_conflict": "skip"}, {"on_conflict": "stop"}, {"on_conflict": "repair", "rounds": 0}],
)
def test_a_conflict_that_no_resume_can_settle_is_for_a_persons_hands(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    h = clash(tmp_path, {})
    said = h.run(split, params(**more)).message
    assert "--again" not in said
    assert "`git merge agl/_work/run/b` takes it" in said


def test_a_red_build_and_an_agents_repair_can_be_tried_again(tmp_path: Path) -> None:
    green = False
    plays = {**THREE, "plan": plan(chunk("a"))}
    h = project(tmp_path / "red", plays, verdicts=lambda tree, command: green)
    said = h.run(split, params(on_conflict="skip")).message
    green = True
    assert h.resume(again=again_of(said)).result == "landed"

    h = clash(tmp_path / "left", {"repair": Play(report=DONE)})
    said = h.run(split, params(on_conflict="repair", rounds=1)).message
    assert isinstance(h.agent, dict)
    h.agent["repair"] = writes(same="both")
    assert h.resume(again=again_of(said)).result == "landed"


def test_a_chunk_is_shown_as_far_as_it_is(tmp_path: Path) -> None:
    seen: list[Sequence[str]] = []
    ends = Ends([Chunk("a", "A", "."), Chunk("b", "B", ".", ("a",))])

    def states() -> list[str]:
        (table,) = ends.screen().body
        assert isinstance(table, Rows)
        return [row.cells[1].text for row in table.rows]

    for state in (State.LANDING, State.LANDED):
        seen.append(states())
        ends.move("a", state)
    assert [*seen, states()] == [
        ["at work", "waiting for a need"],
        ["waits to land", "waiting for a need"],
        ["landed", "waiting for a need"],
    ]


def test_a_chunk_moves_from_its_work_to_its_landing(tmp_path: Path) -> None:
    moved: list[object] = []

    @workflow(version="1")
    async def one(run: Run[Params]) -> None:
        """One chunk."""
        await ChunkAtWork(run, Chunk("a", "A", "."), [], moved.append).end(None)

    async def works(task: AgentTask, emit: Emit) -> str:
        moved.append(task.step)
        (task.tree / "a.txt").write_text("a")
        return await hand_in(task, DONE)

    project(tmp_path, {"implement": works}).run(one, params())
    assert moved == [State.AT_WORK, "implement", State.LANDING]


def test_a_retry_with_the_markers_still_there_says_so(tmp_path: Path) -> None:
    bodies: list[str] = []

    def answer(screen: Screen[object]) -> str:
        bodies.append(str(screen.body))
        return RETRY if len(bodies) < 3 else GIVE_UP

    clash(tmp_path, {}, answers=answer).run(split, params())
    assert ["still are conflict markers" in one for one in bodies] == [False, True, True]


def test_a_red_build_is_given_up_with_its_last_line(tmp_path: Path) -> None:
    plays = {**THREE, "plan": plan(chunk("a"))}
    h = project(tmp_path / "some", plays, verdicts=[RED])
    said = h.run(split, params(on_conflict="skip")).message
    assert said.splitlines()[1] == "  a: red build: the build failed with status 1: line 8"
    h = project(tmp_path / "none", plays, verdicts=[Verdict(False, 1, " \n")])
    said = h.run(split, params(on_conflict="skip")).message
    assert said.splitlines()[1] == "  a: red build: the build failed with status 1"


def test_an_agent_is_told_no_output_where_there_is_none() -> None:
    (problem,) = red_build(Verdict(False, 1, "\n")).problems
    assert problem == "the build failed with status 1"


@pytest.mark.parametrize(
    "verdict", [Verdict(False, 127, "sh: mak: not found"), Verdict(False, 124, "", "out of time")]
)
def test_a_build_that_cannot_be_run_is_for_the_person_to_change(
    tmp_path: Path, verdict: Verdict
) -> None:
    bodies: list[str] = []

    def answer(screen: Screen[object]) -> str:
        bodies.append(str(screen.body))
        return GIVE_UP

    plays = {**THREE, "plan": plan(chunk("a"))}
    h = project(tmp_path, plays, verdicts=[verdict], answers=answer)
    said = h.run(split, params()).message
    assert "`agl init --build CMD` changes it, from the next `agl resume run` on" in bodies[0]
    assert "; `agl init --build CMD` changes the build\n" in said


def recorded_steps(h: Harness) -> set[str]:
    """The steps in the ledger, each as the harness calls it."""
    found: set[str] = set()
    for path in ((), ("a",), ("b",), ("c",)):
        nth: Counter[str] = Counter()
        for entry in h.recorded(*path):
            if entry.kind is Kind.STEP:
                nth[entry.name] += 1
                at = f"@{path[0]}" if path else ""
                found.add(f"{entry.name}{at}#{nth[entry.name]}")
    return found


FLOWS: dict[str, tuple[Callable[[Path], Harness], dict[str, Any], dict[str, str]]] = {
    "three": (
        lambda folder: project(folder, THREE),
        {"verify": True},
        {**FILES, "a.txt": "a", "b.txt": "b", "c.txt": "c"},
    ),
    "repaired": (
        lambda folder: clash(folder, {"repair": writes(same="both")}),
        {"on_conflict": "repair"},
        {"same.txt": "both", "c.txt": "c"},
    ),
    "typed": (lambda folder: typed(folder), {}, {"same.txt": "both", "c.txt": "c"}),
    "skipped": (lambda folder: clash(folder, {}), {"on_conflict": "skip"}, {"same.txt": "a"}),
    "given up": (
        lambda folder: clash(folder, {}, answers=lambda screen: GIVE_UP),
        {},
        {"same.txt": "a"},
    ),
}


def typed(folder: Path) -> Harness:
    h = clash(folder, {})

    def answer(screen: Screen[object]) -> str:
        (h.tree() / "same.txt").write_text("both")
        return RETRY

    h.answers = answer
    return h


def check_end(h: Harness, report: Report, flow: str) -> None:
    assert h.files() == FLOWS[flow][2]
    if flow in ("skipped", "given up"):
        assert ended(report) == ("stopped", "not_landed", 7)
        assert report.message.startswith("not all has landed: 1 landed, 2 given up\n")
    else:
        assert ended(report) == ("finished", "landed", 0), report.message
    landed = [
        entry.name
        for entry in h.recorded()
        if entry.kind is Kind.LANDING and entry.head_after != entry.head_before
    ]
    assert len(landed) == len(set(landed))


@pytest.mark.parametrize("flow", FLOWS)
def test_interrupted_anywhere_it_repeats_nothing(tmp_path: Path, flow: str) -> None:
    make, more, _ = FLOWS[flow]
    for entries in range(1, 60):
        h = make(tmp_path / str(entries))
        try:
            report = h.run(split, params(**more), interrupt_after=entries)
        except Interrupted:
            recorded = recorded_steps(h)
            report = h.resume()
            assert not recorded & set(h.ran), entries
            check_end(h, report, flow)
        else:
            check_end(h, report, flow)
            assert entries > 10
            return
    raise AssertionError("it never ends")


@pytest.mark.parametrize("every", [1, 2, 3])
@pytest.mark.parametrize("flow", FLOWS)
def test_interrupted_again_and_again_it_comes_to_its_end(
    tmp_path: Path, flow: str, every: int
) -> None:
    make, more, _ = FLOWS[flow]
    h = make(tmp_path)
    recorded: set[str] = set()
    for life in range(100):
        try:
            if life == 0:
                report = h.run(split, params(**more), interrupt_after=every)
            else:
                report = h.resume(interrupt_after=every)
        except Interrupted:
            assert not recorded & set(h.ran)
            recorded = recorded_steps(h)
        else:
            assert not recorded & set(h.ran)
            check_end(h, report, flow)
            return
    raise AssertionError("it never ends")
