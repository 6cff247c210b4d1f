"""`agl show`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agl.cli.context import Context
from agl.cli.entries import table_of
from agl.cli.moves import is_in_vain, next_of
from agl.cli.page import Page, document_of, facts
from agl.cli.parsing import Parser
from agl.cli.words import (
    CHILDREN,
    end_of_output,
    given,
    is_refused,
    moment,
    passed,
    result_of,
    short,
    spent_in_all,
    state_of,
)
from agl.ports.ids import Label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agl.api.reading import Details, Line, Part

_MOST_NAMES = 6
"""The steps that one line names."""


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
        ("spent", spent_in_all([one.usage for one in run.attempts])),
        ("of that", _in_vain(run)),
        *(("open", question) for question in summary.questions),
        *(("kept", f"{item.name}  {item.why}") for item in run.kept),
        ("next", _next(run)),
    ]
    parts = [facts(known)]
    if run.lines:
        parts.append(table_of(run.lines))
    parts += [_child(child) for child in run.children]
    parts += [end_of_output(line) for line in _newest_builds(run.lines) if not passed(line)]
    if run.failure:
        parts.append(run.failure.rstrip())
    return "\n\n".join(parts)


def _newest_builds(lines: Sequence[Line]) -> list[Line]:
    """The last verdict, and the landings that wait for a better one."""
    live = [line for line in lines if line.live]
    last = [line for line in live if line.kind == "verify"][-1:]
    return [*last, *(line for line in live if is_refused(line))]


def _params(run: Details) -> list[tuple[str, str]]:
    return [(name, given(value)) for name, value in run.params.items()]


def _equipment(run: Details) -> list[str]:
    """Each program that was at work, what confined its shell, and for which steps."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for one in run.attempts:
        if one.program:
            step = "/".join(filter(None, (one.namespace, one.step)))
            found.setdefault((one.program, one.sandbox), {})[step] = None
    return [
        f"{program}, {_confined(sandbox)}: {_some_of(list(steps))}"
        for (program, sandbox), steps in found.items()
    ]


def _some_of(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    shown = ", ".join(names[:_MOST_NAMES])
    return f"{shown} and {more} more" if more > 0 else shown


def _confined(sandbox: str) -> str:
    return f"its shell in {sandbox}" if sandbox else "no sandbox"


def _in_vain(run: Details) -> str:
    vain = [one.usage for one in run.attempts if not one.recorded and not one.at_work]
    lost = spent_in_all(vain)
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
    return f"{facts(known)}\n{table_of(child.lines)}"


def _branch(branch: str, now: str | None, head: str) -> str:
    last = short(head)
    if now is None:
        return f"{branch} is gone; AGL's last is {last}"
    return (
        f"{branch} at {last}" if now == head else f"{branch} at {short(now)}; AGL's last is {last}"
    )


def _next(run: Details) -> str:
    now = run.summary
    if now.state == "finished" and now.result == "landed" and run.branch_at is None:
        return f"git branch {now.branch} {short(run.head)} makes it again"
    lines = [*run.lines, *(line for child in run.children for line in child.lines)]
    has_work = any(line.live and line.kind == "step" for line in lines)
    if now.state == "failed" and is_in_vain(run.exit_code, has_work=has_work):
        return f"agl clear {now.label}"
    return next_of(now.state, now.result, now.label, now.branch, bare=run.bare)
