from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path

import pytest

from agl.adapters.system import SystemProcesses
from agl.adapters.system.table import this_table
from agl.ports.processes import (
    ATTEMPT_VARIABLE,
    RUN_VARIABLE,
    Command,
    Marker,
    NotStarted,
    Stream,
)
from agl.testing.contracts.processes import ProcessesContract

ENV = {"PATH": os.environ.get("PATH", os.defpath)}
TICK_S = 0.02


def shell(script: str, cwd: Path, **more: object) -> Command:
    return Command(("/bin/sh", "-c", script), cwd, ENV, **more)  # type: ignore[arg-type]


def python(script: str, cwd: Path, **more: object) -> Command:
    return Command((sys.executable, "-c", script), cwd, ENV, **more)  # type: ignore[arg-type]


@pytest.fixture
def processes() -> SystemProcesses:
    return SystemProcesses(grace_s=30, drain_s=0.2)


@pytest.fixture
def hasty() -> SystemProcesses:
    """For children that do not obey."""
    return SystemProcesses(grace_s=0.2, drain_s=0.2)


@pytest.fixture
async def marker(processes: SystemProcesses) -> AsyncIterator[Marker]:
    """A marker of its own; what still carries it after a test is ended."""
    marker = Marker(f"test-{secrets.token_hex(8)}")
    yield marker
    await processes.end(marker)


Leave = Callable[[Marker, str], "subprocess.Popen[bytes]"]


@pytest.fixture
def leave(tmp_path: Path) -> Iterator[Leave]:
    """Starts a shell that nobody waits for, as an agent may leave one behind."""
    left: list[subprocess.Popen[bytes]] = []

    def leave(marker: Marker, script: str) -> subprocess.Popen[bytes]:
        variables = {RUN_VARIABLE: marker.run}
        if marker.attempt is not None:
            variables[ATTEMPT_VARIABLE] = marker.attempt
        argv = ["/bin/sh", "-c", script]
        left.append(
            subprocess.Popen(argv, cwd=tmp_path, env=ENV | variables, start_new_session=True)
        )
        return left[-1]

    yield leave
    for each in left:
        each.kill()
        each.wait()


class TestSystemProcesses(ProcessesContract):
    @pytest.fixture
    def processes(self) -> SystemProcesses:
        return SystemProcesses(grace_s=30)

    @pytest.fixture
    def programs(self, tmp_path: Path) -> Mapping[str, Command]:
        scripts = {
            "greet": r"printf 'out\n\r\nno end'; printf 'err\n' >&2",
            "fail": "exit 3",
            "echo": "cat",
            "talk": "i=1; while [ $i -le 100000 ]; do echo $i; i=$((i+1)); done",
            "hang": "while :; do sleep 60; done",
        }
        return {name: shell(script, tmp_path) for name, script in scripts.items()}


def leaving(seconds: int) -> str:
    """Leaves a process behind, which is in a session of its own by then."""
    child = f"setsid sh -c ': >apart; exec sleep {seconds}'"
    return f"{child} & while ! [ -e apart ]; do sleep 0.01; done"


def alive(marker: Marker) -> set[int]:
    table = this_table()
    wanted = os.fsencode(f"{RUN_VARIABLE}={marker.run}")
    return {pid for pid in table.look() if wanted in table.environment(pid)}


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.005)


async def test_much_on_stderr_before_the_first_word_on_stdout_blocks_nothing(
    processes: SystemProcesses, tmp_path: Path
) -> None:
    script = "import sys; sys.stderr.write('e' * 300_000); sys.stdout.write('out')"
    finished = await processes.run(python(script, tmp_path, timeout_s=60))
    assert finished.stdout == b"out"
    assert finished.stderr_bytes == 300_000


async def test_five_megabytes_pass_through_and_their_end_is_kept(
    processes: SystemProcesses, tmp_path: Path
) -> None:
    script = "import sys; sys.stdout.write('x' * 5_000_000 + 'end')"
    finished = await processes.run(python(script, tmp_path, timeout_s=60, keep_bytes=1000))
    assert finished.status == 0
    assert finished.stdout == b"x" * 997 + b"end"
    assert finished.stdout_bytes == 5_000_003


