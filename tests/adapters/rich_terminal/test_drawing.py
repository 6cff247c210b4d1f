from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from adapters.rich_terminal.story import BEGIN, NOW, at, spent, split
from agl.adapters.rich_terminal.board import Board
from agl.adapters.rich_terminal.drawing import clock, cost, frame, tokens
from agl.adapters.rich_terminal.lines import Frame, Tone, text_of
from agl.adapters.rich_terminal.screens import lines_of
from agl.ports.models import Usage
from agl.ports.terminal import Row, Rows, Screen


@pytest.fixture
def board() -> Board:
    return told()


def told() -> Board:
    board = Board(BEGIN)
    for event in split():
        board.hear(event)
    return board


def texts(drawn: Frame) -> list[str]:
    return [text_of(spans) for spans in drawn]


def view(lines: int) -> Frame:
    return tuple(((f"view {number}", Tone.PLAIN),) for number in range(lines))


def test_before_anything_is_known_nothing_is_drawn() -> None:
    assert frame(Board(BEGIN), (), NOW, 80, 24) == ()


def test_with_little_room_what_works_is_shown_and_the_rest_counted(board: Board) -> None:
    assert texts(frame(board, (), NOW, 30, 7)) == [
        "split",
        "  parser  working   0:45",
        "    deep  working   0:35",
        "  lexer   conflict",
        "  漢字    working   1:22",
        "  docs    landed    0:30",
        "total  1:35  32.7k tok  $ unk…",
    ]
    assert texts(frame(board, (), NOW, 60, 5))[-2:] == [
        "… 3 more: 1 waiting, 1 working, 1 landed",
        "total  1:35  32.7k tok  $ unknown",
    ]
    assert texts(frame(board, (), NOW, 60, 1)) == ["total  1:35  32.7k tok  $ unknown"]
    assert frame(board, (), NOW, 60, 0) == ()


def test_the_workflows_own_view_gives_way_by_half(board: Board) -> None:
    drawn = texts(frame(board, view(50), NOW, 60, 11))
    assert drawn[:5] == ["view 0", "view 1", "view 2", "view 3", "… 46 more lines"]
    assert len(drawn) == 11
    assert len(frame(board, view(50), NOW, 60, None)) == 50 + 7 + 1


@given(
    st.integers(1, 130),
    st.integers(0, 40),
    st.lists(st.lists(st.text("a 漢\u200d👨e\u0301\n\t\x1b", max_size=9), max_size=4), max_size=4),
)
@settings(max_examples=150, deadline=None)
def test_a_frame_never_leaves_its_screen(width: int, height: int, cells: list[list[str]]) -> None:
    screen = Screen[object](
        "title 漢字", "text " * 9, Row(*(cells[0] if cells else ())), Rows(cells)
    )
    drawn = frame(told(), lines_of(screen, width), NOW, width, height)
    assert len(drawn) <= height
    assert all(cell_len(text) <= width and "\n" not in text for text in texts(drawn))


def test_time_shows_as_on_a_clock() -> None:
    assert [clock(one) for one in (-1, 9.9, 61, 3600)] == ["0:00", "0:09", "1:01", "1:00:00"]


def test_what_was_not_spent_is_blank_and_what_is_unknown_says_so() -> None:
    nothing, unknown = Usage(), Usage(5)
    assert (tokens(nothing), cost(nothing)) == ("", "")
    assert (tokens(unknown), cost(unknown)) == ("5 tok", "$ unknown")
    assert tokens(Usage(999_960, 0)) == "1.0M tok"
    assert [cost(Usage(1, cost_usd=usd)) for usd in (0.0, 0.0123, 1.5)] == [
        "$0.00",
        "$0.0123",
        "$1.50",
    ]


def test_a_frame_is_the_same_until_something_changes(board: Board) -> None:
    drawn = frame(board, (), NOW, 80, 24)
    assert frame(board, (), NOW + timedelta(seconds=0.5), 80, 24) == drawn
    board.hear(at(95, "step_finished", "parser", "review", usage=spent(1, 0.1)))
    assert frame(board, (), NOW, 80, 24) != drawn
