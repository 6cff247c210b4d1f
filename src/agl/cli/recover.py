"""`agl recover`."""

from __future__ import annotations

import shlex
from datetime import datetime
from typing import TYPE_CHECKING

from agl.cli.context import Context
from agl.cli.moves import switch_to
from agl.cli.page import Page, document_of, one_line, plain
from agl.cli.parsing import Parser
from agl.cli.words import moment, short
from agl.ports.ids import Label

if TYPE_CHECKING:
    from agl.api.kept import KeptThing


def answer(argv: list[str], context: Context) -> Page:
    parser = Parser(
        "recover",
        "Lists what AGL set aside instead of destroying it: commits, and folders to copy from."
        "\nWith --item and --branch, makes a branch of such a commit.",
    )
    parser.add_argument(
        "label", metavar="LABEL", nargs="?", help="list only what belongs to this run"
    )
    parser.add_argument(
        "--item", metavar="NAME", help="the commit to bring back, as it is listed; needs --branch"
    )
    parser.add_argument("--branch", metavar="BRANCH", help="the new branch to make of it")
    args = parser.parse(argv)
    if (args.item is None) != (args.branch is None):
        parser.error("--item and --branch go together")
    label = None if args.label is None else Label(args.label)

    from agl.api import kept

    services = context.services()
    if args.item is not None:
        item = context.finish(kept.bring_back(services, args.item, args.branch))
        move = switch_to(args.branch, bare=services.checkout is None)
        text = f"{args.branch} is at {item.commit}\nnext      {move}"
        return Page({"item": document_of(item), "branch": args.branch}, text)
    things = context.finish(kept.items(services, label))
    document = {"kept": plain(things)}
    if not things:
        return Page(document, "", "nothing is kept")
    brings = "`agl recover --item NAME --branch BRANCH` makes a branch of a commit"
    notes = brings if any(thing.kind == "commit" for thing in things) else ""
    return Page(document, "\n".join(map(_text, things)), notes)


def _text(thing: KeptThing) -> str:
    when = moment(datetime.fromisoformat(thing.when))
    lines = [thing.name, f"    {thing.kind}, {when}: {thing.why}"]
    if thing.subject:
        lines.append(f"    {short(thing.commit or '')} {one_line(thing.subject, 72)}")
    if thing.folder is not None:
        lines.append(f"    cp -a {shlex.quote(str(thing.folder))} .")
    return "\n".join(lines)