@pytest.mark.parametrize("size", [70_000, 20_000_000])
async def test_a_line_of_any_length_is_one_line(
    processes: SystemProcesses, tmp_path: Path, size: int
) -> None:
    lines: list[bytes] = []
    script = f"import sys; sys.stdout.write('x' * {size} + chr(10) + 'next' + chr(10))"
    await processes.run(
        python(script, tmp_path, timeout_s=60, keep_bytes=10), lambda _, line: lines.append(line)
    )
    assert [len(line) for line in lines] == [size, 4]


async def test_a_line_is_handed_out_while_the_child_runs(
    processes: SystemProcesses, tmp_path: Path
) -> None:
    heard = asyncio.Event()
    run = asyncio.create_task(
        processes.run(shell("echo now; sleep 60", tmp_path), lambda *_: heard.set())
    )
    await asyncio.wait_for(heard.wait(), 30)
    run.cancel()
    await asyncio.wait({run})


async def test_what_is_kept_is_bounded_while_it_runs(
    processes: SystemProcesses, tmp_path: Path
) -> None:
    command = Command(("head", "-c", "50000000", "/dev/zero"), tmp_path, ENV, keep_bytes=1000)
    tracemalloc.start()
    try:
        finished = await processes.run(command)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert finished.stdout_bytes == 50_000_000
    assert peak_bytes < 5_000_000


async def test_a_child_without_input_reads_nothing(
    processes: SystemProcesses, tmp_path: Path
) -> None:
    finished = await processes.run(shell("cat; echo done", tmp_path, timeout_s=60))
    assert finished.stdout == b"done\n"


async def test_a_child_may_leave_its_input_unread(
    processes: SystemProcesses, tmp_path: Path
) -> None:
    command = shell("exec <&-; echo done", tmp_path, stdin=b"x" * 5_000_000, timeout_s=60)
    assert (await processes.run(command)).stdout == b"done\n"


async def test_input_that_cannot_be_stored_is_a_failure_to_start(
    processes: SystemProcesses, tmp_path: Path
) -> None:
    script = """
import asyncio, resource, signal
from pathlib import Path
from agl.adapters.system import SystemProcesses
from agl.ports.processes import Command, NotStarted
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
try:
    asyncio.run(SystemProcesses().run(Command(("cat",), Path("/"), {}, stdin=b"x" * 100_000)))
except NotStarted as error:
    print(error, error.missing)
"""
    finished = await processes.run(python(script, tmp_path, timeout_s=60))
    assert b"cannot start 'cat': its input cannot be stored" in finished.stdout
    assert finished.stdout.endswith(b"False\n")


async def test_a_child_that_writes_while_it_is_fed_blocks_nothing(
    processes: SystemProcesses, tmp_path: Path
) -> None:
    feed = b"x" * 3_000_000
    finished = await processes.run(
        shell("cat; cat", tmp_path, stdin=feed, timeout_s=60, keep_bytes=5_000_000)
    )
    assert finished.stdout == feed


async def test_the_environment_is_the_given_one_and_the_marker(
    processes: SystemProcesses, tmp_path: Path
) -> None:
    env = {"A": "b", RUN_VARIABLE: "outer", ATTEMPT_VARIABLE: "outer", "PATH": ENV["PATH"]}
    command = Command(("env",), tmp_path, env, marker=Marker("mine"))
    lines = set((await processes.run(command)).stdout.decode().splitlines())
    assert lines == {"A=b", f"PATH={ENV['PATH']}", f"{RUN_VARIABLE}=mine"}
    command = Command(("env",), tmp_path, {}, marker=Marker("mine", "7"))
    lines = set((await processes.run(command)).stdout.decode().splitlines())
    assert lines == {f"{RUN_VARIABLE}=mine", f"{ATTEMPT_VARIABLE}=7"}


