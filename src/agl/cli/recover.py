"""`agl recover`."""

from __future__ import annotations

from agl.cli.context import Context
from agl.cli.page import Page, document_of, plain
from agl.cli.parsing import Parser
from agl.ports.ids import Label


def answer(argv: list[str], context: Context) -> Page:
    parser = Parser("recover", "Lists what was set aside, or brings it back as a branch.")
    parser.add_argument("label", metavar="LABEL", nargs="?", help="only what belongs to this run")
    parser.add_argument("--item", metavar="NAME", help="bring this one back; needs --branch")
    parser.add_argument("--branch", metavar="BRANCH", help="the branch to make of it")
    args = parser.parse(argv)
    if (args.item is None) != (args.branch is None):
        parser.error("--item and --branch go together")
    label = None if args.label is None else Label(args.label)

    from agl.api import kept

    services = context.services()
    if args.item is not None:
        item = context.finish(kept.bring_back(services, args.item, args.branch))
        text = f"{args.branch} is at {item.commit}\nnext      git switch {args.branch}"
        return Page({"item": document_of(item), "branch": args.branch}, text)
    items = context.finish(kept.items(services, label))
    document = {"kept": plain(items)}
    if not items:
        return Page(document, "", "nothing is kept")
    lines = [f"{item.name}\n    {item.when}  {item.why}" for item in items]
    lines = [
        line if item.folder is None else f"{line}\n    in {item.folder}"
        for line, item in zip(lines, items, strict=True)
    ]
    return Page(
        document, "\n".join(lines), "`agl recover --item NAME --branch BRANCH` brings one back"
    )
