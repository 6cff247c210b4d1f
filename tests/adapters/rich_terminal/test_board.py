from __future__ import annotations

import pytest

from adapters.rich_terminal.story import BEGIN, NOW, at, spent, split
from agl.adapters.rich_terminal.board import Board, ScopeOnBoard, Stand
from agl.ports.events import KINDS, Event
from agl.ports.models import Usage


@pytest.fixture
def board() -> Board:
    return Board(BEGIN)


def heard(board: Board, *events: Event) -> ScopeOnBoard:
    for event in events:
        board.hear(event)
    return board.root


def stand_of_a(board: Board) -> Stand:
    return board.root.children["a"].stand


def test_a_step_at_work_is_known_with_model_activity_and_time(board: Board) -> None:
    root = heard(
        board,
        at(1, "step_started", about="fix", model="claude_code:opus"),
        at(2, "agent_acted", about="fix", activity="Edit:\n a.py"),
    )
    assert root.work is not None
    assert (root.work.name, root.work.model, root.work.activity) == ("fix", "opus", "Edit: a.py")
    assert (root.stand, root.elapsed_s(NOW)) == (Stand.WORKING, 94)


def test_what_it_works_with_and_waits_for_stands_there(board: Board) -> None:
    started = at(1, "step_started", about="fix", model="claude_code:opus")
    root = heard(board, started, at(2, "agent_equipped", about="fix", program="claude 9.1"))
    assert root.work is not None
    assert root.work.activity == "claude 9.1"
    heard(board, at(3, "waiting", about="fix", why="busy", until="12:04:05"))
    assert root.work.activity == "waits until 12:04:05"


def test_a_workflow_of_a_file_is_named_without_its_folders(board: Board) -> None:
    assert heard(board, at(0, "run_started", workflow="/a/b/flow.py:one")).name == "flow.py:one"


def test_finished_steps_are_a_number_and_the_last(board: Board) -> None:
    root = heard(
        board,
        at(0, "step_replayed", about="plan"),
        at(1, "step_started", about="fix", model="a:b"),
        at(4, "step_finished", about="fix", duration_s=3, usage=spent(5, 0.5)),
    )
    assert (root.work, root.finished, root.last) == (None, 2, "fix in 3.0s")


def test_an_unknown_price_makes_the_sum_unknown_and_never_nothing(board: Board) -> None:
    heard(board, at(1, "step_finished", about="a", usage=spent(5, 0.5)))
    heard(board, at(1, "step_finished", "left", "a", usage=spent(7, None)))
    assert board.root.usage == Usage(5, cost_usd=0.5)
    assert board.usage == Usage(12, cost_usd=None)


def test_a_build_and_a_question_show(board: Board) -> None:
    story = [
        (at(0, "verify_started", about="make"), Stand.BUILDING),
        (at(1, "verify_finished", about="make", passed=False), Stand.IDLE),
        (at(2, "asked", about="Go on?"), Stand.ASKING),
        (at(3, "answered", about="Go on?"), Stand.IDLE),
    ]
    for event, stand in story:
        assert heard(board, event).stand is stand
    assert board.root.last == "build failed"


@pytest.mark.parametrize(
    ("kind", "stand", "is_done"),
    [
        ("landing_started", Stand.LANDING, False),
        ("landing_conflicted", Stand.CONFLICTED, False),
        ("landing_refused", Stand.REFUSED, False),
        ("landed", Stand.LANDED, True),
        ("landed_nothing", Stand.NOTHING, True),
        ("landing_aborted", Stand.ABORTED, True),
        ("landing_released", Stand.RELEASED, False),
    ],
)
def test_a_landing_is_told_of_the_parent_about_the_child(
    board: Board, kind: str, stand: Stand, is_done: bool
) -> None:
    heard(board, at(0, "child_started", "a/b"), at(3, kind, "a", "b"))
    child = board.root.children["a"].children["b"]
    assert (child.stand, child.is_done) == (stand, is_done)
    assert child.elapsed_s(NOW) == (3 if is_done else None)


@pytest.mark.parametrize(
    ("result", "stand"),
    [
        ("landed", Stand.LANDED),
        ("nothing", Stand.NOTHING),
        ("conflicted", Stand.CONFLICTED),
        ("refused", Stand.REFUSED),
        ("aborted", Stand.ABORTED),
        ("never heard of", Stand.IDLE),
    ],
)
def test_a_landing_that_was_recorded_shows_as_it_was(
    board: Board, result: str, stand: Stand
) -> None:
    heard(board, at(0, "landing_replayed", "", "a", result=result))
    assert board.root.children["a"].stand is stand


def test_a_scope_that_works_again_is_not_done(board: Board) -> None:
    heard(board, at(0, "landed", "", "a"), at(1, "step_started", "a", "fix", model="a:b"))
    assert stand_of_a(board) is Stand.WORKING
    heard(board, at(2, "step_finished", "a", "fix"))
    assert stand_of_a(board) is Stand.IDLE


def test_a_landing_that_waits_still_does_after_a_repair(board: Board) -> None:
    heard(board, at(0, "landing_conflicted", "", "a"))
    heard(board, at(1, "step_started", "a", "repair", model="a:b"))
    assert stand_of_a(board) is Stand.WORKING
    heard(board, at(2, "step_finished", "a", "repair"))
    assert stand_of_a(board) is Stand.CONFLICTED


def test_below_a_scope_that_is_done_nothing_shows(board: Board) -> None:
    heard(board, *split())
    names = [(depth, scope.name) for depth, scope in board.shown()]
    assert names == [(0, "split"), (1, "parser"), (2, "deep")] + [
        (1, name) for name in ("lexer", "漢字", "docs")
    ]
    heard(board, at(60, "landed", "", "parser"))
    heard(board, at(61, "step_stopped", "parser", "review"))
    assert "deep" in [scope.name for _, scope in board.shown()]
    heard(board, at(62, "landed", "", "parser"))
    assert "deep" not in [scope.name for _, scope in board.shown()]


def test_at_the_end_nothing_goes_on(board: Board) -> None:
    heard(board, *split(), at(90, "asked", "docs", "Go on?"))
    board.end(NOW)
    stands = [scope.stand for _, scope in board.shown()]
    assert not {Stand.WORKING, Stand.ASKING} & set(stands)
    assert stands.count(Stand.STOPPED) == 3
    assert board.root.elapsed_s(NOW) == 95


def test_details_that_are_missing_or_odd_do_no_harm(board: Board) -> None:
    odd = {"usage": {"input_tokens": "x", "cost_usd": "y"}, "duration_s": "z", "model": 5}
    for kind in (*KINDS, "landed", "landing_replayed", "never_heard_of"):
        board.hear(at(0, kind))
        board.hear(at(0, kind, "a//b", "x\x1b[31m", **odd))
    assert "\x1b" not in "".join(scope.name + scope.last for _, scope in board.shown())
