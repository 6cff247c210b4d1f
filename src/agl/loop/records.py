"""What a run consists of: each thing that moves it on, as a record, as JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from agl.ports.agents import ToolAnswer
from agl.ports.llm import (
    Block,
    Ending,
    InvalidArguments,
    LLMResponse,
    TextBlock,
    ThinkingBlock,
    ToolResult,
    ToolUse,
)
from agl.ports.models import Usage


@dataclass(frozen=True, slots=True)
class Told:
    """The model was told something: the prompt, or to go on."""

    text: str


@dataclass(frozen=True, slots=True)
class Answered:
    """The model answered."""

    response: LLMResponse


@dataclass(frozen=True, slots=True)
class Begun:
    """These calls of the last answer, by their places in it, are about to be run."""

    calls: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Returned:
    """The call at this place in the last answer has its answer."""

    call: int
    answer: ToolAnswer


Record = Told | Answered | Begun | Returned


def record_to_json(record: Record) -> dict[str, object]:
    match record:
        case Told(text):
            return {"told": text}
        case Answered(response):
            usage = response.usage
            return {
                "answered": [_block_to_json(block) for block in response.blocks],
                "usage": [usage.input_tokens, usage.output_tokens, usage.cached_tokens],
                "cost_usd": usage.cost_usd,
                "ending": response.ending.value,
                "model": response.model,
            }
        case Begun(calls):
            return {"begun": calls}
        case Returned(call, answer):
            return {
                "returned": call,
                "text": answer.text,
                "is_error": answer.is_error,
                "arguments_fit": answer.arguments_fit,
            }
        case _:
            assert_never(record)


def record_from_json(document: object) -> Record:
    """The record that a JSON value stands for.

    Raises:
        ValueError: it stands for none.
    """
    match document:
        case {"told": str(text)}:
            return Told(text)
        case {
            "answered": list(blocks),
            "usage": [int(given), int(made), int(cached)],
            "cost_usd": None | int() | float() as cost,
            "ending": str(ending),
            "model": str(model),
        }:
            usage = Usage(given, made, cached, cost)
            read = tuple(_block_from_json(block) for block in blocks)
            return Answered(LLMResponse(read, usage, Ending(ending), model))
        case {"begun": list(calls)}:
            return Begun(tuple(_place(call) for call in calls))
        case {
            "returned": call,
            "text": str(text),
            "is_error": bool(is_error),
            "arguments_fit": bool(fit),
        }:
            return Returned(_place(call), ToolAnswer(text, is_error, fit))
    raise ValueError("no record of a run")


def _place(value: object) -> int:
    if type(value) is int and value >= 0:
        return value
    raise ValueError("no place of a call")


def _block_to_json(block: Block) -> dict[str, object]:
    match block:
        case TextBlock(text):
            return {"text": text}
        case ThinkingBlock(text, signature):
            return {"thinking": text, "signature": signature}
        case ToolUse(use_id, name, InvalidArguments(raw, problem)):
            return {"call": name, "id": use_id, "raw": raw, "problem": problem}
        case ToolUse(use_id, name, arguments):
            return {"call": name, "id": use_id, "arguments": arguments}
        case ToolResult(use_id, text, is_error):
            return {"result": text, "id": use_id, "is_error": is_error}
        case _:
            assert_never(block)


def _block_from_json(document: object) -> Block:
    match document:
        case {"text": str(text)}:
            return TextBlock(text)
        case {"thinking": str(text), "signature": str(signature)}:
            return ThinkingBlock(text, signature)
        case {"call": str(name), "id": str(use_id), "raw": str(raw), "problem": str(problem)}:
            return ToolUse(use_id, name, InvalidArguments(raw, problem))
        case {"call": str(name), "id": str(use_id), "arguments": Mapping() as arguments}:
            return ToolUse(use_id, name, arguments)
        case {"result": str(text), "id": str(use_id), "is_error": bool(is_error)}:
            return ToolResult(use_id, text, is_error)
    raise ValueError("no block of a message")