@pytest.mark.parametrize("dies_with_agl", [False, True])
async def test_what_cannot_be_executed_is_not_missing(
    processes: SystemProcesses, tmp_path: Path, dies_with_agl: bool
) -> None:
    (tmp_path / "text").write_text("no program")
    command = Command(("./text",), tmp_path, ENV, dies_with_agl=dies_with_agl)
    with pytest.raises(NotStarted, match="Permission denied") as failure:
        await processes.run(command)
    assert not failure.value.missing


@pytest.mark.parametrize("dies_with_agl", [False, True])
async def test_a_folder_that_is_not_there_is_named(
    processes: SystemProcesses, tmp_path: Path, dies_with_agl: bool
) -> None:
    command = Command(("true",), tmp_path / "gone", ENV, dies_with_agl=dies_with_agl)
    with pytest.raises(NotStarted, match="gone") as failure:
        await processes.run(command)
    assert not failure.value.missing


@pytest.mark.parametrize("argv", [("tr\0ue",), ("true", "a\0b"), ("true", "x" * 5_000_000)])
async def test_an_impossible_argument_is_a_failure_to_start(
    processes: SystemProcesses, tmp_path: Path, argv: tuple[str, ...]
) -> None:
    with pytest.raises(NotStarted):
        await processes.run(Command(argv, tmp_path, ENV))


async def test_a_child_has_a_session_of_its_own(processes: SystemProcesses, tmp_path: Path) -> None:
    script = "import os; print(os.getsid(0) == os.getpgid(0) == os.getpid())"
    assert (await processes.run(python(script, tmp_path))).stdout == b"True\n"


async def test_a_status_is_right_where_child_signals_are_ignored(
    processes: SystemProcesses, tmp_path: Path
) -> None:
    script = """
import asyncio, signal
from pathlib import Path
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
from agl.adapters.system import SystemProcesses
from agl.ports.processes import Command
run = SystemProcesses().run(Command(("/bin/sh", "-c", "exit 3"), Path("/"), {}))
print(asyncio.run(run).status)
"""
    assert (await processes.run(python(script, tmp_path, timeout_s=60))).stdout == b"3\n"


async def test_a_child_is_waited_for_where_the_kernel_hands_out_no_pidfd(
    processes: SystemProcesses, tmp_path: Path
) -> None:
    script = """
import asyncio, os
from pathlib import Path
if hasattr(os, "pidfd_open"):
    del os.pidfd_open
from agl.adapters.system import SystemProcesses
from agl.ports.processes import Command
command = Command(("/bin/sh", "-c", "echo out; exit 3"), Path("/"), {})
limited = Command(("sleep", "60"), Path("/"), dict(os.environ), timeout_s=0.1)
async def main():
    for finished in await asyncio.gather(*(SystemProcesses().run(command) for _ in range(20))):
        assert (finished.status, finished.stdout) == (3, b"out\\n")
    print((await SystemProcesses().run(limited)).status)
asyncio.run(main())
"""
    finished = await processes.run(python(script, tmp_path, timeout_s=60))
    assert finished.stdout == b"%d\n" % -signal.SIGTERM, finished.stderr


async def test_a_grandchild_that_holds_the_pipe_does_not_hold_the_result(
    processes: SystemProcesses, tmp_path: Path, marker: Marker
) -> None:
    command = shell(f"{leaving(60)}; echo out; exit 3", tmp_path, marker=marker)
    finished = await asyncio.wait_for(processes.run(command), 30)
    assert (finished.status, finished.stdout) == (3, b"out\n")
    assert not finished.timed_out
    assert finished.duration_s < 30


async def test_what_a_grandchild_says_within_the_grace_is_heard(tmp_path: Path) -> None:
    finished = await SystemProcesses(drain_s=30).run(
        shell("(sleep 0.05; echo late) & echo out", tmp_path)
    )
    assert finished.stdout == b"out\nlate\n"


