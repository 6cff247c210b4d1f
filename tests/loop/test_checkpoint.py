import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agl.loop import Approved, Checkpoint, Limits, Refused, RunStarted
from agl.loop.records import (
    Answered,
    Begun,
    Record,
    Returned,
    Told,
    record_from_json,
    record_to_json,
)
from agl.loop.trajectory import Trajectory
from agl.ports.agents import ToolAnswer
from agl.ports.errors import (
    CorruptDocument,
    InputError,
    LimitReached,
    NewerFormat,
    StateError,
    StreamDropped,
    UpstreamError,
)
from agl.ports.llm import (
    Ending,
    InvalidArguments,
    LLMResponse,
    TextBlock,
    ThinkingBlock,
    ToolUse,
    read_arguments,
)
from agl.ports.models import Usage
from loop.world import Bench, agent_of, answer, events_of, results, use


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


class Killed(BaseException):
    """The process died."""


class DyingCheckpoint(Checkpoint):
    """Dies at the n-th record, before it is written or after."""

    def __init__(self, path: Path, at: int, *, written: bool) -> None:
        super().__init__(path)
        self.left, self.written = at, written

    @contextmanager
    def opened(self) -> Iterator[Trajectory]:
        with super().opened() as state:
            keep = state.keep

            def dying(record: Record) -> None:
                self.left -= 1
                if self.left < 0 or (self.left == 0 and not self.written):
                    raise Killed
                keep(record)
                if self.left == 0:
                    raise Killed

            state.keep = dying
            yield state


def kinds(path: Path) -> list[str]:
    return [next(iter(json.loads(line))) for line in path.read_bytes().splitlines()]


async def test_a_record_is_appended_for_each_thing_that_happens(path: Path) -> None:
    agent, _ = agent_of(
        [answer("", use(1), use(2)), answer("x")], Bench().tool, checkpoint=Checkpoint(path)
    )
    await agent.run("go")
    assert kinds(path) == [
        *("format", "told", "answered", "begun", "returned", "returned", "answered")
    ]


async def test_a_finished_run_is_told_again_and_nothing_is_repeated(path: Path) -> None:
    turns = [answer("", use(1), usage=Usage(1, 2)), answer("x", usage=Usage(1, 2))]
    agent, _ = agent_of(turns, Bench().tool, checkpoint=Checkpoint(path))
    first = await agent.run("go")
    written = path.read_bytes()
    bench = Bench()
    again, llm = agent_of([], bench.tool, checkpoint=Checkpoint(path))
    second = await again.run("go")
    assert (llm.requests, bench.calls, path.read_bytes()) == ([], [], written)
    assert (second.text, second.usage, second.turns) == ("x", Usage(2, 4), 2)
    assert tuple(second.messages) == tuple(first.messages)


async def test_killed_between_the_answer_and_its_tools_the_calls_run_once(path: Path) -> None:
    bench = Bench()
    turns = [answer("", use(1), use(2)), answer("x")]
    dying = DyingCheckpoint(path, 2, written=True)
    agent, _ = agent_of(turns, bench.tool, checkpoint=dying)
    with pytest.raises(Killed):
        await agent.run("go")
    assert (kinds(path), bench.calls) == (["format", "told", "answered"], [])
    agent, llm = agent_of(turns, bench.tool, checkpoint=Checkpoint(path))
    await agent.run("go")
    assert (len(bench.calls), len(llm.requests)) == (2, 1)


async def test_a_call_that_was_begun_is_not_run_again_and_the_model_is_told(path: Path) -> None:
    turns = [answer("", use(1), use(2)), answer("x")]
    agent, _ = agent_of(turns, Bench().tool, checkpoint=DyingCheckpoint(path, 4, written=True))
    with pytest.raises(Killed):
        await agent.run("go")
    assert kinds(path)[-2:] == ["begun", "returned"]
    bench = Bench()
    agent, _ = agent_of(turns, bench.tool, checkpoint=Checkpoint(path))
    outcome = await agent.run("go")
    assert bench.calls == []
    first, second = results(outcome)
    assert (first.use_id, first.text) == ("c1", "done")
    assert second.use_id == "c2"
    assert second.is_error
    assert "it may or may not have happened" in second.text


@st.composite
def conversations(draw: st.DrawFn) -> list[LLMResponse]:
    """Some turns of calls, good, bad and unknown; then the end."""
    turns = []
    for turn in range(draw(st.integers(0, 3))):
        calls = []
        for number in range(draw(st.integers(1, 3))):
            name = draw(st.sampled_from(["work", "work", "nothing"]))
            raw = draw(st.sampled_from(["{", "[1]", json.dumps({"n": [turn, number]})]))
            calls.append(ToolUse(draw(st.sampled_from("ab")), name, read_arguments(raw)))
        turns.append(answer(f"turn {turn}", *calls, usage=Usage(1, 1)))
    return [*turns, answer("end", usage=Usage(1, 1))]


