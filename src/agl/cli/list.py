"""`agl list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agl.cli.context import Context
from agl.cli.page import Page, cut_to_terminal, one_line, plain, table
from agl.cli.parsing import Parser
from agl.cli.words import in_a_word, moment, workflow_of

if TYPE_CHECKING:
    from agl.api.reading import Summary


def answer(argv: list[str], context: Context) -> Page:
    from agl.api import reading

    Parser(
        "list",
        "Lists the runs of this repository, the oldest first, each with how it is: running,"
        "\ninterrupted, or what came of it. `agl show LABEL` shows one.",
    ).parse(argv)
    project, runs = reading.runs(context.settings(), context.here)
    document = {"project": project, "runs": plain(runs)}
    if not runs:
        return Page(document, "", f"no runs in {project} yet; `agl run WORKFLOW -n LABEL`")
    text = table(("LABEL", "WORKFLOW", "BEGUN", "STATE"), map(_row, runs))
    return Page(document, cut_to_terminal(text))


def _row(run: Summary) -> tuple[str, ...]:
    workflow = one_line(workflow_of(run.workflow), 40)
    return (run.label, workflow, moment(run.created), in_a_word(run))
