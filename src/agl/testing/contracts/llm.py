"""What every `LLM` promises, told as scripts in the turns of `scripted:PATH`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from agl.ports.errors import (
    AglError,
    AuthenticationFailed,
    ContextTooLong,
    Overloaded,
    RateLimited,
    StreamDropped,
    Transient,
)
from agl.ports.llm import (
    LLM,
    InvalidArguments,
    LLMRequest,
    LLMResponse,
    Message,
    TextBlock,
    ToolSpec,
    ToolUse,
)
from agl.ports.models import ModelId, Usage
from agl.testing.contracts.agent_runner import ScriptTurn, call

LLMOf = Callable[[Sequence[ScriptTurn]], tuple[LLM, ModelId]]

JUNK = ('{"a":', "null", "[1]", '"text"', "NaN", '{"a": NaN}', '{"a": 1, "a": 2}', "[" * 100_000)

_TOOL = ToolSpec("look", "Looks.", {"type": "object", "properties": {}})


class LLMContract:
    """Subclass, and give `llm_of`: a model that answers with these turns, one for each answer."""

    @pytest.fixture
    def llm_of(self) -> LLMOf:
        raise NotImplementedError

    async def test_a_ready_model_is_not_refused(self, llm_of: LLMOf) -> None:
        llm, model = llm_of([{"text": "x"}])
        await llm.check_ready(model)
        assert all(file.is_file() for file in llm.files(model))

    async def test_its_text_comes_in_pieces_and_whole(self, llm_of: LLMOf) -> None:
        pieces: list[str] = []
        response = await _asked(llm_of, {"text": "all is wéll ⚙\n"}, pieces.append)
        assert "".join(pieces) == "all is wéll ⚙\n"
        assert response.blocks == (TextBlock("all is wéll ⚙\n"),)
        assert response.model

    async def test_its_calls_come_in_order_with_their_arguments(self, llm_of: LLMOf) -> None:
        turn = {"calls": [_call("c1", {"a": {"b": [1, None]}}), _call("c2", {})]}
        response = await _asked(llm_of, turn)
        assert response.blocks == (
            ToolUse("c1", "look", {"a": {"b": [1, None]}}),
            ToolUse("c2", "look", {}),
        )

    async def test_text_and_calls_stand_in_one_answer(self, llm_of: LLMOf) -> None:
        response = await _asked(llm_of, {"text": "I look.", **call("look")})
        assert [type(block) for block in response.blocks] == [TextBlock, ToolUse]

    async def test_arguments_that_are_no_object_are_told_as_such(self, llm_of: LLMOf) -> None:
        calls = [
            {"tool": "look", "raw_arguments": raw, "id": f"c{number}"}
            for number, raw in enumerate((*JUNK, "x" * 1_000_000))
        ]
        response = await _asked(llm_of, {"calls": calls})
        made = [block for block in response.blocks if isinstance(block, ToolUse)]
        assert [one.id for one in made] == [str(one["id"]) for one in calls]
        for one, raw in zip(made, (*JUNK, "x"), strict=True):
            assert isinstance(one.arguments, InvalidArguments)
            assert one.arguments.raw.startswith(raw[:100])
            assert one.arguments.problem
            assert len(one.arguments.raw) < 10_000

    async def test_usage_is_told_and_an_unknown_price_is_not_0(self, llm_of: LLMOf) -> None:
        usage = {"input_tokens": 10, "output_tokens": 2, "cached_tokens": 1}
        assert (await _asked(llm_of, {"text": "x", "usage": usage})).usage == Usage(10, 2, 1, None)

    async def test_the_second_answer_follows_on_the_first(self, llm_of: LLMOf) -> None:
        llm, model = llm_of([{"text": "one"}, {"text": "two"}])
        messages: tuple[Message, ...] = (Message("user", (TextBlock("go"),)),)
        for expected in ("one", "two"):
            response = await llm.generate(LLMRequest(model, "", messages), lambda text: None)
            assert response.blocks == (TextBlock(expected),)
            told = Message("user", (TextBlock("on"),))
            messages = (*messages, Message("assistant", response.blocks), told)

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
        self, llm_of: LLMOf, kind: str, error: type[AglError]
    ) -> None:
        failure = {"kind": kind, "retry_after_s": 3}
        with pytest.raises(error) as raised:
            await _asked(llm_of, {"error": failure, **call("look")})
        if isinstance(raised.value, Transient):
            assert raised.value.retry_after_s in ((3, None) if kind == "dropped" else (3,))


def _call(use_id: str, arguments: Mapping[str, object]) -> Mapping[str, object]:
    return {"tool": "look", "arguments": arguments, "id": use_id}


async def _asked(
    llm_of: LLMOf, turn: ScriptTurn, on_delta: Callable[[str], None] = lambda text: None
) -> LLMResponse:
    llm, model = llm_of([turn])
    messages = (Message("user", (TextBlock("go"),)),)
    return await llm.generate(LLMRequest(model, "Work.", messages, (_TOOL,)), on_delta)
