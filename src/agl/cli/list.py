"""`agl list`."""

from __future__ import annotations

from agl.cli.context import Context
from agl.cli.page import Page, plain, table
from agl.cli.parsing import Parser
from agl.cli.words import moment, state_of


def answer(argv: list[str], context: Context) -> Page:
    from agl.api import reading

    Parser("list", "Lists the runs of this repository, the oldest first.").parse(argv)
    project, runs = reading.runs(context.settings(), context.here)
    document = {"project": project, "runs": plain(runs)}
    if not runs:
        return Page(document, "", f"no runs in {project} yet; `agl run WORKFLOW -n LABEL`")
    rows = [(run.label, run.workflow, moment(run.created), state_of(run)) for run in runs]
    return Page(document, table(("LABEL", "WORKFLOW", "BEGUN", "STATE"), rows))
