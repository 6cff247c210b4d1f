"""`agl clear`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agl.cli.context import Context
from agl.cli.failures import page_of
from agl.cli.page import Page, plain
from agl.cli.parsing import Parser
from agl.ports.errors import AglError
from agl.ports.ids import Label

if TYPE_CHECKING:
    from agl.api.clear import ClearReport


def answer(argv: list[str], context: Context) -> Page:
    parser = Parser(
        "clear",
        "Takes runs away: trees, branches, records. What only they held is kept for `keep_days` (14"
        "\nby default); `agl recover` brings it back. A run that is at work is refused.",
    )
    parser.add_argument("labels", metavar="LABEL", nargs="+", help="the name of a run to take away")
    parser.add_argument(
        "--purge",
        action="store_true",
        help="keep nothing: destroy for good all that is kept of them",
    )
    args = parser.parse(argv)
    labels = [Label(text) for text in args.labels]

    from agl.api.clear import clear

    keep_days = context.settings().keep_days
    reports: list[ClearReport] = []
    failure: Page | None = None
    for label in labels:
        services = context.services(label)
        work = clear(services, label, keep_days=keep_days, purge=args.purge)
        try:
            reports.append(context.finish(work))
        except AglError as error:
            failure = page_of(error)
            break
    text = "\n".join(_text(report) for report in reports)
    cleared = {"cleared": plain(reports)}
    if failure is None:
        return Page(cleared, text)
    return Page({**cleared, **failure.document}, text, failure.notes, failure.exit_code)


def _text(report: ClearReport) -> str:
    if not report.trees and not report.purged:
        kept = f"`agl recover {report.label}` lists what is kept of it"
        return f"{report.label}: no tree and no branch was left of it; {kept}"
    lines = [f"{report.label}: cleared"]
    lines += [f"  ended     process {one.pid}: {one.command}" for one in report.survivors]
    lines += [
        f"  stands in a moved tree: process {one.pid}: {one.command}" for one in report.bystanders
    ]
    for tree in report.trees:
        if tree.folder is not None:
            lines.append(f"  moved     {tree.tree} to {tree.folder}")
        lines += [f"  kept      {item.name}  {item.why}" for item in tree.kept]
    lines += [f"  purged    {item.name}" for item in report.purged]
    return "\n".join(lines)
