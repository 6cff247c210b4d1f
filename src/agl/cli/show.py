"""`agl show`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agl.cli.context import Context
from agl.cli.moves import next_of
from agl.cli.page import (
    Page,
    cut_to_terminal,
    document_of,
    facts,
    one_line,
    table,
    terminal_width,
)
from agl.cli.parsing import Parser
from agl.cli.words import (
    CHILDREN,
    end_of_output,
    given,
    is_refused,
    model_of,
    moment,
    outcome_of,
    passed,
    result_of,
    seconds,
    short,
    spent,
    state_of,
)
from agl.ports.ids import Label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agl.api.reading import Details, Line, Part


def answer(argv: list[str], context: Context) -> Page:
    parser = Parser("show", "Shows a run: its steps, what they cost, what to type next.")
    parser.add_argument(
        "label", metavar="LABEL", help="the run's name; `agl list` shows the runs there are"
    )
    label = Label(parser.parse(argv).label)

    from agl.api import reading

    details = context.finish(reading.run(context.services(), label))
    return Page(document_of(details), _text(details))


def _text(run: Details) -> str:
    summary = run.summary
    known = [
        ("state", state_of(summary)),
        ("result", result_of(summary.result, summary.branch)),
        ("workflow", f"{summary.workflow} (version {run.version})"),
        *(("with", f"{name}: {text}") for name, text in _params(run) if text),
        ("begun", moment(summary.created)),
        ("branch", _branch(summary.branch, run.branch_at, run.head)),
        ("tree", "" if run.tree is None else str(run.tree)),
        ("base", f"{run.base_ref} at {short(run.base)}"),
        ("at work", ", ".join(run.at_work)),
        *(("agent", line) for line in _equipment(run)),
        ("spent", spent(run.spent)),
        ("of that", _in_vain(run)),
        *(("open", question) for question in summary.questions),
        *(("kept", f"{item.name}  {item.why}") for item in run.kept),
        ("next", _next(run)),
    ]
    parts = [facts(known)]
    if run.lines:
        parts.append(_table(run.lines))
    parts += [_child(child) for child in run.children]
    parts += [end_of_output(line) for line in _newest_builds(run.lines) if not passed(line)]
    if run.failure:
        parts.append(run.failure.rstrip())
    return "\n\n".join(parts)


_HEADS = ("#", "KIND", "NAME", "MODEL", "TOOK", "SPENT", "COMMIT", "OUTCOME", "")


def _table(lines: Sequence[Line]) -> str:
    """One row for each; at a terminal that is too narrow what came of it stands below."""
    rows = [_row(line) for line in lines]
    wide, width = table(_HEADS, rows), terminal_width()
    if width is None or max(map(len, wide.splitlines())) <= width:
        return wide
    heads, *narrow = table(_HEADS[:-2], [row[:-2] for row in rows]).splitlines()
    came_of_it = ("; ".join(filter(None, row[-2:])) for row in rows)
    below = (f"\n      {said}" if said else "" for said in came_of_it)
    return cut_to_terminal("\n".join((heads, *map("".join, zip(narrow, below, strict=True)))))


def _newest_builds(lines: Sequence[Line]) -> list[Line]:
    """The last verdict, and the landings that wait for a better one."""
    live = [line for line in lines if line.live]
    last = [line for line in live if line.kind == "verify"][-1:]
    return [*last, *(line for line in live if is_refused(line))]


def _params(run: Details) -> list[tuple[str, str]]:
    return [(name, given(value)) for name, value in run.params.items()]


def _equipment(run: Details) -> list[str]:
    """Each program that was at work, and what confined its shell."""
    found = {(one.program, one.sandbox): None for one in run.attempts if one.program}
    return [f"{program}, {_confined(sandbox)}" for program, sandbox in found]


def _confined(sandbox: str) -> str:
    return f"its shell in {sandbox}" if sandbox else "no sandbox"


def _in_vain(run: Details) -> str:
    lost = spent(run.spent_in_vain)
    return f"{lost} in attempts that gave no result" if lost else ""


def _child(child: Part) -> str:
    is_new = child.branch_at is None and child.head == child.base
    known = [
        ("child", f"{child.namespace}: {CHILDREN[child.state]}"),
        ("branch", "" if is_new else _branch(child.branch, child.branch_at, child.head)),
        ("tree", "" if child.tree is None else str(child.tree)),
    ]
    if not child.lines:
        return facts(known)
    return f"{facts(known)}\n{_table(child.lines)}"


def _branch(branch: str, now: str | None, head: str) -> str:
    last = short(head)
    if now is None:
        return f"{branch} is gone; AGL's last is {last}"
    return (
        f"{branch} at {last}" if now == head else f"{branch} at {short(now)}; AGL's last is {last}"
    )


def _row(line: Line) -> tuple[str, ...]:
    changed = line.head_after != line.head_before
    return (
        str(line.number),
        line.kind,
        one_line(line.name, 40),
        model_of(line.model),
        seconds(line.duration_s),
        spent(line.usage),
        short(line.head_after) if changed else "",
        outcome_of(line),
        "" if line.live else "not used any more",
    )


def _next(run: Details) -> str:
    now = run.summary
    if now.state == "finished" and now.result == "landed" and run.branch_at is None:
        return f"git branch {now.branch} {short(run.head)} makes it again"
    return next_of(now.state, now.result, now.label, now.branch, bare=run.bare)
