"""Which program it is, whether it is ready, what its use costs."""

from __future__ import annotations

import asyncio
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.codex.bench import MODEL, Bench, call
from agl.ports.agents import AgentRunner, Equipped
from agl.ports.errors import (
    AuthenticationFailed,
    InputError,
    StreamDropped,
    Transient,
    UpstreamError,
)
from agl.ports.models import ModelId, Usage
from servers.model_server import Session

pytestmark = pytest.mark.vendor


def own_codex(tmp_path: Path, version: str, sandbox: str = "") -> dict[str, str]:
    """A PATH with a `codex` of the person's own, which is the real one under another version."""
    from agl.adapters.codex.program import bundled

    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "codex"
    script.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo "{version}" && exit\n'
        f'[ "$1" = sandbox ] && {sandbox or "true"}\nexec {bundled()} "$@"\n'
    )
    script.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


async def test_ones_own_program_is_used_when_it_is_new_enough(bench: Bench, tmp_path: Path) -> None:
    path = own_codex(tmp_path, "codex-cli 0.400.1")
    await bench.ran(bench.script(), environ=path)
    program = f"codex 0.400.1 ({tmp_path}/bin/codex)"
    assert bench.events[0] == Equipped(program, "Codex's sandbox")


async def test_else_the_one_that_came_with_the_package(bench: Bench, tmp_path: Path) -> None:
    path = own_codex(tmp_path, "codex-cli 0.99.0")
    assert "with openai-codex-cli-bin" in await bench.runner(
        bench.script(), environ=path
    ).check_ready(MODEL)


async def test_a_program_too_old_is_refused(bench: Bench, tmp_path: Path) -> None:
    path = own_codex(tmp_path, "codex-cli 0.162.9")
    runner = bench.runner(bench.script(), environ=path, own=tmp_path / "none")
    with pytest.raises(InputError, match=r"too old: .* is 0\.162\.9, not 0\.163\.0 or newer"):
        await runner.check_ready(MODEL)


async def test_a_missing_program_is_refused(bench: Bench, tmp_path: Path) -> None:
    path = {"PATH": str(tmp_path / "none")}
    runner = bench.runner(bench.script(), environ=path, own=tmp_path / "none")
    with pytest.raises(InputError, match=r"no codex.* on PATH; install it"):
        await runner.check_ready(MODEL)


async def test_a_program_that_is_none_is_refused(bench: Bench, tmp_path: Path) -> None:
    runner = bench.runner(
        bench.script(), environ=own_codex(tmp_path, "hello"), own=tmp_path / "none"
    )
    with pytest.raises(UpstreamError, match="does not tell its version"):
        await runner.check_ready(MODEL)


async def test_one_that_is_broken_gives_way_to_that_of_the_package(
    bench: Bench, tmp_path: Path
) -> None:
    runner = bench.runner(bench.script(), environ=own_codex(tmp_path, "hello"))
    assert "with openai-codex-cli-bin" in await runner.check_ready(MODEL)


async def test_a_sandbox_that_does_not_work_here_is_told(bench: Bench, tmp_path: Path) -> None:
    path = own_codex(tmp_path, "codex-cli 0.400.1", sandbox="exit 1")
    runner = bench.runner(bench.script(), environ=path, sandbox="require")
    with pytest.raises(InputError, match="the sandbox is required, and Codex's does not work"):
        await runner.check_ready(MODEL)
    runner = bench.runner(bench.script(), environ=path)
    assert (await runner.check_ready(MODEL)).endswith(", no sandbox")


async def test_many_at_once_start_in_a_new_home(bench: Bench) -> None:
    runner = bench.runner(bench.script())
    outcomes = await asyncio.gather(
        *(runner.run(bench.task(follow_up=lambda: None), bench.events.append) for _ in range(6))
    )
    assert {outcome.model for outcome in outcomes} == {MODEL.name}


async def test_to_be_ready_costs_no_request(bench: Bench) -> None:
    session = bench.script()
    said = await bench.runner(session, sandbox="require").check_ready(MODEL)
    assert said.endswith(", its sandbox")
    assert session.requests == []


def with_openai(bench: Bench, url: str) -> None:
    """In place of a provider of one's own, the one that is built in."""
    (bench.home / "config.toml").write_text(f'openai_base_url = "{url}"\n')


async def test_who_is_not_logged_in_is_told(bench: Bench) -> None:
    session = bench.script()
    runner = bench.runner(session)
    with_openai(bench, session.v1)
    with pytest.raises(AuthenticationFailed, match="/bin/codex login`"):
        await runner.check_ready(MODEL)
    assert session.requests == []


