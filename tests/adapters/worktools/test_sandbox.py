"""Children of an agent in bubblewrap, and without it."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.worktools.test_worktools import refusal, task_in, use
from agl.adapters.system import SystemProcesses
from agl.adapters.system.table import this_table
from agl.adapters.worktools import WorkTools
from agl.adapters.worktools.sandbox import Sandbox
from agl.ports.agents import AgentTool
from agl.ports.errors import InputError, UpstreamError
from agl.ports.models import Restriction, SandboxMode
from agl.ports.processes import Command, Finished, LineSink

NO_FILE_WRITES, NO_SHELL, NO_NETWORK, NO_VCS_WRITES = Restriction
PROCESSES = SystemProcesses(grace_s=0.2)
GIT = {
    **{"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull},
    **{"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b"},
    **{"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"},
}

# The process is in a session of its own before the command ends.
LEAVING = (
    "setsid sh -c ': > apart; exec sleep 300' > /dev/null 2>&1 &"
    " while ! [ -e apart ]; do sleep 0.01; done;"
)

fenced = pytest.mark.skipif(
    shutil.which("bwrap") is None, reason="needs bubblewrap: apt-get install bubblewrap"
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A linked worktree, as a run has it."""
    repo, tree = tmp_path / "repo", tmp_path / "trees/tree"
    for words in (
        ("init", "-q", repo),
        ("-C", repo, "commit", "-q", "--allow-empty", "-m", "x"),
        ("-C", repo, "worktree", "add", "-q", "-b", "work", tree),
    ):
        subprocess.run(["git", *words], check=True, env={**os.environ, **GIT})
    (tree / "a.txt").write_text("alpha\n")
    return tree


def with_a_program(folder: Path, name: str, does: str) -> dict[str, str]:
    """The environment, with a program before all others."""
    folder.mkdir()
    (folder / name).write_text(f"#!/bin/sh\n{does}\n")
    (folder / name).chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


@asynccontextmanager
async def working(
    tree: Path,
    *restrictions: Restriction,
    mode: SandboxMode = "auto",
    environ: Mapping[str, str] = os.environ,
) -> AsyncIterator[Mapping[str, AgentTool]]:
    toolbox = WorkTools(PROCESSES, {**environ, **GIT}, mode)
    async with toolbox.opened(task_in(tree, *restrictions)) as kit:
        yield {tool.name: tool for tool in kit.tools}


async def sandbox_of(tree: Path, *restrictions: Restriction, mode: SandboxMode = "auto") -> str:
    async with WorkTools(PROCESSES, os.environ, mode).opened(task_in(tree, *restrictions)) as kit:
        return kit.sandbox


