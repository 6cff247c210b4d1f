"""Who works in `fix`, and what each hands in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from agl.sdk import (
    Capability,
    Restriction,
    Role,
    describe,
    prompt_file,
    reporting_tool,
    role,
    tool,
)


@dataclass(frozen=True)
class Implemented:
    """What the implementer says it did."""

    summary: str = describe("one paragraph on what was done and why")
    nothing_needed: bool = describe(
        "true if the repository already does what is requested and nothing was changed",
        default=False,
    )


@dataclass(frozen=True)
class Question:
    """A question to the person."""

    question: str = describe("one question that a person can answer in a line")


@dataclass(frozen=True)
class Finding:
    """Something that the reviewer found wrong."""

    severity: Literal["low", "medium", "high"]
    file: str = describe("the path of the file, as git names it")
    problem: str = describe("what happens, when, and why it is wrong")


@dataclass(frozen=True)
class Findings:
    """All that the reviewer found."""

    findings: list[Finding]


@role()
def implementer(ask: Callable[[Question], Awaitable[str]]) -> Role[Implemented]:
    return Role(
        name="implement",
        instructions=prompt_file("implement.md"),
        tools=[
            reporting_tool("hand_in", "Hands in what you did; call it last.", Implemented),
            tool("ask_person", "Asks the person who gave the request.", Question, ask),
        ],
        requires=[Capability.FILE_EDIT, Capability.SHELL],
    )


@role()
def reviewer() -> Role[Findings]:
    return Role(
        name="review",
        instructions=prompt_file("review.md"),
        restrictions=[Restriction.NO_FILE_WRITES, Restriction.NO_VCS_WRITES],
        tools=[reporting_tool("report_findings", "Hands in all findings; call it last.", Findings)],
    )
