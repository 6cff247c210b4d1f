"""The board as lines: pure, from what is known and the size of the screen to a frame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.cells import cell_len

from agl.adapters.rich_terminal.board import DONE, Board, ScopeOnBoard, Stand
from agl.adapters.rich_terminal.lines import Frame, Line, Tone, cut, fit, line
from agl.ports.models import Usage

_NAME, _STATE, _TIME, _STEP, _ACTIVITY, _COST, _TOKENS, _MODEL = range(8)
_SHOWN_AS = (_NAME, _STATE, _STEP, _MODEL, _TIME, _TOKENS, _COST, _ACTIVITY)
_MOST = {_NAME: 28, _STATE: 15, _STEP: 20, _MODEL: 20}
_LEAST_ACTIVITY = 16
_GAP = 2

_TONES = {
    Stand.IDLE: Tone.PLAIN,
    Stand.WORKING: Tone.BUSY,
    Stand.BUILDING: Tone.BUSY,
    Stand.ASKING: Tone.STRONG,
    Stand.FAILED: Tone.BAD,
    Stand.STOPPED: Tone.BAD,
    Stand.LANDING: Tone.BUSY,
    Stand.CONFLICTED: Tone.BAD,
    Stand.REFUSED: Tone.BAD,
    Stand.LANDED: Tone.GOOD,
    Stand.NOTHING: Tone.FAINT,
    Stand.ABORTED: Tone.BAD,
}
# What there is least need to see goes first where there is no room.
_RANKS = {Stand.FAILED: 1, Stand.STOPPED: 1, Stand.IDLE: 2, **dict.fromkeys(DONE, 3)}


def frame(board: Board, view: Frame, now: datetime, width: int, height: int | None = None) -> Frame:
    """The workflow's own view, the tree of scopes and a line of totals, in at most `height` lines
    of at most `width` cells."""
    if board.is_empty and not view:
        return ()
    rows = _rows(board, now)
    total = line(_total(board, now), Tone.FAINT, width)
    if height is None:
        return (*_above(view, None, width), *_drawn(rows, width), total)
    if height < 2:
        return (total,)[:height]
    room = height - 1
    above = _above(view, room - min(len(_without_last(rows)), max(1, room // 2)), width)
    kept, left = _fitting(rows, room - len(above))
    more = () if not left else (line(_more(left), Tone.FAINT, width),)
    return (*above, *_drawn(kept, width), *more, total)


@dataclass(frozen=True, slots=True)
class _Row:
    """A scope in the columns above, or (`scope` None) what was last finished in the one before."""

    cells: tuple[str, ...]
    scope: ScopeOnBoard | None
    tone: Tone = Tone.FAINT


def _rows(board: Board, now: datetime) -> list[_Row]:
    rows = []
    for depth, scope in board.shown():
        stand, work, indent = scope.stand, scope.work, "  " * depth
        activity = _finished(scope) if work is None else work.activity
        elapsed = scope.elapsed_s(now)
        rows.append(
            _Row(
                (
                    indent + scope.name,
                    stand.value,
                    "" if elapsed is None else clock(elapsed),
                    "" if work is None else work.name,
                    activity,
                    cost(scope.usage),
                    tokens(scope.usage),
                    "" if work is None else work.model,
                ),
                scope,
                _TONES[stand],
            )
        )
        if work is not None and scope.finished:
            rows.append(_Row((f"{indent}  {_finished(scope)}",), None))
    return rows


def _finished(scope: ScopeOnBoard) -> str:
    return f"{scope.finished} done, last {scope.last}" if scope.finished else ""


def _without_last(rows: Sequence[_Row]) -> list[_Row]:
    return [row for row in rows if row.scope is not None]


def _fitting(rows: list[_Row], room: int) -> tuple[list[_Row], list[ScopeOnBoard]]:
    """The rows that have room, those at work first, and the scopes of the others."""
    if len(rows) <= room:
        return rows, []
    scopes = _without_last(rows)
    if len(scopes) <= room:
        return scopes, []
    order = sorted(range(len(scopes)), key=lambda number: (_rank(scopes[number]), number))
    kept = set(order[: max(room - 1, 0)])
    left = [row.scope for number, row in enumerate(scopes) if number not in kept and row.scope]
    return [row for number, row in enumerate(scopes) if number in kept], left


def _rank(row: _Row) -> int:
    assert row.scope is not None
    return _RANKS.get(row.scope.stand, 0)


def _more(left: list[ScopeOnBoard]) -> str:
    counted = Counter(scope.stand.value or "waiting" for scope in left)
    what = ", ".join(f"{count} {stand}" for stand, count in counted.items())
    return f"… {len(left)} more: {what}"


def _above(view: Frame, room: int | None, width: int) -> Frame:
    if room is None or len(view) <= room:
        return view
    if room < 1:
        return ()
    left = len(view) - room + 1
    return (*view[: room - 1], line(f"… {left} more lines", Tone.FAINT, width))


def _drawn(rows: Sequence[_Row], width: int) -> Frame:
    widths = _widths(rows, width)
    return tuple(_drawn_row(row, widths, width) for row in rows)


def _widths(rows: Sequence[_Row], width: int) -> dict[int, int]:
    """Of the columns that have room, in the order of their use to a person."""
    full = [row.cells for row in rows if row.scope is not None]
    if not full:
        return {}
    natural = [max(map(cell_len, column)) for column in zip(*full, strict=True)]
    widths = {_NAME: min(natural[_NAME], _MOST[_NAME], max(width // 3, 6), width)}
    room = width - widths[_NAME]
    for column in (_STATE, _TIME, _STEP, _ACTIVITY, _COST, _TOKENS, _MODEL):
        wanted = min(natural[column], _MOST.get(column, natural[column]))
        taken = min(wanted, _LEAST_ACTIVITY) if column == _ACTIVITY else wanted
        if taken > room - _GAP:
            break
        if taken:
            widths[column] = taken
            room -= taken + _GAP
    if _ACTIVITY in widths:
        widths[_ACTIVITY] += room
    else:
        widths[_NAME] = min(natural[_NAME], widths[_NAME] + max(room, 0))
    return widths


def _drawn_row(row: _Row, widths: dict[int, int], width: int) -> Line:
    if row.scope is None:
        return line(row.cells[0], Tone.FAINT, width)
    columns = [column for column in _SHOWN_AS if column in widths]
    filled = [column for column in columns if row.cells[column]]
    last = filled[-1] if filled else _NAME
    spans = []
    for column in columns:
        text, cells = row.cells[column], widths[column]
        if column == last:
            spans.append((cut(_aligned(column, text, cells), cells), _tone(column, row)))
            break
        spans.append((fit(_aligned(column, text, cells), cells) + " " * _GAP, _tone(column, row)))
    return tuple(spans)


def _aligned(column: int, text: str, cells: int) -> str:
    return text.rjust(cells) if column in (_TIME, _TOKENS, _COST) else text


def _tone(column: int, row: _Row) -> Tone:
    if column == _STATE:
        return row.tone
    if column == _NAME:
        return Tone.STRONG if row.scope is not None and row.scope.work is not None else Tone.PLAIN
    return Tone.PLAIN if column in (_STEP, _ACTIVITY) else Tone.FAINT


def _total(board: Board, now: datetime) -> str:
    root = board.root
    elapsed = clock(((root.ended or now) - root.begun).total_seconds())
    parts = ["total", elapsed, tokens(board.usage), cost(board.usage)]
    return "  ".join(filter(None, parts))


def clock(seconds: float) -> str:
    minutes, rest = divmod(max(int(seconds), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def tokens(usage: Usage) -> str:
    count = usage.input_tokens + usage.output_tokens
    if count < 1000:
        return f"{count} tok" if count else ""
    return f"{count / 1000:.1f}k tok" if count < 999_950 else f"{count / 1e6:.1f}M tok"


def cost(usage: Usage) -> str:
    """A price that is not known is said to be unknown."""
    if usage.is_nothing:
        return ""
    if usage.cost_usd is None:
        return "$ unknown"
    return f"${usage.cost_usd:.4f}" if 0 < usage.cost_usd < 0.1 else f"${usage.cost_usd:.2f}"
