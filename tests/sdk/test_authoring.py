"""Roles, tools, prompts and workflows as an author declares them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import BaseModel

import agl.sdk
from agl.sdk import (
    Capability,
    InputError,
    Role,
    Run,
    describe,
    prompt_file,
    reporting_tool,
    tool,
    workflow,
)
from agl.sdk.roles import files_taken_in
from agl.sdk.tools import ReportingTool


@dataclass
class Payload:
    text: str = describe("what was found")


class Model(BaseModel):
    text: str


async def handler(payload: Payload) -> str:
    return payload.text


def test_the_front_door_is_complete() -> None:
    bound = {name for name in vars(agl.sdk) if not name.startswith("_") and name[0].isupper()}
    assert bound <= set(agl.sdk.__all__)
    assert all(hasattr(agl.sdk, name) for name in agl.sdk.__all__)


@pytest.mark.parametrize("payload", [Payload, Model])
def test_dataclasses_and_models_are_payloads(payload: type) -> None:
    made: ReportingTool[object] = reporting_tool("report", "Hands in.", payload)
    assert made.schema["type"] == "object"
    assert made.type_name.endswith(payload.__name__)


@dataclass
class Branch:
    name: str
    below: list[Branch]


def test_a_payload_may_hold_itself() -> None:
    schema = reporting_tool("report", "Hands in.", Branch).schema
    assert schema["type"] == "object"
    assert schema["required"] == ["name", "below"]


def test_a_described_field_is_described_to_the_agent() -> None:
    schema = reporting_tool("report", "Hands in.", Payload).schema
    properties = schema["properties"]
    assert isinstance(properties, dict)
    assert properties["text"]["description"] == "what was found"


def test_a_pinned_type_name_lets_the_class_move() -> None:
    assert reporting_tool("report", "Hands in.", Payload, type_name="note").type_name == "note"


@pytest.mark.parametrize("payload", [int, list])
def test_a_payload_that_is_no_object_is_refused(payload: type) -> None:
    with pytest.raises(InputError):
        reporting_tool("report", "Hands in.", payload)


@pytest.mark.parametrize(("name", "text"), [("", "x"), ("a b", "x"), ("ok", " "), ("ü", "x")])
def test_a_tool_needs_a_name_and_a_description(name: str, text: str) -> None:
    with pytest.raises(InputError):
        tool(name, text, Payload, handler)


def test_tools_and_reporting_tools_are_disjoint() -> None:
    assert not isinstance(tool("a", "A.", Payload, handler), ReportingTool)


def test_a_role_with_tools_needs_a_model_that_calls_them() -> None:
    made = Role(name="a", instructions="A.", tools=[tool("a", "A.", Payload, handler)])
    assert made.requires == {Capability.TOOL_CALLING}


def test_a_role_has_one_result() -> None:
    first, second = (reporting_tool(name, "Hands in.", Payload) for name in ("a", "b"))
    with pytest.raises(InputError, match="two reporting tools"):
        Role(name="a", instructions="A.", tools=[first, second])
    with pytest.raises(InputError, match="two tools of one name"):
        Role(name="a", instructions="A.", tools=[first, first])


@pytest.mark.parametrize("name", ["", "a/b", "..", "a b", "con"])
def test_a_roles_name_is_a_folder(name: str) -> None:
    with pytest.raises(InputError):
        Role(name=name, instructions="A.")


def test_a_role_is_immutable() -> None:
    made = Role(name="a", instructions="A.")
    with pytest.raises(AttributeError):
        made.instructions = "B."


def test_a_prompt_file_is_read_beside_its_module_and_noted() -> None:
    beside = Path(__file__)
    assert prompt_file(beside.name) == beside.read_text()
    assert str(beside.resolve()) in files_taken_in()


def test_a_prompt_file_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match=r"nowhere\.md' cannot be read: No such file or dir"):
        prompt_file("nowhere.md")


def test_a_workflow_is_an_async_function_of_a_run() -> None:
    async def no_annotation(run) -> None:  # type: ignore[no-untyped-def]
        raise NotImplementedError

    async def no_argument() -> None:
        raise NotImplementedError

    async def other(run: int) -> None:
        raise NotImplementedError

    async def no_dataclass(run: Run[int]) -> None:
        raise NotImplementedError

    def not_async(run: Run[None]) -> None:
        raise NotImplementedError

    for function in (no_annotation, no_argument, other, no_dataclass, not_async):
        with pytest.raises(InputError):
            workflow(version="1")(function)  # type: ignore[arg-type]


@pytest.mark.parametrize("version", ["", 1])
def test_a_version_is_a_text(version: object) -> None:
    with pytest.raises(InputError):
        workflow(version=version)  # type: ignore[arg-type]
