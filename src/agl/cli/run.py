"""`agl run`."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING

from agl.cli import events
from agl.cli.answers import read_answers
from agl.cli.context import Context
from agl.cli.page import Page
from agl.cli.parsing import Parser
from agl.cli.reports import page_of_report
from agl.ports.ids import Label

if TYPE_CHECKING:
    from agl.api.runs import Loaded


def answer(argv: list[str], context: Context) -> Page:
    first = _parser(
        "Runs a workflow. `agl run WORKFLOW --help` shows the flags of that workflow.",
        label_required=False,
    )
    rest = first.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    rest.required = False
    name = first.parse(argv).workflow

    from agl.api import runs, workflows
    from agl.cli.apart import prints_apart
    from agl.cli.flags import add_flags, params_from

    with prints_apart():
        loaded = workflows.load(name)
        parser = _parser(_described(loaded), label_required=True)
        parser.help_command = f"agl run {shlex.quote(name)} --help"
        add_flags(parser, loaded)
        args = parser.parse(argv)
        label, answers = Label(args.label), read_answers(args.answers)
        params = params_from(args, loaded)
    context.register()
    services = context.services(label)
    lines = events.lines_to(args.events, as_json=context.as_json)
    work = runs.run(
        services, loaded, label, params, base_ref=args.base_ref, answers=answers, emit=lines
    )
    report = context.finish(work, resumes=f"agl resume {label}")
    page = page_of_report(report, bare=services.checkout is None)
    return page if lines is None else lines.end(page)


def _parser(description: str, *, label_required: bool) -> Parser:
    parser = Parser("run", description)
    parser.add_argument("workflow", metavar="WORKFLOW", help="its name, or a file as in ./flow.py")
    parser.add_argument(
        "-n",
        "--label",
        required=label_required,
        metavar="LABEL",
        help="the run's name; its branch is agl/LABEL",
    )
    parser.add_argument(
        "--from",
        dest="base_ref",
        metavar="REF",
        default="HEAD",
        help="the commit to start at (default: HEAD)",
    )
    parser.add_argument(
        "--answers", metavar="FILE", help="JSON object: a question's key or title → its answer"
    )
    events.add_flag(parser)
    return parser


def _described(loaded: Loaded) -> str:
    lines: Iterable[str] = (f"{loaded.name} (version {loaded.workflow.version})", "")
    return "\n".join((*lines, loaded.workflow.help))
