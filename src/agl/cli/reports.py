"""How a run ended, as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agl.cli.page import Page, document_of
from agl.cli.words import RESULTS, STATES, short

if TYPE_CHECKING:
    from agl.api.endings import Report


def page_of_report(report: Report) -> Page:
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
        notes = f"{report.failure or ''}agl: {message}"
    return Page(document, _text(report), notes, report.exit_code)


def _text(report: Report) -> str:
    facts = [
        (report.label, _ended(report)),
        ("branch", f"{report.branch} at {short(report.head)}, from {short(report.base)}"),
        ("steps", f"{report.ran} ran, {report.replayed} replayed"),
        *(("open", question) for question in report.questions),
        *(("kept", f"{name}  (`agl recover`)") for name in report.kept),
        ("next", _next(report)),
    ]
    width = max(len(name) for name, _ in facts) + 2
    return "\n".join(f"{name:{width}}{fact}" for name, fact in facts)


def _ended(report: Report) -> str:
    """The result; how it failed is said on standard error."""
    result, state = RESULTS[report.result], STATES[report.outcome]
    if report.exit_code != 0:
        return f"{result}, {state}"
    return result if report.message == state else f"{result}; {report.message}"


def _next(report: Report) -> str:
    show = f"agl show {report.label}"
    match report.outcome:
        case "finished" if report.result == "landed":
            return f"git switch {report.branch}, or {show}"
        case "finished":
            return f"{show}, or agl clear {report.label}"
        case "needs_answer":
            return f"agl resume {report.label} at a terminal, or with --answers FILE"
    return f"agl resume {report.label}, or {show}"
