"""`agl run`."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from agl.api.runs import Loaded


def answer(argv: list[str], context: Context) -> Page:
    name = _first_parser().parse(argv).workflow

    from agl.api import runs, workflows
    from agl.cli.apart import prints_apart
    from agl.cli.flags import add_flags, params_from

    with prints_apart():
        loaded = workflows.load(name)
        parser = Parser(f"run {shlex.quote(name)}", _described(loaded))
        parser.add_argument("workflow", help=argparse.SUPPRESS)
        _add_flags(parser).required = True
        add_flags(parser, loaded)
        args = parser.parse(argv)
        label, answers = Label(args.label), read_answers(args.answers)
        max_wait_s = read_duration(args.max_wait)
        params = params_from(args, loaded)
    context.register()
    services = context.services(label, watched=args.events != events.STDOUT)
    lines = events.lines_to(args.events, as_json=context.as_json)
    work = runs.run(
        services,
        loaded,
        label,
        params,
        base_ref=args.base_ref,
        answers=answers,
        emit=lines,
        max_wait_s=max_wait_s,
    )
    report = context.finish(work, resumes=f"agl resume {label}")
    page = page_of_report(report, bare=services.checkout is None)
    return page if lines is None else lines.end(page)


def own_flags() -> list[str]:
    """The flags that every workflow takes."""
    return list(_first_parser()._option_string_actions)


def _first_parser() -> Parser:
    """Finds the name of the workflow, whose own flags are not known yet."""
    parser = Parser(
        "run",
        "Runs a workflow in a tree of its own, on the branch agl/LABEL; your checkout stays as it"
        " is.\n`agl workflows` lists the workflows, `agl run WORKFLOW --help` shows the flags of"
        " one.",
    )
    parser.usage = "agl run WORKFLOW -n LABEL [options] [flags of the workflow]"
    parser.add_argument("workflow", metavar="WORKFLOW", help="its name, or a file as in ./flow.py")
    rest = parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    rest.required = False
    _add_flags(parser)
    return parser


def _add_flags(parser: Parser) -> argparse.Action:
    """Adds what every workflow takes; the label's action is returned."""
    label = parser.add_argument(
        "-n",
        "--label",
        metavar="LABEL",
        help="the run's name; its branch is agl/LABEL (required)",
    )
    parser.add_argument(
        "--from",
        dest="base_ref",
        metavar="REF",
        default="HEAD",
        help="the commit to start at (default: HEAD)",
    )
    add_answers_flag(parser)
    add_wait_flag(parser)
    events.add_flag(parser)
    return label


def _described(loaded: Loaded) -> str:
    lines: Iterable[str] = (f"{loaded.name} (version {loaded.workflow.version})", "")
    return "\n".join((*lines, loaded.workflow.help))