async def test_the_group_of_a_child_that_has_exited_is_ended(
    processes: SystemProcesses, tmp_path: Path, marker: Marker
) -> None:
    await processes.run(shell("sleep 60 & exit 0", tmp_path, marker=marker))
    assert alive(marker) == set()


async def test_a_job_that_nobody_waits_for_is_ended_with_the_time_limit(
    processes: SystemProcesses, tmp_path: Path, marker: Marker
) -> None:
    script = """
import os
if os.fork() == 0:
    if os.fork() == 0:
        os.setpgid(0, 0)
        os.execvp("sleep", ["sleep", "60"])
    os._exit(0)
os.wait()
os.execvp("sleep", ["sleep", "60"])
"""
    finished = await processes.run(python(script, tmp_path, marker=marker, timeout_s=1.5))
    assert finished.timed_out
    assert alive(marker) == set()


async def test_a_shell_that_started_a_shell_is_gone_after_the_time_limit(
    processes: SystemProcesses, tmp_path: Path, marker: Marker
) -> None:
    script = "sh -c 'while :; do echo x >>file; sleep 0.01; done'; true"
    finished = await processes.run(shell(script, tmp_path, marker=marker, timeout_s=1))
    assert finished.timed_out
    assert finished.status == -signal.SIGTERM
    assert alive(marker) == set()
    size = (tmp_path / "file").stat().st_size
    await asyncio.sleep(3 * TICK_S)
    assert (tmp_path / "file").stat().st_size == size


async def test_a_child_that_ignores_term_is_killed(
    hasty: SystemProcesses, tmp_path: Path, marker: Marker
) -> None:
    script = "trap '' TERM; while :; do sleep 60; done"
    finished = await hasty.run(shell(script, tmp_path, marker=marker, timeout_s=1))
    assert finished.status == -signal.SIGKILL
    assert finished.duration_s >= 1 + 0.2
    assert alive(marker) == set()


async def test_a_child_gets_its_grace_to_put_things_in_order(
    processes: SystemProcesses, tmp_path: Path
) -> None:
    script = "trap 'sleep 0.05; echo bye; exit 7' TERM; echo hi; while :; do sleep 0.01; done"
    finished = await processes.run(shell(script, tmp_path, timeout_s=1))
    assert finished.timed_out
    assert (finished.status, finished.stdout) == (7, b"hi\nbye\n")


async def test_a_descendant_without_marker_and_session_is_ended_with_a_living_child(
    hasty: SystemProcesses, tmp_path: Path
) -> None:
    stubborn = """trap '' TERM; while :; do sleep 60; done"""
    script = f'setsid env -i /bin/sh -c "{stubborn}" & echo $!; wait'
    finished = await hasty.run(shell(script, tmp_path, timeout_s=1))
    assert int(finished.stdout) not in this_table().look()


async def test_a_cancelled_child_is_gone_when_the_cancellation_arrives(
    processes: SystemProcesses, tmp_path: Path, marker: Marker
) -> None:
    script = "trap 'sleep 0.1; echo late >>file; exit' TERM; : >file; while :; do sleep 0.01; done"
    run = asyncio.create_task(processes.run(shell(script, tmp_path, marker=marker)))
    await until((tmp_path / "file").exists)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert alive(marker) == set()
    assert (tmp_path / "file").read_text() == "late\n"


async def test_a_second_cancellation_does_not_leave_early(
    processes: SystemProcesses, tmp_path: Path, marker: Marker
) -> None:
    script = "trap 'sleep 0.1; echo late >>file; exit' TERM; : >file; while :; do sleep 0.01; done"
    run = asyncio.create_task(processes.run(shell(script, tmp_path, marker=marker)))
    await until((tmp_path / "file").exists)
    for _ in range(3):
        run.cancel()
        await asyncio.sleep(0.01)
    with pytest.raises(asyncio.CancelledError):
        await run
    assert alive(marker) == set()
    assert (tmp_path / "file").read_text() == "late\n"


