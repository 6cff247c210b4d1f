"""mypy --strict infers what a step returns, and refuses what does not fit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FLOW = """
from dataclasses import dataclass

from pydantic import BaseModel

from agl.sdk import (
    Choice, ModelId, Restriction, Role, Run, Screen, Scripted, TextInput, Tool, Verdict, arg,
    reporting_tool, role, tool, workflow,
)


@dataclass(frozen=True)
class Params:
    request: str = arg("-r", "--request")
    model: ModelId = arg("--model", default=Scripted("x.json"))


@dataclass
class Findings:
    found: list[str]


class Plan(BaseModel):
    chunks: list[str]


async def answer(plan: Plan) -> str:
    return plan.chunks[0]


helper = tool("help", "Helps.", Plan, answer)


@role(model=Scripted("x.json"))
def implementer(detail: int) -> Role[None]:
    return Role(name="implement", instructions="Do it.", tools=[helper])


@role()
def reviewer() -> Role[Findings]:
    return Role(
        name="review",
        instructions="Look.",
        restrictions=[Restriction.NO_FILE_WRITES],
        tools=[reporting_tool("report", "Hands in.", Findings), helper],
    )


@role(model=Scripted("x.json"))
def planner() -> Role[Plan]:
    return Role(name="plan", instructions="Plan.", tools=[reporting_tool("plan", "Plans.", Plan)])


@workflow(version="1")
async def flow(run: Run[Params]) -> None:
    reveal_type(await run.step(implementer(1), commit="x"))
    reveal_type(await run.step(reviewer(model=run.params.model)))
    reveal_type(await run.step(planner(), discard=True))
    reveal_type(await run.verify())
    reveal_type(await run.ask(Screen("Go?", responses=[Choice("yes", True), Choice("no", False)])))
    reveal_type(await run.ask(Screen("Who?", responses=[TextInput("name", maps=str)])))
    reveal_type(run.params)
    wrong: Findings = await run.step(planner(), discard=True)
    implementer("one")
"""

REVEALED = [
    "None",
    "flow.Findings",
    "flow.Plan",
    "agl.ports.verifier.Verdict",
    "bool",
    "str",
    "flow.Params",
]


@pytest.mark.slow
def test_a_checker_knows_what_a_step_returns(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(FLOW)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), "flow.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    lines = done.stdout.splitlines()
    revealed = [line.split('"')[1] for line in lines if "Revealed type is" in line]
    assert [text.replace("builtins.", "") for text in revealed] == REVEALED, done.stdout
    errors = [line for line in lines if ": error:" in line]
    assert len(errors) == 2, done.stdout
    assert "Plan" in errors[0]
    assert "Findings" in errors[0]
    assert 'has incompatible type "str"' in errors[1]
