"""A workflow's screen as lines, laid out by rich."""

from __future__ import annotations

import io
from itertools import zip_longest
from typing import assert_never

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text as RichText

from agl.adapters.rich_terminal.lines import Frame, Tone, clean, cut
from agl.ports.terminal import Component, Row, Rows, Screen, Text

_INDENT = 2


def lines_of(screen: Screen[object], width: int) -> Frame:
    """The title and below it the body, no line wider than `width` cells."""
    title = _laid_out(RichText(clean(screen.title)), width)
    body = [
        text
        for part in screen.body
        for text in _laid_out(Padding(_renderable(part), (0, 0, 0, _indent(width))), width)
    ]
    return (
        *(((text, Tone.STRONG),) for text in title),
        *(((text, Tone.PLAIN),) for text in body),
    )


def _indent(width: int) -> int:
    return _INDENT if width > 2 * _INDENT else 0


def _renderable(part: Component) -> RenderableType:
    match part:
        case Text():
            return RichText(clean(part.text))
        case Row():
            return _table([part])
        case Rows():
            return _table(part.rows)
        case _:
            assert_never(part)


def _table(rows: tuple[Row, ...] | list[Row]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(max((len(row.cells) for row in rows), default=0)):
        table.add_column(overflow="fold")
    for row in rows:
        cells = [RichText(clean(cell.text)) for cell in row.cells]
        table.add_row(*(cell for cell, _ in zip_longest(cells, table.columns, fillvalue="")))
    return table


def _laid_out(what: RenderableType, width: int) -> list[str]:
    console = Console(
        file=io.StringIO(), width=max(width, 1), color_system=None, legacy_windows=False
    )
    lines = console.render_lines(what, pad=False)
    texts = ["".join(segment.text for segment in line).rstrip() for line in lines]
    return [cut(text, width) for text in texts]
