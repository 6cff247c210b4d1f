"""`agl diff`."""

from __future__ import annotations

from agl.cli.context import Context
from agl.cli.page import Page, document_of
from agl.cli.parsing import Parser
from agl.ports.ids import Label


def answer(argv: list[str], context: Context) -> Page:
    parser = Parser("diff", "Prints what a run changed since its base, as a patch.")
    parser.add_argument(
        "label", metavar="LABEL", help="the run's name; `agl list` shows the runs there are"
    )
    parser.add_argument(
        "namespace",
        metavar="NAMESPACE",
        nargs="?",
        default="",
        help="a child of the run, as in `agl show LABEL`; without it, the run itself",
    )
    args = parser.parse(argv)
    label = Label(args.label)

    from agl.api.diff import diff

    found = context.finish(diff(context.services(label), label, args.namespace))
    notes = "" if found.patch else f"nothing differs from {found.base[:10]}"
    return Page(document_of(found), found.patch.removesuffix("\n"), notes, verbatim=True)
