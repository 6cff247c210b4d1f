from __future__ import annotations

import asyncio
import os
import secrets
import signal
from pathlib import Path

import pytest

from agl.adapters.shell import ShellVerifier
from agl.adapters.system import SystemProcesses
from agl.adapters.system.table import this_table
from agl.ports.errors import UpstreamError
from agl.ports.processes import Command, Marker
from agl.testing.contracts.verifier import VerifierContract

ENV = {"PATH": os.environ.get("PATH", os.defpath)}


@pytest.fixture
def processes() -> SystemProcesses:
    return SystemProcesses(grace_s=30, drain_s=0.2)


@pytest.fixture
def verifier(processes: SystemProcesses) -> ShellVerifier:
    return ShellVerifier(processes, ENV)


@pytest.fixture
def marker() -> Marker:
    return Marker(f"test-{secrets.token_hex(8)}")


class TestShellVerifier(VerifierContract):
    @pytest.fixture
    def verifier(self, processes: SystemProcesses) -> ShellVerifier:
        return ShellVerifier(processes, ENV)


async def test_both_streams_are_in_the_tail_in_the_order_of_their_writing(
    verifier: ShellVerifier, tmp_path: Path, marker: Marker
) -> None:
    command = "for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done"
    verdict = await verifier.verify(tmp_path, command, 10, marker)
    assert verdict.tail == "".join(f"out {i}\nerr {i}\n" for i in range(1, 6))


async def test_the_command_line_is_the_shells_and_runs_in_the_tree(
    verifier: ShellVerifier, tmp_path: Path, marker: Marker
) -> None:
    command = """X="a b"; printf '%s|' "$X" 'it'"'"'s' && pwd && false || echo end"""
    verdict = await verifier.verify(tmp_path, command, 10, marker)
    assert verdict.tail == f"a b|it's|{tmp_path}\nend\n"


async def test_five_megabytes_of_output_pass_and_their_end_is_shown(
    verifier: ShellVerifier, tmp_path: Path, marker: Marker
) -> None:
    command = "i=0; while [ $i -lt 80000 ]; do echo ' a line of sixty-four characters, as a "
    command += "gate may print it '; i=$((i+1)); done; seq 1 300"
    verdict = await verifier.verify(tmp_path, command, 60, marker)
    assert verdict.passed
    assert verdict.tail.splitlines() == [str(n) for n in range(101, 301)]


async def test_of_one_long_line_the_end_is_shown(
    verifier: ShellVerifier, tmp_path: Path, marker: Marker
) -> None:
    command = "head -c 70000 /dev/zero | tr '\\0' x; printf 'é\\377end'"
    verdict = await verifier.verify(tmp_path, command, 10, marker)
    assert verdict.tail.endswith("xxxé\N{REPLACEMENT CHARACTER}end")
    assert 19_000 < len(verdict.tail) <= 20_000


async def test_a_build_out_of_time_fails_with_a_note(
    verifier: ShellVerifier, tmp_path: Path, marker: Marker
) -> None:
    verdict = await verifier.verify(tmp_path, "echo begun; sleep 60", 0.2, marker)
    assert not verdict.passed
    assert (verdict.status, verdict.tail) == (124, "begun\n")
    assert verdict.note == "ended after its time limit of 0.2 s"


async def test_a_build_that_ends_itself_well_after_its_time_fails_too(
    verifier: ShellVerifier, tmp_path: Path, marker: Marker
) -> None:
    command = "trap 'exit 0' TERM; while :; do sleep 0.01; done"
    assert not (await verifier.verify(tmp_path, command, 0.2, marker)).passed


async def test_a_build_that_was_killed_says_by_what(
    verifier: ShellVerifier, tmp_path: Path, marker: Marker
) -> None:
    verdict = await verifier.verify(tmp_path, "kill -SEGV $$", 10, marker)
    assert not verdict.passed
    assert (verdict.status, verdict.note) == (-signal.SIGSEGV, "killed by SIGSEGV")


async def test_a_build_gets_no_git_location(
    processes: SystemProcesses, tmp_path: Path, marker: Marker
) -> None:
    verifier = ShellVerifier(processes, {**ENV, "GIT_DIR": "/theirs", "GIT_AUTHOR_NAME": "me"})
    verdict = await verifier.verify(tmp_path, 'echo "${GIT_DIR-none} $GIT_AUTHOR_NAME"', 10, marker)
    assert verdict.tail == "none me\n"


@pytest.mark.parametrize(("theirs", "said"), [({}, "1"), ({"PYTHONDONTWRITEBYTECODE": ""}, "")])
async def test_python_leaves_no_caches_unless_a_person_wants_them(
    processes: SystemProcesses, tmp_path: Path, marker: Marker, theirs: dict[str, str], said: str
) -> None:
    verifier = ShellVerifier(processes, {**ENV, **theirs})
    verdict = await verifier.verify(tmp_path, 'echo "$PYTHONDONTWRITEBYTECODE"', 10, marker)
    assert verdict.tail == f"{said}\n"


async def test_what_a_build_left_behind_is_gone_and_nothing_else(
    verifier: ShellVerifier, processes: SystemProcesses, tmp_path: Path, marker: Marker
) -> None:
    agent = asyncio.create_task(
        processes.run(Command(("sleep", "60"), tmp_path, ENV, marker=marker))
    )
    command = "setsid sleep 60 >/dev/null 2>&1 & echo $!"
    verdict = await verifier.verify(tmp_path, command, 10, marker)
    assert int(verdict.tail) not in this_table().look()
    assert not agent.done()
    agent.cancel()
    await asyncio.wait({agent})


async def test_a_cancelled_build_is_gone(
    verifier: ShellVerifier, processes: SystemProcesses, tmp_path: Path, marker: Marker
) -> None:
    command = "setsid sleep 60 & : >file; sleep 60"
    build = asyncio.create_task(verifier.verify(tmp_path, command, 60, marker))
    while not (tmp_path / "file").exists():
        await asyncio.sleep(0.005)
    build.cancel()
    with pytest.raises(asyncio.CancelledError):
        await build
    assert await processes.end(marker) == ()


async def test_a_tree_that_is_not_there_is_an_error(
    verifier: ShellVerifier, tmp_path: Path, marker: Marker
) -> None:
    with pytest.raises(UpstreamError, match="gone"):
        await verifier.verify(tmp_path / "gone", "true", 10, marker)
