"""What every `Processes` promises."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from agl.ports.processes import Command, Marker, NotStarted, Processes, Stream

PROGRAMS = {
    "greet": "writes `out\\n`, `\\r\\n` and `no end` to its stdout and `err\\n` to its stderr",
    "fail": "ends with the status 3",
    "echo": "writes its stdin to its stdout",
    "talk": "writes the numbers from 1 to 100000 to its stdout, a line each",
    "hang": "never ends, unless by TERM",
}


class ProcessesContract:
    """Subclass it and give the fixtures `processes` and `programs`: a command for each of
    PROGRAMS."""

    @pytest.fixture
    def processes(self) -> Processes:
        raise NotImplementedError

    @pytest.fixture
    def programs(self, tmp_path: Path) -> Mapping[str, Command]:
        raise NotImplementedError

    async def test_the_output_of_each_stream_is_kept(
        self, processes: Processes, programs: Mapping[str, Command]
    ) -> None:
        finished = await processes.run(programs["greet"])
        assert finished.status == 0
        assert finished.stdout == b"out\n\r\nno end"
        assert finished.stderr == b"err\n"
        assert (finished.stdout_bytes, finished.stderr_bytes) == (12, 4)
        assert not finished.timed_out
        assert finished.duration_s > 0

    async def test_each_line_is_handed_out_without_its_end(
        self, processes: Processes, programs: Mapping[str, Command]
    ) -> None:
        lines: list[tuple[Stream, bytes]] = []
        await processes.run(programs["greet"], lambda stream, line: lines.append((stream, line)))
        out = [line for stream, line in lines if stream is Stream.STDOUT]
        assert out == [b"out", b"", b"no end"]
        assert [line for stream, line in lines if stream is Stream.STDERR] == [b"err"]

    async def test_a_carriage_return_before_the_end_of_a_line_belongs_to_the_end(
        self, processes: Processes, programs: Mapping[str, Command]
    ) -> None:
        lines: list[bytes] = []
        await processes.run(
            replace(programs["echo"], stdin=b"a\r\r\n\n\rb\r"), lambda _, line: lines.append(line)
        )
        assert lines == [b"a\r", b"", b"\rb\r"]

    async def test_a_status_is_a_result(
        self, processes: Processes, programs: Mapping[str, Command]
    ) -> None:
        assert (await processes.run(programs["fail"])).status == 3

    @pytest.mark.parametrize("size", [0, 1, 1_000_000])
    async def test_a_child_is_fed(
        self, processes: Processes, programs: Mapping[str, Command], size: int
    ) -> None:
        stdin = b"x" * size
        finished = await processes.run(replace(programs["echo"], stdin=stdin))
        assert finished.stdout == stdin

    @pytest.mark.parametrize("keep_bytes", [0, 1, 1000])
    async def test_the_end_of_the_output_is_kept_and_all_of_it_counted(
        self, processes: Processes, programs: Mapping[str, Command], keep_bytes: int
    ) -> None:
        said = b"".join(b"%d\n" % n for n in range(1, 100001))
        lines: list[bytes] = []
        finished = await processes.run(
            replace(programs["talk"], keep_bytes=keep_bytes), lambda _, line: lines.append(line)
        )
        assert finished.stdout == said[len(said) - keep_bytes :]
        assert finished.stdout_bytes == len(said)
        assert lines == said.splitlines()

    async def test_a_missing_program_is_missing(
        self, processes: Processes, programs: Mapping[str, Command]
    ) -> None:
        for dies_with_agl in (False, True):
            command = replace(
                programs["greet"], argv=("agl-no-such-program",), dies_with_agl=dies_with_agl
            )
            with pytest.raises(NotStarted, match="agl-no-such-program") as failure:
                await processes.run(command)
            assert failure.value.missing

    async def test_where_there_is_no_folder_nothing_starts(
        self, processes: Processes, programs: Mapping[str, Command]
    ) -> None:
        command = programs["greet"]
        with pytest.raises(NotStarted, match="gone") as failure:
            await processes.run(replace(command, cwd=command.cwd / "gone"))
        assert not failure.value.missing

    async def test_the_time_limit_ends_a_child(
        self, processes: Processes, programs: Mapping[str, Command]
    ) -> None:
        async with asyncio.timeout(60):
            finished = await processes.run(replace(programs["hang"], timeout_s=0.5))
        assert finished.timed_out
        assert finished.status == -signal.SIGTERM

    async def test_a_cancelled_run_is_cancelled(
        self, processes: Processes, programs: Mapping[str, Command]
    ) -> None:
        run = asyncio.create_task(processes.run(programs["hang"]))
        await _until_standing(processes, programs["hang"].cwd)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(run, 60)

    async def test_many_children_run_at_once(
        self, processes: Processes, programs: Mapping[str, Command]
    ) -> None:
        feeds = [b"%d" % n for n in range(20)]
        runs = (processes.run(replace(programs["echo"], stdin=feed)) for feed in feeds)
        assert [finished.stdout for finished in await asyncio.gather(*runs)] == feeds

    async def test_what_carries_the_marker_is_ended(
        self, processes: Processes, programs: Mapping[str, Command], tmp_path: Path
    ) -> None:
        mine, other = (f"agl-contract-{tmp_path}-{name}" for name in ("mine", "other"))
        markers = [Marker(mine, "1"), Marker(mine, "2"), Marker(mine), Marker(other, "1"), None]
        runs = []
        for number, marker in enumerate(markers):
            folder = tmp_path / f"folder-{number}"
            folder.mkdir()
            command = replace(programs["hang"], cwd=folder, marker=marker)
            runs.append(asyncio.create_task(processes.run(command)))
            await _until_standing(processes, folder)
        try:
            for marker, ended in ((Marker(mine, "1"), runs[:1]), (Marker(mine), runs[1:3])):
                assert await processes.end(marker)
                finished = await asyncio.wait_for(asyncio.gather(*ended), 60)
                assert {one.status for one in finished} == {-signal.SIGTERM}
            assert await processes.end(Marker(mine)) == ()
            assert not any(run.done() for run in runs[3:])
        finally:
            for run in runs:
                run.cancel()
            await asyncio.wait(runs)

    async def test_who_stands_in_a_folder_or_below_is_named(
        self, processes: Processes, programs: Mapping[str, Command], tmp_path: Path
    ) -> None:
        (tmp_path / "tree" / "below").mkdir(parents=True)
        (tmp_path / "tree-2").mkdir()
        command = programs["hang"]
        runs = [
            asyncio.create_task(processes.run(replace(command, cwd=tmp_path / folder)))
            for folder in ("tree", "tree/below")
        ]
        try:
            for folder in ("tree", "tree/below"):
                await _until_standing(processes, tmp_path / folder)
            below = {one.pid for one in processes.standing_in(tmp_path / "tree" / "below")}
            standing = {one.pid for one in processes.standing_in(tmp_path / "tree")}
            assert below < standing
            assert processes.standing_in(tmp_path / "tree-2") == ()
        finally:
            for run in runs:
                run.cancel()
            await asyncio.wait(runs)
        assert processes.standing_in(tmp_path / "tree") == ()

    async def test_no_process_carries_a_marker_of_nobody(self, processes: Processes) -> None:
        assert await processes.end(Marker("agl-nobody-has-this-marker")) == ()

    def test_nobody_stands_in_a_new_folder(self, processes: Processes, tmp_path: Path) -> None:
        assert processes.standing_in(tmp_path) == ()


async def _until_standing(processes: Processes, folder: Path) -> None:
    async with asyncio.timeout(60):
        while not processes.standing_in(folder):
            await asyncio.sleep(0.001)
