"""`agl workflows`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agl.cli.apart import prints_apart
from agl.cli.context import Context
from agl.cli.page import Page, document_of, plain, table
from agl.cli.parsing import Parser
from agl.cli.words import metavar, needs

if TYPE_CHECKING:
    from agl.api.workflows import Description, Parameter


def answer(argv: list[str], context: Context) -> Page:
    from agl.api import workflows

    parser = Parser("workflows", "Lists the installed workflows, or shows one with its flags.")
    parser.add_argument(
        "name", metavar="WORKFLOW", nargs="?", help="the one to show: a name, or a file"
    )
    args = parser.parse(argv)
    if args.name is not None:
        with prints_apart():
            found = workflows.details(args.name)
        return Page(document_of(found), _described(found))
    listing = workflows.listing()
    if not listing:
        note = "no workflows are installed; a file will do: `agl run ./flow.py -n LABEL`"
        return Page({"workflows": []}, "", note)
    rows = [(one.name, one.source) for one in listing]
    return Page({"workflows": plain(listing)}, table(("WORKFLOW", "FROM"), rows))


def _described(found: Description) -> str:
    parts = [f"{found.name} (version {found.version})"]
    if found.help:
        parts += ["", found.help]
    if found.parameters:
        parts += ["", table(("FLAG", "", ""), [_row(one) for one in found.parameters])]
    return "\n".join(parts)


def _row(one: Parameter) -> tuple[str, str, str]:
    takes = "" if one.default is False else f" {metavar(one.kind, one.choices)}"
    need = needs(one.default, required=one.required, repeated=one.repeated)
    return (f"{', '.join(one.flags)}{takes}", need, one.help)