async def test_a_cancellation_after_the_exit_is_not_swallowed(
    tmp_path: Path, marker: Marker
) -> None:
    processes = SystemProcesses(drain_s=3)
    heard = asyncio.Event()
    command = shell(f"{leaving(60)}; echo out", tmp_path, marker=marker)
    run = asyncio.create_task(processes.run(command, lambda *_: heard.set()))
    await heard.wait()
    await asyncio.sleep(0.05)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


async def test_an_event_loop_that_shuts_down_kills_at_once(
    processes: SystemProcesses, tmp_path: Path, marker: Marker
) -> None:
    script = """
import asyncio, os, sys
from pathlib import Path
from agl.adapters.system import SystemProcesses
from agl.ports.processes import Command, Marker
async def main():
    command = Command(("/bin/sh", "-c", "trap '' TERM; : >file; while :; do sleep 60; done"),
                      Path.cwd(), dict(os.environ), marker=Marker(sys.argv[1]))
    run = asyncio.create_task(SystemProcesses(grace_s=60).run(command))
    while not Path("file").exists():
        await asyncio.sleep(0.01)
    run.cancel()
    await asyncio.sleep(0.05)
asyncio.run(main())
"""
    agl = Command((sys.executable, "-c", script, marker.run), tmp_path, ENV, timeout_s=60)
    assert not (await processes.run(agl)).timed_out
    await until(lambda: not alive(marker))


async def test_a_failing_sibling_in_a_group_of_tasks_ends_the_child(
    processes: SystemProcesses, tmp_path: Path, marker: Marker
) -> None:
    async def fail() -> None:
        await until((tmp_path / "file").exists)
        raise ZeroDivisionError

    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(processes.run(shell(": >file; sleep 60", tmp_path, marker=marker)))
            group.create_task(fail())

    with pytest.raises(ExceptionGroup):
        await both()
    assert alive(marker) == set()


async def test_a_process_in_another_session_is_found_by_its_marker_and_ended(
    processes: SystemProcesses, tmp_path: Path, marker: Marker
) -> None:
    await processes.run(shell(f"{leaving(600)}; exit 0", tmp_path, marker=marker))
    (survivor,) = alive(marker)
    await until(lambda: this_table().command(survivor) == "sleep 600")
    (ended,) = await processes.end(marker)
    assert (ended.pid, ended.command) == (survivor, "sleep 600")
    assert alive(marker) == set()
    assert await processes.end(marker) == ()


async def test_survivors_that_ignore_term_are_killed(
    hasty: SystemProcesses, tmp_path: Path, marker: Marker, leave: Leave
) -> None:
    leave(marker, "trap '' TERM; : >file; while :; do sleep 60; done")
    await until((tmp_path / "file").exists)
    assert len(await hasty.end(marker)) >= 1
    assert alive(marker) == set()


async def test_the_children_of_a_survivor_go_with_it(
    processes: SystemProcesses, tmp_path: Path, marker: Marker, leave: Leave
) -> None:
    leave(marker, "setsid env -i sleep 60 & echo $! >file; wait")
    await until(lambda: (tmp_path / "file").exists() and (tmp_path / "file").read_text())
    pid = int((tmp_path / "file").read_text())
    await processes.end(marker)
    assert pid not in this_table().look()


async def test_only_the_marked_ones_are_ended(
    processes: SystemProcesses, marker: Marker, leave: Leave
) -> None:
    others = [
        leave(Marker(marker.run, "11"), "exec sleep 60"),
        leave(Marker(marker.run), "exec sleep 60"),
        leave(Marker(f"{marker.run}-longer", "1"), "exec sleep 60"),
        leave(Marker(marker.run[:-1], "1"), "exec sleep 60"),
    ]
    mine = leave(Marker(marker.run, "1"), "exec sleep 60")
    await until(lambda: {each.pid for each in (mine, *others[:2])} == alive(marker))
    assert [each.pid for each in await processes.end(Marker(marker.run, "1"))] == [mine.pid]
    assert [each.poll() for each in others] == [None] * 4
    assert {each.pid for each in await processes.end(marker)} == {each.pid for each in others[:2]}
    assert [each.poll() for each in others[2:]] == [None] * 2


