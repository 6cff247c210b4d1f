"""What is recorded of a run, one row for each entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agl.cli.page import cut_to_terminal, one_line, table, terminal_width
from agl.cli.words import model_of, outcome_of, seconds, short, spent, spent_in_short

if TYPE_CHECKING:
    from agl.api.reading import Line

_HEADS = ("#", "KIND", "NAME", "MODEL", "TOOK", "SPENT", "COMMIT")

_LEAST = 10
"""The columns that NAME and MODEL have each; where they cannot, models stand below."""


def table_of(lines: Sequence[Line]) -> str:
    """One row for each; at a terminal that is too narrow what came of it stands below."""
    rows = [(*_row(line, spent(line.usage)), outcome_of(line), _use(line)) for line in lines]
    wide, width = table((*_HEADS, "OUTCOME", ""), rows), terminal_width()
    if width is None or max(map(len, wide.splitlines())) <= width:
        return wide
    return cut_to_terminal(_narrow(lines, width))


def _narrow(lines: Sequence[Line], width: int) -> str:
    """Names and models take what the other columns leave."""
    rows = [_row(line, spent_in_short(line.usage)) for line in lines]
    others = table(_but_name_and_model(_HEADS), map(_but_name_and_model, rows))
    room = width - max(map(len, others.splitlines())) - len("  ")
    names, models = (max(len(row[column]) for row in rows) for column in (2, 3))
    of_name, of_model = _shares(room, names, models)
    cut = [
        (*start, one_line(name, of_name), one_line(model, of_model) if of_model else "", *end)
        for (*start, name, model), end in ((row[:4], row[4:]) for row in rows)
    ]
    shown, *bodies = table(_HEADS, cut).splitlines()
    for line, body in zip(lines, bodies, strict=True):
        model = "" if of_model else model_of(line.model)
        came_of_it = "; ".join(filter(None, (model, outcome_of(line), _use(line))))
        shown += f"\n{body}" + (f"\n      {came_of_it}" if came_of_it else "")
    return shown


def _shares(room: int, names: int, models: int) -> tuple[int, int]:
    """The columns for the two, given those that each would fill; 0: none is left for models."""
    between = len("  ")
    if names + between + models <= room:
        return names, models
    if not models or room < 2 * _LEAST + between:
        return max(room, len("NAME")), 0
    of_name = min(names, max(room - between - models, (room - between) // 2))
    return of_name, room - between - of_name


def _row(line: Line, used: str) -> tuple[str, ...]:
    return (
        str(line.number),
        line.kind,
        one_line(line.name, 40),
        model_of(line.model),
        seconds(line.duration_s),
        used,
        short(line.head_after) if line.head_after != line.head_before else "",
    )


def _but_name_and_model(row: Sequence[str]) -> tuple[str, ...]:
    return (*row[:2], *row[4:])


def _use(line: Line) -> str:
    return "" if line.live else "not used any more"
