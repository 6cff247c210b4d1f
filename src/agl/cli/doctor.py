"""`agl doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agl.cli.context import Context
from agl.cli.page import Page, facts, plain
from agl.cli.parsing import Parser
from agl.ports.errors import UpstreamError

if TYPE_CHECKING:
    from agl.api.doctor import Check


def answer(argv: list[str], context: Context) -> Page:
    parser = Parser("doctor", "Says what is missing on this machine, and what to type for it.")
    parser.add_argument(
        "--models",
        nargs="+",
        metavar="MODEL",
        default=(),
        help="have each of these call a tool once; that turn is paid for",
    )
    names = parser.parse(argv).models

    from agl.api.doctor import doctor
    from agl.ports.models import ModelId

    asked = [ModelId.parse(name) for name in names]
    checks = context.finish(doctor(context.environ, context.home, context.here, asked))
    text = facts((f"{_mark(one)} {one.name}", one.said) for one in checks)
    bad = dict.fromkeys(one.name for one in checks if not one.ok and not one.doubtful)
    notes = f"agl: not in order: {', '.join(bad)}" if bad else ""
    code = UpstreamError.exit_code if bad else 0
    return Page({"checks": plain(checks)}, text, notes, code)


def _mark(check: Check) -> str:
    if check.doubtful:
        return "?  "
    return "ok " if check.ok else "no "