@fenced
class TestInForce:
    async def test_a_restriction_asks_for_it(self, tree: Path) -> None:
        assert await sandbox_of(tree) == ""
        assert await sandbox_of(tree, NO_SHELL) == ""
        for restriction in (NO_FILE_WRITES, NO_NETWORK, NO_VCS_WRITES):
            assert await sandbox_of(tree, restriction) == "bubblewrap"
            assert await sandbox_of(tree, restriction, mode="off") == ""
        assert await sandbox_of(tree, mode="require") == "bubblewrap"

    async def test_nothing_is_written_beside_the_tree(self, tree: Path, tmp_path: Path) -> None:
        places = [tmp_path / "x", tmp_path / "repo/x", "/etc/x", "/proc/sys/kernel/x", "/run/x"]
        async with working(tree, mode="require") as tools:
            for place in places:
                await refusal(tools, "shell", command=f"echo x > {place}")
            await refusal(tools, "shell", command=f"echo x > /proc/{os.getpid()}/root{tmp_path}/x")
            again = f"mount -o remount,bind,rw / && echo x > {tmp_path}/x"
            await refusal(tools, "shell", command=again)
            await use(tools, "shell", command="mkdir new; echo x > new/x; echo x > a.txt")
        assert not (tmp_path / "x").exists()
        assert (tree / "a.txt").read_text() == (tree / "new/x").read_text() == "x\n"

    async def test_no_file_writes_is_true_of_the_shell(self, tree: Path) -> None:
        async with working(tree, NO_FILE_WRITES) as tools:
            assert "Read-only" in await refusal(tools, "shell", command="echo x > a.txt")
            assert "Read-only" in await refusal(tools, "shell", command="echo x > new.txt")
            assert await use(tools, "shell", command="cat a.txt") == "alpha"
        assert sorted(path.name for path in tree.iterdir()) == [".git", "a.txt"]

    @pytest.mark.parametrize("mode", ["auto", "require"])
    async def test_nothing_is_written_in_the_repository(
        self, tree: Path, tmp_path: Path, mode: SandboxMode
    ) -> None:
        def state() -> str:
            words = ["git", "-C", str(tmp_path / "repo"), "for-each-ref"]
            return subprocess.run(words, check=True, capture_output=True, text=True).stdout

        before = state()
        restrictions = [NO_VCS_WRITES] if mode == "auto" else []
        async with working(tree, *restrictions, mode=mode) as tools:
            for command in (
                *("git add a.txt", "git commit -q --allow-empty -m y", "git branch other"),
                *("git config a.b c", "echo x > .git", "rm .git", "mv .git g", "rm -rf .git"),
            ):
                await refusal(tools, "shell", command=command)
            assert "?? a.txt" in await use(tools, "shell", command="git status --short")
            assert await use(tools, "search", pattern="alph") == "a.txt:1:alpha"
        assert state() == before
        assert (tree / ".git").read_text().startswith("gitdir: ")

    async def test_nobody_is_reached_without_the_network(self, tree: Path) -> None:
        async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        command = f"bash -c 'echo > /dev/tcp/127.0.0.1/{port}'"
        async with server:
            async with working(tree, NO_VCS_WRITES) as tools:
                await use(tools, "shell", command=command)
                services = await use(tools, "shell", command="ls -A /run")
                assert services in ("[no output]", "systemd", "resolvconf")
            async with working(tree, NO_NETWORK) as tools:
                assert "refused" in await refusal(tools, "shell", command=command)
                assert await use(tools, "shell", command="ls -A /run") == "[no output]"

    async def test_its_temporary_folder_lasts_as_long_as_the_task(self, tree: Path) -> None:
        async with working(tree, NO_FILE_WRITES) as tools:
            assert "$TMPDIR can always be written" in tools["shell"].description
            folder = await use(tools, "shell", command="echo x > $TMPDIR/x; echo $TMPDIR")
            assert await use(tools, "shell", command="cat $TMPDIR/x") == "x"
            made = await use(tools, "shell", command="mkdir $XDG_CACHE_HOME && mktemp")
            assert Path(made).parent == Path(folder)
            async with working(tree, NO_FILE_WRITES) as others:
                await refusal(others, "shell", command=f"echo x > {folder}/x")
        assert not Path(folder).exists()

    async def test_a_search_is_in_it_too(self, tree: Path, tmp_path: Path) -> None:
        git = shutil.which("git")
        environ = with_a_program(tmp_path / "bin", "git", f'touch {tmp_path}/x; exec {git} "$@"')
        modes: tuple[tuple[SandboxMode, bool], ...] = (("require", False), ("off", True))
        for mode, is_free in modes:
            async with working(tree, mode=mode, environ=environ) as tools:
                assert await use(tools, "search", pattern="alph") == "a.txt:1:alpha"
            assert (tmp_path / "x").exists() is is_free

    async def test_devices_work(self, tree: Path) -> None:
        async with working(tree, NO_FILE_WRITES) as tools:
            command = "head -c 1 /dev/urandom > /dev/null; echo x > /dev/shm/x; test -d /proc/self"
            await use(tools, "shell", command=command)
            look = "find /dev -type b -o -name mem -o -name kmsg"
            assert await use(tools, "shell", command=look) == "[no output]"

    async def test_other_processes_keep_their_secrets(self, tree: Path) -> None:
        command = f"cat /proc/{os.getpid()}/environ"
        async with working(tree, mode="off") as tools:
            await use(tools, "shell", command=command)
        async with working(tree, mode="require") as tools:
            await refusal(tools, "shell", command=command)

    async def test_agents_do_not_reach_into_each_others_trees(
        self, tree: Path, tmp_path: Path
    ) -> None:
        other = tmp_path / "other"
        other.mkdir()
        theirs = task_in(other, NO_VCS_WRITES)
        async with WorkTools(PROCESSES, os.environ).opened(theirs) as kit:
            shell = next(tool for tool in kit.tools if tool.name == "shell")
            command = f"{LEAVING} echo $! > pid"
            await shell.handler({"command": command})
        pid = (other / "pid").read_text().strip()
        async with working(tree, NO_VCS_WRITES) as tools:
            await refusal(tools, "shell", command=f"echo x > /proc/{pid}/root{other}/x")
        await PROCESSES.end(theirs.marker)
        assert not (other / "x").exists()

    async def test_what_is_left_behind_is_found_and_ended(self, tree: Path) -> None:
        task = task_in(tree, NO_VCS_WRITES)
        async with WorkTools(PROCESSES, os.environ).opened(task) as kit:
            shell = next(tool for tool in kit.tools if tool.name == "shell")
            answer = await shell.handler({"command": LEAVING})
        assert not answer.is_error
        found = await PROCESSES.end(task.marker)
        assert any("sleep 300" in survivor.command for survivor in found)
        assert await PROCESSES.end(task.marker) == ()

    async def test_a_command_ends_with_its_bubblewrap(self, tree: Path) -> None:
        async with Sandbox("require", PROCESSES, os.environ).around(task_in(tree)) as enclosure:
            words = (*enclosure.prefix, "sh", "-c", "echo $$; exec sleep 300")
            with subprocess.Popen(words, stdout=subprocess.PIPE) as bwrap:
                assert bwrap.stdout is not None
                pid = int(bwrap.stdout.readline())
                bwrap.kill()
        async with asyncio.timeout(30):
            while this_table().look().keys() & {pid}:
                await asyncio.sleep(0.01)

    async def test_a_time_limit_ends_what_was_started(self, tree: Path) -> None:
        task = task_in(tree, NO_VCS_WRITES)
        async with WorkTools(PROCESSES, os.environ).opened(task) as kit:
            shell = next(tool for tool in kit.tools if tool.name == "shell")
            answer = await shell.handler({"command": "sleep 300; true", "timeout_s": 0.3})
        assert answer.text == "ended after 0.3 s"
        assert await PROCESSES.end(task.marker) == ()

    async def test_how_a_command_ended_is_told(self, tree: Path) -> None:
        async with working(tree, mode="require") as tools:
            assert "exit status 7" in await refusal(tools, "shell", command="exit 7")
            assert "exit status 143" in await refusal(tools, "shell", command="kill $$")

    async def test_readiness_says_when_it_is_used(self) -> None:
        said = [
            await WorkTools(PROCESSES, os.environ, mode).check_ready()
            for mode in ("auto", "require", "off")
        ]
        assert said == ["bubblewrap where a restriction asks for it", "bubblewrap", "no sandbox"]


