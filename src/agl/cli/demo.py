"""`agl demo`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from agl.cli.context import Context
from agl.cli.page import Page, document_of, say
from agl.cli.parsing import Parser


def answer(argv: list[str], context: Context) -> Page:
    Parser(
        "demo",
        "Repairs a failing test in a small repository of its own in a temporary folder, offline,"
        "\nwith a scripted model; AGL is killed in the middle and resumed.",
    ).parse(argv)
    from agl.api import demo
    from agl.config import container

    work = demo.demo(container.processes(), context.environ, say)
    report = context.finish(work)
    diff = "\n".join(f"  {line}" for line in report.diff.splitlines())
    entries = "\n".join(f"  {entry}" for entry in report.entries)
    program = Path(sys.argv[0]).absolute()
    agl = shlex.quote(str(program)) if program.name == "agl" else "agl"
    once = ", ".join(report.worked)
    text = f"""
The branch {report.branch} in {report.repository}:
{diff}

The ledger, one file for each entry, in {report.ledger}:
{entries}

The kill: AGL died of kill -9 in its first {report.killed_in}. The resume repeated nothing that was
recorded: {report.replayed} agents' steps came from the ledger. What the agents worked on, as
they themselves wrote it down outside of AGL: {once}.
The {report.killed_in} is there twice because the first one never ended.

Look around: cd {shlex.quote(str(report.repository))} && {report.environment} {agl} show demo
Then: rm -rf {shlex.quote(str(report.folder))}
"""
    return Page(document_of(report), text.strip("\n"))
