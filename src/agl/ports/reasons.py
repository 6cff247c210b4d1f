"""Why something could not be read."""

from __future__ import annotations

import json


def reason(error: Exception) -> str:
    """The error of a file that was opened, decoded or parsed as JSON, in plain words."""
    match error:
        case OSError(strerror=str(said)):
            return said
        case UnicodeDecodeError():
            return "it is not UTF-8"
        case RecursionError():
            return "it is nested too deeply"
        case json.JSONDecodeError(lineno=line, colno=column):
            return f"it is not JSON (line {line}, column {column})"
    return str(error)
