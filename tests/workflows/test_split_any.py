"""`split` on fakes: whatever the plan, the conflicts and the answers, killed again and again."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from agl.ports.agents import AgentEvent, AgentTask
from agl.ports.ledger import Kind
from agl.sdk import ModelId, Screen
from agl.testing import Harness, Interrupted, harness
from agl.workflows.split import Params, split


class Drawn:
    """A plan and how its agents and its person behave, drawn from a seed."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.chance = random.Random(seed)
        self.names = [f"k{n}" for n in range(self.chance.randint(2, 7))]
        self.clashing = {name for name in self.names if self.chance.random() < 0.4}
        self.broken = {name for name in self.names if self.chance.random() < 0.2}
        self.plan = [
            {"id": name, "title": f"Do {name}", "task": "Do it.", "needs": self._some(before)}
            for before, name in enumerate(self.names)
        ]
        self.chance.shuffle(self.plan)
        self.params = Params(
            request="do it all",
            chunks=9,
            rounds=2,
            verify=self.chance.random() < 0.3,
            on_conflict=self.chance.choice(["ask", "repair", "skip"]),
            planner=ModelId("fake", "a"),
            implementer=ModelId("fake", "b"),
        )
        self.h = harness(
            folder,
            agent=self.agent,
            answers=self.answer,
            verdicts=lambda tree, command: "broken" not in texts(tree),
            files={"same.txt": "base"},
        )

    def _some(self, before: int) -> list[str]:
        known = self.names[:before]
        return self.chance.sample(known, self.chance.randint(0, min(2, before)))

    async def agent(self, task: AgentTask, emit: Callable[[AgentEvent], None]) -> str:
        for _ in range(self.chance.randint(0, 6)):
            await asyncio.sleep(0)
        name = task.scope.path[0] if task.scope.path else "plan"
        same = task.tree / "same.txt"
        if task.step == "implement":
            (task.tree / f"{name}.txt").write_text("broken" if name in self.broken else "right")
            if name in self.clashing:
                same.write_text(name)
        elif task.step == "repair":
            (task.tree / f"{name}.txt").write_text("right")
            if "<<<<" in same.read_text():
                same.write_text(f"merged with {name}")
        report = {"chunks": self.plan} if task.step == "plan" else {"summary": "done"}
        await next(tool for tool in task.tools if tool.reports).handler(report)
        return "done"

    def answer(self, screen: Screen[object]) -> str:
        chosen = self.chance.choice(screen.responses).label
        if chosen == "retry":
            name = screen.title.split(":")[0]
            (self.h.tree() / f"{name}.txt").write_text("right")
            (self.h.tree() / "same.txt").write_text("typed")
        return chosen


def texts(tree: Path) -> set[str]:
    return {file.read_text() for file in tree.glob("k*.txt")}


def recorded(h: Harness, names: list[str]) -> set[str]:
    """The steps in the ledger, each as the harness calls it."""
    found: set[str] = set()
    for name in names:
        nth: Counter[str] = Counter()
        for entry in h.recorded(name):
            if entry.kind is Kind.STEP:
                nth[entry.name] += 1
                found.add(f"{entry.name}@{name}#{nth[entry.name]}")
    return found


@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=() if n < 12 else pytest.mark.slow) for n in range(40)]
)
def test_every_chunk_lands_once_or_is_named(tmp_path: Path, seed: int) -> None:
    drawn = Drawn(seed, tmp_path)
    h, known = drawn.h, set[str]()
    for life in range(400):
        entries = drawn.chance.choice([1, 2, 3, 5, 8, 13, None])
        try:
            if life == 0:
                report = h.run(split, drawn.params, interrupt_after=entries)
            else:
                report = h.resume(interrupt_after=entries)
        except Interrupted:
            assert not known & set(h.ran)
            known = recorded(h, drawn.names)
        else:
            assert not known & set(h.ran)
            break
    landed = [
        entry.name
        for entry in h.recorded()
        if entry.kind is Kind.LANDING and entry.head_after != entry.head_before
    ]
    assert sorted(f"{name}.txt" for name in landed) == sorted(h.files().keys() - {"same.txt"})
    assert "broken" not in h.files().values()
    given_up = [name for name in drawn.names if name not in landed]
    assert report.exit_code == (7 if given_up else 0), report.message
    assert all(f"  {name}: " in report.message for name in given_up)
