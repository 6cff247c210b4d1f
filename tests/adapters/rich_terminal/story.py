"""A run of many scopes, as its events tell it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from agl.ports.events import Event

BEGIN = datetime(2026, 1, 2, tzinfo=UTC)
NOW = BEGIN + timedelta(seconds=95)


def at(seconds: float, kind: str, namespace: str = "", about: str = "", **details: object) -> Event:
    return Event(kind, BEGIN + timedelta(seconds=seconds), namespace, about, details)


def spent(tokens: int, cost_usd: float | None) -> dict[str, object]:
    return {"input_tokens": tokens, "output_tokens": 0, "cached_tokens": 0, "cost_usd": cost_usd}


def split() -> Iterator[Event]:
    """A planner, and four chunks: one at work on its second step, with a grandchild; one that
    conflicted; one in wide characters; one landed, at a price nobody knows."""
    opus, sol = "claude_code:opus", "codex:sol"
    yield at(0, "run_started", about="split", workflow="split", epoch=1, resumed=False)
    yield at(0, "step_started", about="plan", model=opus, nth=1)
    yield at(12, "step_finished", about="plan", duration_s=12.3, usage=spent(1200, 0.3))
    for name in ("parser", "lexer", "漢字", "docs"):
        yield at(13, "child_started", name, start="abc")
        yield at(13, "step_started", name, "implement", model=opus, nth=1)
        yield at(14, "agent_acted", name, "implement", activity="Bash: make 漢字 👨‍👩‍👧 e\u0301 ⚙")
    for name, cost_usd in (("docs", None), ("lexer", 0.25), ("parser", 0.5)):
        usage = spent(10_500, cost_usd)
        yield at(40, "step_finished", name, "implement", duration_s=27.0, usage=usage)
    yield at(41, "landing_started", "", "docs", child="abc")
    yield at(43, "landed", "", "docs", head="abc")
    yield at(44, "landing_started", "", "lexer", child="abc")
    yield at(45, "landing_conflicted", "", "lexer", paths=["src/lexer.py"])
    yield at(50, "step_started", "parser", "review", model=sol, nth=1)
    yield at(51, "agent_acted", "parser", "review", activity="Read: src/parser.py")
    yield at(60, "step_started", "parser/deep", "look", model=sol, nth=1)
