"""Who works in `split`, and what each hands in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agl.sdk import (
    Capability,
    Restriction,
    Role,
    Tool,
    describe,
    prompt_file,
    reporting_tool,
    role,
    tool,
)
from agl.workflows.split.plan import Plan, plan_of


@dataclass(frozen=True)
class Implemented:
    """What the implementer says it did."""

    summary: str = describe("one paragraph on what was done and why")
    nothing_needed: bool = describe(
        "true if the repository already does what the chunk asks for and nothing was changed",
        default=False,
    )


@dataclass(frozen=True)
class Repaired:
    """What the implementer says it repaired."""

    summary: str = describe("one paragraph on what was done and why")


@dataclass(frozen=True)
class Question:
    """A question to the person."""

    question: str = describe("one question that a person can answer in a line")


Ask = Callable[[Question], Awaitable[str]]


@role()
def planner(most: int, name: Callable[[str], object]) -> Role[Plan]:
    hand_in = reporting_tool(
        "hand_in",
        "Hands in the plan; call it last.",
        plan_of(most, name),
        type_name="agl.workflows.split.plan.Plan",
    )
    return Role(
        name="plan",
        instructions=prompt_file("plan.md"),
        restrictions=[Restriction.NO_FILE_WRITES, Restriction.NO_SHELL],
        tools=[hand_in],
    )


@role()
def implementer(ask: Ask) -> Role[Implemented]:
    hand_in = reporting_tool("hand_in", "Hands in what you did; call it last.", Implemented)
    return Role(
        name="implement",
        instructions=prompt_file("implement.md"),
        tools=[hand_in, _ask_person(ask)],
        requires=[Capability.FILE_EDIT, Capability.SHELL],
    )


@role()
def repairer(ask: Ask) -> Role[Repaired]:
    hand_in = reporting_tool("hand_in", "Hands in what you did; call it last.", Repaired)
    return Role(
        name="repair",
        instructions=prompt_file("repair.md"),
        tools=[hand_in, _ask_person(ask)],
        requires=[Capability.FILE_EDIT, Capability.SHELL],
    )


def _ask_person(ask: Ask) -> Tool:
    return tool("ask_person", "Asks the person who gave the request.", Question, ask)
