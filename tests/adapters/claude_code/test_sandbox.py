"""What the shell of the real program cannot do in its sandbox, and what comes without one."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from adapters.claude_code.bench import Bench, call
from adapters.claude_code.test_ending import marked, program_of, until_there
from agl.ports.agents import Equipped
from agl.ports.errors import InputError
from agl.ports.models import Restriction
from servers.model_server import Session

pytestmark = pytest.mark.vendor

NO_FILE_WRITES, NO_SHELL, NO_NETWORK, NO_VCS_WRITES = Restriction
GIT = {
    **{"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull},
    **{"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b"},
    **{"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"},
}

fenced = pytest.mark.skipif(
    shutil.which("bwrap") is None or shutil.which("socat") is None,
    reason="needs bubblewrap and socat: apt-get install bubblewrap socat",
)


def typing(bench: Bench, *commands: str) -> Session:
    """A model that has the shell run each."""
    return bench.script({"calls": [call("shell", command=one)["calls"][0] for one in commands]})


def sandbox_of(bench: Bench) -> str:
    first = bench.events[0]
    assert isinstance(first, Equipped)
    return first.sandbox


def git(*words: str | Path) -> str:
    done = subprocess.run(
        ["git", *words], check=True, capture_output=True, text=True, env={**os.environ, **GIT}
    )
    return done.stdout


@pytest.fixture
def repository(bench: Bench, tmp_path: Path) -> Path:
    """The one of which the tree is a linked worktree."""
    folder = tmp_path / "repo"
    git("init", "-q", folder)
    git("-C", folder, "commit", "-q", "--allow-empty", "-m", "x")
    git("-C", folder, "worktree", "add", "-q", "-f", "-b", "work", bench.tree)
    return folder


@fenced
async def test_the_shell_writes_in_the_tree_alone(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    calls = [
        call("shell", command=f"touch {tmp_path}/repo/outside.txt")["calls"][0],
        call("shell", command=f"touch {tmp_path}/repo/beside.txt", dangerouslyDisableSandbox=True)[
            "calls"
        ][0],
        call("shell", command="touch inside.txt")["calls"][0],
    ]
    await bench.ran(bench.script({"calls": calls}), sandbox="require")
    assert list((tmp_path / "repo").iterdir()) == []
    left = [path for path in bench.tree.rglob("*") if path.is_file()]
    assert left == [bench.tree / "inside.txt"]


@fenced
@pytest.mark.parametrize("restricted", [False, True])
async def test_without_the_network_the_shell_reaches_nobody(bench: Bench, restricted: bool) -> None:
    reach = f"echo > /dev/tcp/127.0.0.1/{bench.server.port} && touch reached"
    await bench.ran(typing(bench, f"bash -c '{reach}'"), *([NO_NETWORK] if restricted else []))
    assert (bench.tree / "reached").exists() is not restricted


@fenced
@pytest.mark.parametrize(("restrictions", "code"), [((), "404"), ((NO_NETWORK,), "403")])
async def test_its_way_out_is_closed_without_the_network(
    bench: Bench, restrictions: tuple[Restriction, ...], code: str
) -> None:
    """In the sandbox there is a proxy, which is left open to the others."""
    (bench.tree / "reach.py").write_text(
        "import urllib.error, urllib.request\n"
        f"try: urllib.request.urlopen('http://127.0.0.1:{bench.server.port}/x')\n"
        "except urllib.error.HTTPError as error: print(error.code)\n"
    )
    session = typing(bench, "NO_PROXY= no_proxy= python3 reach.py > code.txt")
    await bench.ran(session, *restrictions, sandbox="require")
    assert (bench.tree / "code.txt").read_text() == f"{code}\n"


@fenced
async def test_no_file_writes_is_true_of_the_shell(bench: Bench) -> None:
    (bench.tree / "a.txt").write_text("alpha\n")
    session = typing(bench, "echo x > a.txt", "echo x > new.txt", "cat a.txt; echo x > $TMPDIR/x")
    await bench.ran(session, NO_FILE_WRITES)
    assert [path for path in bench.tree.rglob("*") if path.is_file()] == [bench.tree / "a.txt"]
    assert (bench.tree / "a.txt").read_text() == "alpha\n"
    assert "alpha" in session.asked[-1].text
    assert sandbox_of(bench) == "Claude Code's sandbox"


@fenced
@pytest.mark.parametrize(
    ("restrictions", "more"), [((NO_VCS_WRITES,), {}), ((), {"sandbox": "require"})]
)
async def test_nothing_is_written_in_the_repository(
    bench: Bench,
    repository: Path,
    restrictions: tuple[Restriction, ...],
    more: Mapping[str, Any],
) -> None:
    refs = git("-C", repository, "for-each-ref")
    # Not `git commit`, which would not be tried.
    (bench.tree / "try.sh").write_text(
        "git add try.sh\ngit commit -q --allow-empty -m y\ngit branch other\ngit config a.b c\n"
        f"touch {repository}/.git/made\necho x > .git\nrm -f .git\n"
    )
    await bench.ran(typing(bench, "sh try.sh; touch done"), *restrictions, environ=GIT, **more)
    assert (bench.tree / "done").exists()
    assert (bench.tree / ".git").read_text().startswith("gitdir: ")
    assert git("-C", repository, "for-each-ref") == refs
    assert git("-C", bench.tree, "status", "--short").splitlines() == ["?? done", "?? try.sh"]
    assert not (repository / ".git/made").exists()
    assert "[a]" not in (repository / ".git/config").read_text()


@fenced
async def test_a_cancelled_command_leaves_nobody_and_nothing(
    bench: Bench, repository: Path
) -> None:
    session = typing(bench, "touch begun; setsid sleep 300 & sleep 300")
    task = bench.task(NO_VCS_WRITES)
    work = asyncio.create_task(bench.runner(session).run(task, bench.events.append))
    await until_there(bench.tree / "begun")
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert marked(task.marker.run) == {}
    assert git("-C", bench.tree, "status", "--short").splitlines() == ["?? begun"]


@fenced
async def test_what_a_killed_program_leaves_of_it_is_removed_before_the_next(
    bench: Bench, repository: Path
) -> None:
    (bench.tree / ".bashrc").touch()
    (bench.tree / ".claude").mkdir()
    (bench.tree / ".claude/settings.json").write_text("{}\n")
    keep = "touch begun .gitkeep; sleep 300"
    session = bench.script(
        call("write", path=".zshrc", content="x\n"),
        call("shell", command=keep),
        call("report_findings", findings=["x"]),
    )
    left: list[set[str]] = []

    def names() -> set[str]:
        return {str(path.relative_to(bench.tree)) for path in bench.tree.rglob("*")}

    async def wait(error: Exception) -> None:
        left.append(names())

    task = bench.task(NO_VCS_WRITES, wait=wait)
    work = asyncio.create_task(bench.runner(session).run(task, bench.events.append))
    await until_there(bench.tree / ".gitkeep")
    os.kill(program_of(task.marker.run), signal.SIGKILL)
    await work
    assert {".claude/hooks", ".mcp.json", ".gitconfig"} <= set(left[0])
    own = {".bashrc", ".claude", ".claude/settings.json", ".git", ".gitkeep", "begun", ".zshrc"}
    assert names() == own


@fenced
async def test_no_key_is_in_it(bench: Bench) -> None:
    keys = {"ANTHROPIC_API_KEY": "sk-own", "OPENAI_API_KEY": "sk-other", "AGL_HOME": "/agl"}
    look = "env > seen.txt; cat /proc/[0-9]*/environ 2>/dev/null >> seen.txt"
    await bench.ran(typing(bench, look), NO_VCS_WRITES, environ=keys)
    seen = (bench.tree / "seen.txt").read_text()
    assert "ANTHROPIC_BASE_URL=" in seen
    assert not [value for value in ("sk-own", "sk-other", "AGL_HOME") if value in seen]


@fenced
@pytest.mark.parametrize(
    ("restrictions", "mode", "on"),
    [
        ((), "auto", False),
        ((NO_NETWORK, NO_SHELL), "auto", False),
        ((NO_NETWORK,), "auto", True),
        ((NO_NETWORK,), "off", False),
        ((), "require", True),
    ],
)
async def test_what_is_in_force_is_told(
    bench: Bench, restrictions: tuple[Restriction, ...], mode: str, on: bool
) -> None:
    await bench.ran(bench.script(), *restrictions, sandbox=mode)
    assert sandbox_of(bench) == ("Claude Code's sandbox" if on else "")


@fenced
@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("auto", "Claude Code's sandbox where a restriction asks for it"),
        ("require", "Claude Code's sandbox"),
        ("off", "no sandbox"),
    ],
)
async def test_readiness_says_when_it_is_used(bench: Bench, mode: str, said: str) -> None:
    ready = await bench.runner(bench.script(), sandbox=mode).check_ready(bench.task().model)
    assert ready.startswith("claude ")
    assert ready.endswith(f", {said}")


class TestNotThere:
    @pytest.fixture(params=["missing", "forbidden"])
    def environ(self, request: pytest.FixtureRequest, tmp_path: Path) -> Mapping[str, str]:
        """Of a machine without bubblewrap, and of one that forbids what that needs."""
        folder = tmp_path / "bin"
        folder.mkdir()
        for name in ("env", "git", "sh", "setpriv", "setsid", "true"):
            (folder / name).symlink_to(shutil.which(name) or "/none")
        if request.param == "forbidden":
            for name in ("bwrap", "socat"):
                (folder / name).write_text("#!/bin/sh\necho 'bwrap: No permissions.' >&2; exit 1\n")
                (folder / name).chmod(0o755)
        return {"PATH": str(folder), "SHELL": "/bin/bash"}

    async def test_the_shell_works_without_it_and_that_is_told(
        self, bench: Bench, environ: Mapping[str, str]
    ) -> None:
        runner = bench.runner(typing(bench, "echo x > a.txt"), environ=environ)
        await runner.run(bench.task(NO_NETWORK), bench.events.append)
        assert (bench.tree / "a.txt").exists()
        assert sandbox_of(bench) == ""
        assert isinstance(bench.events[0], Equipped)
        assert bench.events[0].lack.startswith("bwrap ")
        said = await runner.check_ready(bench.task().model)
        assert said.partition(", ")[2] in (
            "no sandbox, bwrap and socat are not on PATH (`apt-get install bubblewrap socat`)",
            "no sandbox, bwrap does not work here: bwrap: No permissions"
            " (`apt-get install bubblewrap socat`)",
        )

    async def test_who_requires_it_does_not_work(
        self, bench: Bench, environ: Mapping[str, str]
    ) -> None:
        runner = bench.runner(bench.script(), sandbox="require", environ=environ)
        with pytest.raises(InputError, match="apt-get install bubblewrap socat"):
            await runner.check_ready(bench.task().model)
        with pytest.raises(InputError, match="the sandbox is required, and bwrap"):
            await runner.run(bench.task(), bench.events.append)