async def test_a_probe_that_hangs_is_no_answer(tree: Path, tmp_path: Path) -> None:
    class Slow(SystemProcesses):
        async def run(self, command: Command, on_line: LineSink | None = None) -> Finished:
            return await super().run(replace(command, timeout_s=0.2), on_line)

    environ = with_a_program(tmp_path / "bin", "bwrap", "sleep 60")
    toolbox = WorkTools(Slow(grace_s=0.1), environ)
    with pytest.raises(UpstreamError, match="bwrap said nothing"):
        async with toolbox.opened(task_in(tree, NO_NETWORK)):
            pass


class TestNotThere:
    @pytest.fixture(params=["missing", "forbidden"])
    def environ(self, request: pytest.FixtureRequest, tmp_path: Path) -> Mapping[str, str]:
        if request.param == "missing":
            return {"PATH": str(tmp_path / "none")}
        says_no = "echo 'bwrap: No permissions.' >&2; exit 1"
        return with_a_program(tmp_path / "bin", "bwrap", says_no)

    async def test_the_shell_works_without_it_and_that_is_told(
        self, tree: Path, environ: Mapping[str, str]
    ) -> None:
        toolbox = WorkTools(PROCESSES, environ)
        async with toolbox.opened(task_in(tree, *(set(Restriction) - {NO_SHELL}))) as kit:
            assert kit.sandbox == ""
            assert kit.lack.startswith("bwrap ")
            shell = next(tool for tool in kit.tools if tool.name == "shell")
            assert not (await shell.handler({"command": "echo x > a.txt"})).is_error
        assert (tree / "a.txt").read_text() == "x\n"
        said = await toolbox.check_ready()
        assert said in (
            "no sandbox, bwrap is not on PATH (`apt-get install bubblewrap`)",
            "no sandbox, bwrap does not work here: bwrap: No permissions"
            " (`apt-get install bubblewrap`)",
        )

    async def test_who_requires_it_does_not_work(
        self, tree: Path, environ: Mapping[str, str]
    ) -> None:
        toolbox = WorkTools(PROCESSES, environ, "require")
        with pytest.raises(InputError, match="the sandbox is required, and bwrap"):
            await toolbox.check_ready()
        with pytest.raises(InputError, match="the sandbox is required, and bwrap"):
            async with toolbox.opened(task_in(tree)):
                pass


async def test_it_is_tried_once(tree: Path, tmp_path: Path) -> None:
    environ = with_a_program(tmp_path / "bin", "bwrap", f"echo x >> {tmp_path}/tried; exit 1")
    toolbox = WorkTools(PROCESSES, environ)
    for _ in range(3):
        await toolbox.check_ready()
        async with toolbox.opened(task_in(tree, NO_NETWORK)):
            pass
    assert (tmp_path / "tried").read_text() == "x\n"
