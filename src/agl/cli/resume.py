"""`agl resume`."""

from __future__ import annotations

from agl.cli import events
from agl.cli.answers import read_answers
from agl.cli.context import Context
from agl.cli.page import Page
from agl.cli.parsing import Parser
from agl.cli.reports import page_of_report
from agl.ports.ids import Label


def answer(argv: list[str], context: Context) -> Page:
    parser = Parser("resume", "Goes on with a run. What is recorded is replayed, not run again.")
    parser.add_argument("label", metavar="LABEL")
    parser.add_argument(
        "--again",
        metavar="STEP",
        help="run again from this step on: its name, or NAME#2; `verify` and the name of a question"
        " or record ask that again",
    )
    parser.add_argument(
        "--answers", metavar="FILE", help="JSON object: a question's key or title → its answer"
    )
    events.add_flag(parser)
    args = parser.parse(argv)
    label, answers = Label(args.label), read_answers(args.answers)

    from agl.api import runs, workflows

    services = context.services(label)
    lines = events.lines_to(args.events, as_json=context.as_json)
    work = runs.resume(
        services, workflows.load, label, again=args.again, answers=answers, emit=lines
    )
    report = context.finish(work, resumes=f"agl resume {label}")
    page = page_of_report(report, bare=services.checkout is None)
    return page if lines is None else lines.end(page)
