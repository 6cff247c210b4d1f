"""Which program it is, whether it is ready, what its use costs."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.claude_code.bench import MODEL, Bench, call
from agl.ports.agents import Equipped
from agl.ports.errors import AuthenticationFailed, InputError, UpstreamError
from agl.ports.models import Usage

pytestmark = pytest.mark.vendor


def own_claude(tmp_path: Path, version: str) -> dict[str, str]:
    """A PATH with a `claude` of the person's own, which is the real one under another version."""
    from agl.adapters.claude_code.program import bundled

    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "claude"
    script.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo "{version}" && exit\nexec {bundled()} "$@"\n'
    )
    script.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


async def test_ones_own_program_is_used_when_it_is_new_enough(bench: Bench, tmp_path: Path) -> None:
    await bench.ran(bench.script(), environ=own_claude(tmp_path, "2.1.400 (Claude Code)"))
    assert bench.events[0] == Equipped(f"claude 2.1.400 ({tmp_path}/bin/claude)")


async def test_else_the_one_that_came_with_the_sdk(bench: Bench, tmp_path: Path) -> None:
    await bench.ran(bench.script(), environ=own_claude(tmp_path, "2.1.9 (Claude Code)"))
    assert "with claude-agent-sdk" in str(bench.events[0])


async def test_a_program_too_old_is_refused(bench: Bench, tmp_path: Path) -> None:
    path = own_claude(tmp_path, "2.1.247 (Claude Code)")
    runner = bench.runner(bench.script(), environ=path, own=tmp_path / "none")
    with pytest.raises(InputError, match=r"too old: .* is 2\.1\.247, not 2\.1\.248 or newer"):
        await runner.check_ready(MODEL)


async def test_a_missing_program_is_refused(bench: Bench, tmp_path: Path) -> None:
    path = {"PATH": str(tmp_path / "none")}
    runner = bench.runner(bench.script(), environ=path, own=tmp_path / "none")
    with pytest.raises(InputError, match=r"no claude.* on PATH; install it"):
        await runner.check_ready(MODEL)


async def test_a_program_that_is_none_is_refused(bench: Bench, tmp_path: Path) -> None:
    runner = bench.runner(
        bench.script(), environ=own_claude(tmp_path, "hello"), own=tmp_path / "none"
    )
    with pytest.raises(UpstreamError, match="does not tell its version"):
        await runner.check_ready(MODEL)


async def test_one_that_is_broken_gives_way_to_that_of_the_package(
    bench: Bench, tmp_path: Path
) -> None:
    runner = bench.runner(bench.script(), environ=own_claude(tmp_path, "hello"))
    assert "with claude-agent-sdk" in await runner.check_ready(MODEL)


async def test_to_be_ready_costs_no_request(bench: Bench) -> None:
    session = bench.script()
    await bench.runner(session).check_ready(MODEL)
    assert session.requests == []


async def test_who_is_not_logged_in_is_told(bench: Bench) -> None:
    runner = bench.runner(bench.script(), environ={"ANTHROPIC_API_KEY": ""})
    with pytest.raises(AuthenticationFailed, match="/_bundled/claude auth login`"):
        await runner.check_ready(MODEL)


async def test_the_effort_is_the_models_setting(bench: Bench) -> None:
    session = bench.script()
    model = replace(MODEL, settings=(("effort", "low"),))
    await bench.ran(session, task={"model": model})
    assert session.asked[0].body["output_config"]["effort"] == "low"


@pytest.mark.parametrize("setting", [("effort", "huge"), ("thinking", "1")])
async def test_another_setting_is_refused(bench: Bench, setting: tuple[str, str]) -> None:
    with pytest.raises(InputError, match=f"{setting[0]} '{setting[1]}'; known is effort"):
        await bench.runner(bench.script()).check_ready(replace(MODEL, settings=(setting,)))


@pytest.mark.parametrize("name", ["opus", "sonnet", "haiku", "fable"])
async def test_every_name_is_a_model(bench: Bench, name: str) -> None:
    session = bench.script({"text": "a"})
    outcome = await bench.ran(session, task={"model": replace(MODEL, name=name)})
    assert name in session.asked[0].body["model"]
    assert outcome.model == session.asked[0].body["model"]


async def test_the_model_that_really_answered_is_named(bench: Bench) -> None:
    outcome = await bench.ran(bench.script({"text": "a", "model": "claude-other-1"}))
    assert outcome.model == "claude-other-1"


async def test_usage_and_price_of_every_call(bench: Bench) -> None:
    use = {"input_tokens": 1000, "output_tokens": 200, "cached_tokens": 400}
    session = bench.script(
        {**call("shell", command="true"), "usage": use},
        {"text": "a", "usage": use},
        {"text": "b", "usage": use},
    )
    await bench.ran(session)
    total = bench.usage
    assert replace(total, cost_usd=None) == Usage(3000, 600, 1200)
    assert total.cost_usd
    # Three alike calls: what the first turn of two cost is two thirds.
    prices = [event.cost_usd for event in bench.events if hasattr(event, "cost_usd")]
    assert prices == pytest.approx([total.cost_usd * 2 / 3, total.cost_usd])


async def test_a_tool_that_failed_is_told(bench: Bench) -> None:
    await bench.ran(bench.script(call("shell", command="echo oh no; exit 3")))
    assert any(line.startswith("Bash echo oh no; exit 3 failed: ") for line in bench.lines)


async def test_what_does_not_fit_a_tool_is_answered_by_agl(bench: Bench) -> None:
    session = bench.script(call("report_findings"), call("report_findings", findings=[]))
    await bench.ran(session)
    assert "findings: expected a list" in session.asked[1].text
    assert bench.desk.report == {"findings": []}


async def test_a_program_that_lies_in_each_tree_is_none(bench: Bench, tmp_path: Path) -> None:
    """Where PATH has an entry that is no absolute path."""
    own_claude(tmp_path, "2.1.400 (Claude Code)")
    path = os.path.relpath(tmp_path / "bin")
    runner = bench.runner(bench.script(), environ={"PATH": f"{path}:{os.environ['PATH']}"})
    assert "with claude-agent-sdk" in await runner.check_ready(MODEL)
