"""`agl show`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agl.cli.context import Context
from agl.cli.page import Page, document_of, table
from agl.cli.parsing import Parser
from agl.cli.words import RESULTS, moment, seconds, short, spent, state_of
from agl.ports.ids import Label

if TYPE_CHECKING:
    from agl.api.reading import Details, Line


def answer(argv: list[str], context: Context) -> Page:
    parser = Parser("show", "Shows a run: its steps, what they cost, what to type next.")
    parser.add_argument("label", metavar="LABEL")
    label = Label(parser.parse(argv).label)

    from agl.api import reading

    details = context.finish(reading.run(context.services(), label))
    return Page(document_of(details), _text(details))


def _text(run: Details) -> str:
    summary = run.summary
    facts = [
        ("state", state_of(summary)),
        ("result", RESULTS.get(summary.result, "")),
        ("workflow", f"{summary.workflow} (version {run.version})"),
        ("begun", moment(summary.created)),
        ("branch", f"{summary.branch} at {short(run.head)}"),
        ("base", f"{run.base_ref} at {short(run.base)}"),
        ("at work", ", ".join(run.at_work)),
        ("spent", spent(run.spent)),
        ("in vain", spent(run.spent_in_vain)),
        *(("open", question) for question in summary.questions),
        *(("kept", f"{item.name}  {item.why}") for item in run.kept),
        ("next", _next(run)),
    ]
    parts = ["\n".join(f"{name:10}{fact}" for name, fact in facts if fact)]
    if run.lines:
        heads = ("#", "KIND", "NAME", "MODEL", "TOOK", "SPENT", "HEAD", "")
        parts.append(table(heads, [_row(line, run.epoch) for line in run.lines]))
    if run.failure:
        parts.append(run.failure.rstrip())
    return "\n\n".join(parts)


def _row(line: Line, epoch: int) -> tuple[str, ...]:
    changed = line.head_after != line.head_before
    return (
        str(line.number),
        line.kind,
        line.name,
        line.model or "",
        seconds(line.duration_s),
        spent(line.usage),
        short(line.head_after) if changed else "",
        "" if line.live else "off the chain",
    )


def _next(run: Details) -> str:
    label = run.summary.label
    match run.summary.state:
        case "running":
            return ""
        case "finished":
            return f"git switch {run.summary.branch}"
        case "needs_answer":
            return f"agl resume {label} at a terminal, or with --answers FILE"
        case _:
            return f"agl resume {label}"
