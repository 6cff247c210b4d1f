"""Draft, ask, write."""

from __future__ import annotations

from dataclasses import dataclass

from agl.sdk import (
    Choice,
    ModelId,
    Restriction,
    Role,
    Run,
    Screen,
    Stop,
    arg,
    prompt_file,
    reporting_tool,
    role,
    workflow,
)


@dataclass(frozen=True)
class Params:
    version_name: str = arg("--version-name", help="the version that the entry is for")
    writer: ModelId = arg("--writer", help="who drafts and writes it")


@dataclass(frozen=True)
class Draft:
    lines: list[str]


@role()
def drafter() -> Role[Draft]:
    return Role(
        name="draft",
        instructions=prompt_file("draft.md"),
        restrictions=[Restriction.NO_FILE_WRITES],
        tools=[reporting_tool("hand_in_draft", "Hands in the lines of the entry.", Draft)],
    )


@role()
def writer() -> Role[None]:
    return Role(
        name="write",
        instructions="Put the entry on top of CHANGELOG.md; make the file if it is not there.",
    )


@workflow(version="1")
async def changelog(run: Run[Params]) -> None:
    """Drafts a changelog entry, asks whether to take it, and writes it down."""
    params = run.params
    draft = await run.step(drafter(model=params.writer), version=params.version_name)
    if not draft.lines:
        run.nothing_needed("nothing changed that a user notices")
        return
    take = await run.ask(
        Screen(
            "Take this entry?",
            *draft.lines,
            responses=[Choice("yes", value=True), Choice("no", value=False)],
        ),
        key="take",
    )
    if not take:
        raise Stop("the entry was not taken")
    await run.step(
        writer(model=params.writer),
        commit=f"Changelog of {params.version_name}",
        version=params.version_name,
        lines=draft.lines,
    )
