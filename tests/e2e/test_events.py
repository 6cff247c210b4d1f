"""`--events`, for programs that watch."""

from __future__ import annotations

import json
import subprocess
import sys

from e2e.conftest import Play, prepared
from e2e.world import World


def test_each_line_is_an_event(world: World, play: Play) -> None:
    done = play(more=("--events", "-"))
    assert done.status == 0
    events = [json.loads(line) for line in done.out.splitlines()]
    kinds = [event["kind"] for event in events]
    assert kinds[0] == "run_started"
    assert kinds[-1] == "run_ended"
    assert kinds.count("step_finished") == 2
    assert "agl/x" in done.err


def test_a_file_gets_the_lines_and_standard_output_stays_one_document(
    world: World, play: Play
) -> None:
    file = world.folder / "events.jsonl"
    done = play(more=("--events", str(file), "--json"))
    assert done.json["result"] == "landed"
    assert all(json.loads(line) for line in file.read_text().splitlines())


def test_a_reader_that_went_away_stops_no_run(world: World) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "agl", *prepared(world), "--events", "-"],
        cwd=world.repo,
        env=world.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(30) == 0
    assert world.git("show", "agl/x:a.txt") == "a"


def test_two_things_on_standard_output_are_refused(world: World, play: Play) -> None:
    assert play(more=("--events", "-", "--json")).status == 2
    assert not list(world.home.glob("projects/*/runs/x/run.json"))


def test_a_file_that_cannot_be_made_is_refused(world: World, play: Play) -> None:
    done = play(more=("--events", "/nowhere/events"))
    assert done.status == 2
    assert "/nowhere/events" in done.err
    assert not list(world.home.glob("projects/*/runs/x/run.json"))
