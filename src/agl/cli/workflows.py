"""`agl workflows`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agl.cli.context import Context
from agl.cli.page import Page, document_of, plain, table
from agl.cli.parsing import Parser

if TYPE_CHECKING:
    from agl.api.workflows import Description, Parameter


def answer(argv: list[str], context: Context) -> Page:
    from agl.api import workflows

    parser = Parser("workflows", "Lists the installed workflows, or shows one with its flags.")
    parser.add_argument("name", nargs="?", help="a workflow, or a file as in ./flow.py")
    args = parser.parse(argv)
    if args.name is not None:
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
    kind = "|".join(one.choices) or one.kind
    need = "required" if one.required else f"default {one.default!r}"
    return (", ".join(one.flags), f"{kind}, {need}", one.help)
