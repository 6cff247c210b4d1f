from __future__ import annotations

from agl.adapters.rich_terminal.lines import text_of
from agl.adapters.rich_terminal.screens import lines_of
from agl.ports.terminal import Row, Rows, Screen


def laid_out(screen: Screen[object], width: int) -> list[str]:
    return [text_of(spans) for spans in lines_of(screen, width)]


def test_a_table_stands_in_columns_of_cells() -> None:
    screen = Screen[object]("Chunks", Rows([["漢字", "landed"], ["b", "open", "c"]]), Row("x", "y"))
    assert laid_out(screen, 40) == ["Chunks", "  漢字  landed", "  b     open    c", "  x  y"]


def test_long_text_is_wrapped_and_no_markup_is_read() -> None:
    screen = Screen[object]("[red]a[/red] :smile:", "one two three\n\nfour")
    assert laid_out(screen, 10) == [
        "[red]a[/re",
        "d] :smile:",
        "  one two",
        "  three",
        "",
        "  four",
    ]


def test_an_empty_screen_is_its_title() -> None:
    assert laid_out(Screen("Title", Rows([]), Row(), ""), 20)[0] == "Title"


def test_what_would_act_on_the_terminal_is_gone() -> None:
    screen = Screen[object]("\x1b[31mred", Row("a\x07\tb", "\x9b1m\ud800"))
    assert laid_out(screen, 20) == ["red", "  a   b  1m?"]
