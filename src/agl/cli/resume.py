"""`agl resume`."""

from __future__ import annotations

from agl.cli import events
from agl.cli.answers import add_flag as add_answers_flag
from agl.cli.answers import read_answers
from agl.cli.context import Context
from agl.cli.page import Page
from agl.cli.parsing import Parser
from agl.cli.reports import page_of_report
from agl.cli.waiting import add_flag as add_wait_flag
from agl.cli.waiting import read_duration
from agl.ports.ids import Label


def answer(argv: list[str], context: Context) -> Page:
    parser = Parser(
        "resume",
        "Goes on with a run that was interrupted, stopped or failed. What is recorded is replayed,"
        "\nnot run again; the workflow's flags are those that the run was begun with.",
    )
    parser.add_argument(
        "label", metavar="LABEL", help="the run's name; `agl list` shows the runs there are"
    )
    parser.add_argument(
        "--again",
        metavar="STEP",
        help="run again from this step on: NAME, or NAME#2 for the second of that name, as `agl"
        " show` lists them; of a child CHILD/STEP, and CHILD/ lands it again; `verify` builds"
        " again; of a question or record only that one is asked again",
    )
    add_answers_flag(parser)
    add_wait_flag(parser)
    events.add_flag(parser)
    args = parser.parse(argv)
    label, answers = Label(args.label), read_answers(args.answers)
    max_wait_s = read_duration(args.max_wait)

    from agl.api import runs, workflows

    services = context.services(label, watched=args.events != events.STDOUT)
    lines = events.lines_to(args.events, as_json=context.as_json)
    work = runs.resume(
        services,
        workflows.load,
        label,
        again=args.again,
        answers=answers,
        emit=lines,
        max_wait_s=max_wait_s,
    )
    report = context.finish(work, resumes=f"agl resume {label}")
    page = page_of_report(report, bare=services.checkout is None)
    return page if lines is None else lines.end(page)