@settings(max_examples=25, deadline=None)
@given(turns=conversations(), written=st.booleans())
async def test_killed_at_every_record_and_resumed_it_is_one_run(
    tmp_path_factory: pytest.TempPathFactory, turns: list[LLMResponse], written: bool
) -> None:
    folder = tmp_path_factory.mktemp("kills")
    whole = Bench()
    agent, _ = agent_of(turns, whole.tool, checkpoint=Checkpoint(folder / "whole"))
    expected = await agent.run("go")
    records = len(kinds(folder / "whole")) - 1
    for at in range(1, records + 1):
        path = folder / f"{at}"
        bench = Bench()
        agent, before = agent_of(
            turns, bench.tool, checkpoint=DyingCheckpoint(path, at, written=written)
        )
        with pytest.raises(Killed):
            await agent.run("go")
        agent, after = agent_of(turns, bench.tool, checkpoint=Checkpoint(path))
        outcome = await agent.run("go")
        told = [result for message in outcome.messages for result in message.blocks]
        unknown = [b for b in told if "may or may not" in getattr(b, "text", "")]
        ran = [str(arguments) for arguments in bench.calls]
        # Nothing runs twice; what was begun and not answered is the only thing that may be missing.
        assert len(ran) == len(set(ran))
        assert set(ran) <= {str(arguments) for arguments in whole.calls}
        assert len(whole.calls) - len(ran) <= len(unknown)
        assert (outcome.text, outcome.usage) == (expected.text, expected.usage)
        if not unknown:
            assert tuple(outcome.messages) == tuple(expected.messages)
        paid = len(before.requests) + len(after.requests)
        assert paid <= len(turns) + (not written)


_DIES = """
import asyncio, os, signal, sys
from agl.adapters.memory.llm import MemoryLLM, answer
from agl.loop import Agent, Checkpoint, tool
from agl.ports.llm import ToolUse

@tool
def note(n: int) -> str:
    "Notes."
    with open(sys.argv[2], "a") as file:
        file.write(f"{n}\\n")
    if n == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    return "noted"

turns = [answer("", ToolUse(str(n), "note", {"n": n})) for n in range(4)]
agent = Agent(
    MemoryLLM([*turns, answer("end")]), model="memory:x", tools=[note],
    checkpoint=Checkpoint(sys.argv[1], survives_power_cut=True),
)
print(asyncio.run(agent.run("go")).text)
"""