async def test_neither_this_process_nor_its_ancestors_are_ended(
    processes: SystemProcesses, tmp_path: Path, marker: Marker
) -> None:
    inner = """
import asyncio, sys
from agl.adapters.system import SystemProcesses
from agl.ports.processes import Marker
print(len(asyncio.run(SystemProcesses().end(Marker(sys.argv[1])))))
"""
    script = f'{sys.executable} -c "$0" {marker.run}; echo still here'
    command = Command(("/bin/sh", "-c", script, inner), tmp_path, ENV, marker=marker)
    assert (await processes.run(command)).stdout == b"0\nstill here\n"


async def test_a_zombie_is_no_survivor(
    processes: SystemProcesses, tmp_path: Path, marker: Marker
) -> None:
    script = "import os, time; pid = os.fork(); pid or os._exit(0); print(pid, flush=True); "
    script += "time.sleep(60)"
    heard: list[bytes] = []
    run = asyncio.create_task(
        processes.run(python(script, tmp_path, marker=marker), lambda _, line: heard.append(line))
    )
    await until(lambda: heard)
    zombie = int(heard[0])
    await until(lambda: zombie not in this_table().look())
    assert zombie not in {survivor.pid for survivor in await processes.end(marker)}
    await run


async def test_who_stands_in_a_folder_is_named_and_left_alone(
    processes: SystemProcesses, tmp_path: Path, marker: Marker
) -> None:
    tree = tmp_path / "tree"
    (tree / "below").mkdir(parents=True)
    (tmp_path / "tree-2").mkdir()
    (tmp_path / "link").symlink_to(tree)
    standing = [
        subprocess.Popen(["sleep", "60"], cwd=folder)
        for folder in (tree, tree / "below", tmp_path / "tree-2", tmp_path)
    ]
    try:
        for folder in (tree, tmp_path / "link"):
            found = processes.standing_in(folder)
            assert [survivor.pid for survivor in found] == [one.pid for one in standing[:2]]
            assert {survivor.command for survivor in found} == {"sleep 60"}
        assert [one.poll() for one in standing] == [None] * 4
    finally:
        for one in standing:
            one.kill()
            one.wait()


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv of util-linux")
async def test_a_child_that_dies_with_agl_does(
    processes: SystemProcesses, tmp_path: Path, marker: Marker
) -> None:
    script = f"""
import asyncio, os
from pathlib import Path
from agl.adapters.system import SystemProcesses
from agl.ports.processes import Command, Marker
command = Command(("/bin/sh", "-c", "echo $$; exec sleep 60"), Path("/"), dict(os.environ),
                  marker=Marker({marker.run!r}), dies_with_agl=True)
asyncio.run(SystemProcesses().run(command, lambda _, line: print(line.decode(), flush=True)))
"""
    agl = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert agl.stdout is not None
    with agl:
        pid = int(agl.stdout.readline())
        agl.kill()
    await until(lambda: pid not in this_table().look())


async def test_no_file_stays_open(processes: SystemProcesses, tmp_path: Path) -> None:
    descriptors = Path("/dev/fd")
    await processes.run(shell("cat", tmp_path, stdin=b"x"))
    before = len(list(descriptors.iterdir()))
    for _ in range(5):
        await processes.run(shell("cat", tmp_path, stdin=b"x"))
        with pytest.raises(NotStarted):
            await processes.run(Command(("agl-no-such-program",), tmp_path, ENV, stdin=b"x"))
    assert len(list(descriptors.iterdir())) == before


async def test_lines_of_both_streams_are_told_apart(
    processes: SystemProcesses, tmp_path: Path
) -> None:
    heard = set()
    command = shell("echo a; echo b >&2", tmp_path)
    await processes.run(command, lambda stream, line: heard.add((stream, line)))
    assert heard == {(Stream.STDOUT, b"a"), (Stream.STDERR, b"b")}
