import json
from dataclasses import replace
from pathlib import Path

import pytest

from agl.adapters.memory.clock import ManualClock
from agl.adapters.memory.llm import MemoryLLM, answer
from agl.adapters.scripted import ScriptedLLM
from agl.ports.errors import AglError, Overloaded, RateLimited
from agl.ports.llm import (
    LLM,
    Ending,
    LLMRequest,
    LLMResponse,
    Message,
    Purpose,
    TextBlock,
    ToolSpec,
    ToolUse,
)
from agl.ports.models import ModelId, Usage
from agl.testing.contracts.agent_runner import ScriptTurn
from agl.testing.contracts.llm import LLMContract, LLMOf

USER = Message("user", (TextBlock("x"),))


def scripted(folder: Path, **steps: list[ScriptTurn]) -> ModelId:
    path = folder / "script.json"
    path.write_text(json.dumps({"format": 1, "steps": steps}))
    return ModelId.parse(f"scripted:{path}")


class TestScriptedLLM(LLMContract):
    @pytest.fixture
    def llm_of(self, tmp_path: Path) -> LLMOf:
        return lambda turns: (ScriptedLLM(ManualClock()), scripted(tmp_path, agent=list(turns)))


class TestMemoryLLM(LLMContract):
    """Its answers are those that the scripted model gives."""

    @pytest.fixture
    def llm_of(self, tmp_path: Path) -> LLMOf:
        def made(turns: object) -> tuple[LLM, ModelId]:
            assert isinstance(turns, list)
            model = scripted(tmp_path, agent=turns)
            return MemoryLLM([_answer(model, turn) for turn in range(len(turns))]), model

        return made


def _answer(model: ModelId, turn: int) -> LLMResponse | Exception:
    request = LLMRequest(model, "", (USER,) * (2 * turn + 1))
    asked = ScriptedLLM(ManualClock()).generate(request, lambda text: None)
    try:
        asked.send(None)
    except StopIteration as done:
        given: LLMResponse = done.value
        return given
    except AglError as error:
        return error
    raise AssertionError("the script waits")


async def at(llm: LLM, model: ModelId, turn: int, attempt: int = 1) -> LLMResponse:
    request = LLMRequest(model, "", (USER,) * (2 * turn + 1), purpose=Purpose(attempt=attempt))
    return await llm.generate(request, lambda text: None)


@pytest.fixture
def llm() -> ScriptedLLM:
    return ScriptedLLM(ManualClock())


async def test_a_silent_turn_is_met_with_the_next(llm: ScriptedLLM, tmp_path: Path) -> None:
    turns: list[ScriptTurn] = [
        {"usage": {"input_tokens": 1}},
        {"text": "one", "usage": {"input_tokens": 2}},
        {"usage": {"input_tokens": 4}},
    ]
    model = scripted(tmp_path, agent=turns)
    first, last, after = [await at(llm, model, turn) for turn in range(3)]
    assert (first.blocks, first.usage) == ((TextBlock("one"),), Usage(3))
    assert (last.blocks, last.usage) == ((), Usage(4))
    assert (after.blocks, after.usage) == ((), Usage())
    assert [one.ending for one in (first, last, after)] == [
        Ending.PAUSED,
        Ending.DONE,
        Ending.DONE,
    ]


async def test_each_attempt_passes_by_one_more_error(llm: ScriptedLLM, tmp_path: Path) -> None:
    overloaded: ScriptTurn = {"error": {"kind": "overloaded"}}
    limited: ScriptTurn = {"error": {"kind": "rate_limited"}, "text": "b"}
    model = scripted(tmp_path, agent=[overloaded, {"text": "a"}, limited])
    with pytest.raises(Overloaded):
        await at(llm, model, 0, attempt=1)
    assert (await at(llm, model, 0, attempt=2)).blocks == (TextBlock("a"),)
    with pytest.raises(RateLimited):
        await at(llm, model, 1, attempt=2)
    assert (await at(llm, model, 1, attempt=3)).blocks == (TextBlock("b"),)


async def test_an_edited_script_is_read_again(llm: ScriptedLLM, tmp_path: Path) -> None:
    assert (await at(llm, scripted(tmp_path, agent=[{"text": "a"}]), 0)).blocks[0] == TextBlock("a")
    model = scripted(tmp_path, agent=[{"text": "longer"}])
    assert (await at(llm, model, 0)).blocks[0] == TextBlock("longer")


async def test_without_a_key_only_reporting_tools_are_called(
    llm: ScriptedLLM, tmp_path: Path
) -> None:
    report = ToolSpec("hand_in", "", {"type": "object", "required": []}, reports=True)
    request = LLMRequest(
        scripted(tmp_path), "", (USER,), (replace(report, name="x", reports=False), report)
    )
    response = await llm.generate(request, lambda text: None)
    assert response.blocks == (
        TextBlock("the script has no part for 'agent'"),
        ToolUse("call_0_0", "hand_in", {}),
    )


async def test_a_memory_model_remembers_what_it_was_asked() -> None:
    llm = MemoryLLM(lambda request: answer(request.system))
    request = LLMRequest(ModelId("memory", "x"), "be brief", (USER,))
    assert (await llm.generate(request, lambda text: None)).blocks == (TextBlock("be brief"),)
    assert llm.requests == [request]
