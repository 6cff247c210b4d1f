"""Failures as pages."""

from __future__ import annotations

from agl.cli.page import Page
from agl.ports.errors import AglError, InternalError, exit_code_of, leaves


def page_of(error: Exception) -> Page:
    """A refusal in a sentence; anything unknown is a bug of ours, with its traceback."""
    found = leaves(error)
    if all(isinstance(leaf, AglError) and not isinstance(leaf, InternalError) for leaf in found):
        kind = type(found[0]).__name__ if len(found) == 1 else "GroupFailed"
        message = "\n".join(dict.fromkeys(str(leaf) for leaf in found))
        return failure_page(kind, message, exit_code_of(error))
    import traceback

    trace = "".join(traceback.format_exception(error)).rstrip()
    message = "this is a bug in AGL; please report it with the command and this output"
    page = failure_page("InternalError", f"{message}: {found[0]!r}", InternalError.exit_code)
    return Page(page.document, "", f"{trace}\nagl: {message}", page.exit_code)


def stopped_page(number: int, resumes: str | None, error: Exception | None) -> Page:
    """What is said when a signal ended a command; `error` is what failed on the way out."""
    import signal

    said = [] if error is None else [page_of(error).notes.removeprefix("agl: ")]
    said.append(f"stopped by {signal.Signals(number).name}")
    if resumes is not None:
        said.append(f"`{resumes}` goes on from here")
    return failure_page("Interrupted", "; ".join(said), 128 + number)


def failure_page(kind: str, message: str, exit_code: int) -> Page:
    document = {"error": {"kind": kind, "message": message, "exit_code": exit_code}}
    return Page(document, "", f"agl: {message}", exit_code)