def test_a_process_that_dies_in_a_tool_does_not_run_it_twice(path: Path, tmp_path: Path) -> None:
    noted = tmp_path / "noted"

    def played(dies_in: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", _DIES, str(path), str(noted), str(dies_in)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    assert played(2).returncode == -signal.SIGKILL
    done = played(-1)
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr
    assert noted.read_text() == "0\n1\n2\n3\n"


async def test_a_run_that_failed_goes_on_where_it_was(path: Path) -> None:
    bench = Bench()
    turns: list[LLMResponse | Exception] = [answer("", use(1)), StreamDropped("cut")]
    agent, _ = agent_of(turns, bench.tool, checkpoint=Checkpoint(path))
    with pytest.raises(StreamDropped):
        await agent.run("go")
    agent, llm = agent_of([answer("never"), answer("x")], bench.tool, checkpoint=Checkpoint(path))
    events = await events_of(agent)
    assert events[0] == RunStarted("go", turns=1)
    assert (len(bench.calls), len(llm.requests)) == (1, 1)


async def test_limits_count_what_the_checkpoint_holds(path: Path) -> None:
    turns = [answer("", use(1))] * 3 + [answer("x")]
    for limit, tools in ((2, 2), (3, 1)):
        bench = Bench()
        agent, _ = agent_of(
            turns, bench.tool, checkpoint=Checkpoint(path), limits=Limits(turns=limit)
        )
        with pytest.raises(LimitReached):
            await agent.run("go")
        assert len(bench.calls) == tools
    agent, _ = agent_of(turns, checkpoint=Checkpoint(path))
    assert (await agent.run("go")).text == "x"


async def test_a_refused_call_is_not_asked_about_again(path: Path) -> None:
    asked: list[str] = []

    async def gate(call: ToolUse) -> Approved | Refused:
        asked.append(call.id)
        if asked == ["c1", "c2"]:
            raise KeyError("nobody there")
        return Refused("no") if call.id == "c1" else Approved()

    bench = Bench()
    turns = [answer("", use(1), use(2)), answer("x")]
    agent, _ = agent_of(turns, bench.tool, checkpoint=Checkpoint(path), gate=gate)
    with pytest.raises(KeyError):
        await agent.run("go")
    outcome = await agent.run("go")
    assert asked == ["c1", "c2", "c2"]
    assert [result.text for result in results(outcome)] == ["Refused: no", "done"]


async def test_a_torn_last_line_is_cut_off(path: Path) -> None:
    turns = [answer("", use(1)), answer("x")]
    agent, _ = agent_of(turns, Bench().tool, checkpoint=Checkpoint(path))
    await agent.run("go")
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        agent, _ = agent_of(turns, Bench().tool, checkpoint=Checkpoint(path))
        assert (await agent.run("go")).text == "x"
        assert all(json.loads(line) for line in path.read_bytes().splitlines())


async def test_another_prompt_is_refused(path: Path) -> None:
    agent, _ = agent_of([answer("x")], checkpoint=Checkpoint(path))
    await agent.run("go")
    with pytest.raises(InputError, match="holds a run on another prompt; name another file"):
        await agent.run("stop")


def lines(*records: Record) -> bytes:
    documents = [{"format": 1}, *map(record_to_json, records)]
    return b"".join(json.dumps(one, default=dict).encode() + b"\n" for one in documents)


TWO_CALLS = Answered(answer("", use(1), use(2)))
RESULT = Returned(0, ToolAnswer("done"))
TWO_ANSWERS = lines(Told("go"), Answered(answer("x")), Answered(answer("x")))
TWO_RESULTS = lines(Told("go"), TWO_CALLS, RESULT, RESULT)


@pytest.mark.parametrize(
    ("content", "error", "told"),
    [
        (b"hello\n", CorruptDocument, "is no checkpoint"),
        (b'{"format":0}\n', CorruptDocument, "is no checkpoint"),
        (b'{"format":2}\n{"new":1}\n', NewerFormat, "upgrade AGL"),
        (b'{"format":1}\n{"told":1}\n', CorruptDocument, "line 2: no record"),
        (b'{"format":1}\n\n{"told":"go"}\n', CorruptDocument, "line 2: "),
        (b'{"format":1}\n{"told":"go"}\n{"begun":[true]}\n', CorruptDocument, "line 3: no place"),
        (TWO_ANSWERS, CorruptDocument, "line 4: does not follow"),
        (TWO_RESULTS, CorruptDocument, "line 5: does not follow"),
        (
            b'{"format":1}\n{"told":"go"}\n{"begun":[0]}\n',
            CorruptDocument,
            "line 3: does not follow",
        ),
        (b'{"format":1}\n{"told":"go"}\n{"told":"go"}\n', CorruptDocument, "line 3: does not"),
    ],
)
async def test_a_file_that_is_no_checkpoint_is_left_as_it_is(
    path: Path, content: bytes, error: type[Exception], told: str
) -> None:
    path.write_bytes(content)
    agent, _ = agent_of([answer("x")], checkpoint=Checkpoint(path))
    with pytest.raises(error, match=told):
        await agent.run("go")
    assert path.read_bytes() == content


async def test_a_run_in_use_is_refused(path: Path) -> None:
    async def act(arguments: object) -> str:
        other, _ = agent_of([], checkpoint=Checkpoint(path))
        open_files = len(list(Path("/dev/fd").iterdir()))
        with pytest.raises(StateError, match="in use by another run"):
            await other.run("go")
        assert len(list(Path("/dev/fd").iterdir())) == open_files
        return "refused"

    agent, _ = agent_of(
        [answer("", use(1)), answer("x")], Bench(act).tool, checkpoint=Checkpoint(path)
    )
    assert results(await agent.run("go"))[0].text == "refused"


async def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    agent, _ = agent_of([answer("x")], checkpoint=Checkpoint(tmp_path / "no/run.jsonl"))
    with pytest.raises(UpstreamError, match="No such file or directory; name another file"):
        await agent.run("go")


async def test_a_full_disk_fails_the_run_and_leaves_whole_lines(path: Path) -> None:
    """A limit on the size of files stands in for the disk: writes then come back short, or not."""
    script = _DIES.replace(
        "print(",
        "import resource; resource.setrlimit("
        "resource.RLIMIT_FSIZE, (500, 500)); signal.signal(signal.SIGXFSZ, signal.SIG_IGN); print(",
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path), os.devnull, "-1"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "UpstreamError: checkpoint" in done.stderr
    assert "ExceptionGroup" not in done.stderr
    assert path.read_bytes().endswith(b"}\n")


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
blocks = st.one_of(
    st.builds(TextBlock, st.text()),
    st.builds(ThinkingBlock, st.text(), st.text()),
    st.builds(ToolUse, st.text(), st.text(), st.dictionaries(st.text(), json_values, max_size=3)),
    st.builds(ToolUse, st.text(), st.text(), st.builds(InvalidArguments, st.text(), st.text())),
)
usages = st.builds(
    Usage, *[st.integers(0)] * 3, st.none() | st.floats(0, allow_nan=False, allow_infinity=False)
)
responses = st.builds(
    LLMResponse, st.lists(blocks).map(tuple), usages, st.sampled_from(Ending), st.text()
)
records = st.one_of(
    st.builds(Told, st.text()),
    st.builds(Answered, responses),
    st.builds(Begun, st.lists(st.integers(0)).map(tuple)),
    st.builds(
        Returned, st.integers(0), st.builds(ToolAnswer, st.text(), st.booleans(), st.booleans())
    ),
)


@given(record=records)
def test_a_record_comes_back_as_it_was(record: Record) -> None:
    document = json.loads(json.dumps(record_to_json(record), default=dict))
    assert record_from_json(document) == record


async def test_a_file_is_free_again_after_a_failure(path: Path) -> None:
    for _ in range(2):
        agent, _ = agent_of([StreamDropped("cut")], checkpoint=Checkpoint(path))
        with pytest.raises(StreamDropped):
            await agent.run("go")
