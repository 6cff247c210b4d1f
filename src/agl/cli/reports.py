"""How a run ended, as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agl.cli.moves import is_in_vain, next_of
from agl.cli.page import Page, document_of, facts
from agl.cli.words import STATES, result_of, short

if TYPE_CHECKING:
    from agl.api.endings import Report


def page_of_report(report: Report, *, bare: bool) -> Page:
    """A failure carries the same `error` as a refusal does, beside what is known of the run."""
    document = document_of(report)
    notes = ""
    if report.exit_code != 0:
        message = report.message
        document["error"] = {
            "kind": report.outcome,
            "message": message,
            "exit_code": report.exit_code,
        }
        notes = f"{report.failure or ''}agl: {message.rstrip()}"
    return Page(document, _text(report, bare=bare), notes, report.exit_code)


def _text(report: Report, *, bare: bool) -> str:
    known = [
        (report.label, _ended(report)),
        ("branch", f"{report.branch} at {short(report.head)}, from {short(report.base)}"),
        ("steps", f"{report.ran} ran, {report.replayed} replayed"),
        *(
            ("child", f"{name} did not land  (`agl diff {report.label} {name}`)")
            for name in report.unlanded
        ),
        *(("open", question) for question in report.questions),
        *(("kept", f"{name}  (`agl recover`)") for name in report.kept),
        ("next", f"{_next(report, bare=bare)}, or agl show {report.label}"),
    ]
    return facts(known)


def _ended(report: Report) -> str:
    """The result; how it failed is said on standard error."""
    result, state = result_of(report.result, report.branch), STATES[report.outcome]
    if report.exit_code != 0:
        return f"{result}, {state}"
    return result if report.message == state else f"{result}; {report.message}"


def _next(report: Report, *, bare: bool) -> str:
    if is_in_vain(report.exit_code, has_work=report.ran + report.replayed > 0):
        return f"agl clear {report.label}"
    return next_of(report.outcome, report.result, report.label, report.branch, bare=bare)