async def test_a_provider_whose_key_is_missing_is_told(bench: Bench) -> None:
    runner = bench.runner(bench.script(), environ={"MINE_API_KEY": ""})
    with pytest.raises(AuthenticationFailed, match="MINE_API_KEY"):
        await runner.check_ready(MODEL)


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "CODEX_API_KEY"])
async def test_a_key_in_the_environment_is_used(bench: Bench, name: str) -> None:
    session = bench.script({"text": "hello"})
    runner = bench.runner(session, environ={name: "sk-mine"})
    with_openai(bench, session.v1)
    await runner.check_ready(MODEL)
    await runner.run(bench.task(follow_up=lambda: None), bench.events.append)
    assert [one.headers["authorization"] for one in session.requests] == ["Bearer sk-mine"]


def logged_in(bench: Bench, session: Session, **environ: str) -> AgentRunner:
    """With the provider that is built in, which asks this server for a web socket first."""
    from agl.adapters.codex.program import bundled

    runner = bench.runner(session, environ=environ)
    with_openai(bench, session.v1)
    env = {"PATH": os.environ["PATH"], "CODEX_HOME": str(bench.home), "HOME": str(bench.home)}
    login = [str(bundled()), "login", "--with-api-key"]
    subprocess.run(login, input=b"sk-login\n", env=env, check=True, capture_output=True)
    return runner


@pytest.mark.slow
async def test_a_login_comes_before_a_key_that_is_not_for_codex(bench: Bench) -> None:
    session = bench.script({"text": "hello"})
    runner = logged_in(bench, session, OPENAI_API_KEY="sk-other")
    await runner.check_ready(MODEL)
    await runner.run(bench.task(follow_up=lambda: None), bench.events.append)
    assert {one.headers["authorization"] for one in session.requests} == {"Bearer sk-login"}
    assert bench.said == ["hello"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "error", "most"), [("failed", Transient, 5), ("dropped", StreamDropped, 2)]
)
async def test_the_provider_that_is_built_in_is_not_asked_again_for_long(
    bench: Bench, kind: str, error: type[Transient], most: int
) -> None:
    """Of what it asks again before a stream begins, it says nothing."""
    session = bench.script(*[{"text": "half of it", "error": {"kind": kind}}] * 9)
    runner = logged_in(bench, session)
    with pytest.raises(error):
        await runner.run(bench.task(), bench.events.append)
    assert len([one for one in session.requests if one.method == "POST"]) <= most
    assert [event for event in bench.events if not isinstance(event, Equipped)] == []


async def test_the_effort_is_the_models_setting(bench: Bench) -> None:
    session = bench.script()
    model = replace(MODEL, settings=(("effort", "low"),))
    await bench.ran(session, task={"model": model})
    assert session.asked[0].body["reasoning"]["effort"] == "low"


@pytest.mark.parametrize("setting", [("effort", "huge"), ("thinking", "1")])
async def test_another_setting_is_refused(bench: Bench, setting: tuple[str, str]) -> None:
    with pytest.raises(InputError, match=f"{setting[0]} '{setting[1]}'; known is effort"):
        await bench.runner(bench.script()).check_ready(replace(MODEL, settings=(setting,)))


@pytest.mark.parametrize("name", ["sol", "terra", "luna", "astra"])
async def test_a_familys_name_is_its_newest_model(bench: Bench, name: str) -> None:
    session = bench.script({"text": "a"})
    outcome = await bench.ran(session, task={"model": ModelId("codex", name)})
    assert session.asked[0].body["model"].startswith("gpt-")
    assert session.asked[0].body["model"].endswith(f"-{name}")
    assert outcome.model == session.asked[0].body["model"]


async def test_any_other_name_is_a_model(bench: Bench) -> None:
    session = bench.script({"text": "a"})
    outcome = await bench.ran(session, task={"model": ModelId("codex", "qwen3-coder:30b")})
    assert outcome.model == session.asked[0].body["model"] == "qwen3-coder:30b"


async def test_usage_of_every_call(bench: Bench) -> None:
    use = {"input_tokens": 1000, "output_tokens": 200, "cached_tokens": 400}
    session = bench.script(
        {**call("shell", command="true"), "usage": use},
        {"text": "a", "usage": use},
        {"text": "b", "usage": use},
    )
    await bench.ran(session)
    assert bench.usage == Usage(3000, 600, 1200)


async def test_a_tool_that_failed_is_told(bench: Bench) -> None:
    await bench.ran(bench.script(call("shell", command="echo oh no; exit 3")))
    assert "shell echo oh no; exit 3 failed: oh no" in bench.lines


async def test_what_does_not_fit_a_tool_is_answered_by_agl(bench: Bench) -> None:
    session = bench.script(call("report_findings"), call("report_findings", findings=[]))
    await bench.ran(session)
    assert "findings: expected a list" in session.asked[1].text
    assert bench.desk.report == {"findings": []}
