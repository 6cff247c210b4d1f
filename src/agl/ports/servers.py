"""What is alike in talking to any model server over HTTP."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from agl.ports.errors import AglError, DeniedError, Transient, UpstreamError, UsageLimited

Key = Callable[[], Awaitable[str]]
"""Gives the key to send, each time anew: a key from a command can have a short life."""

_SPAN = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?")


@dataclass(frozen=True, slots=True)
class Answered:
    """A failure as a server told it. `status` is that of HTTP, also where the failure came within
    a stream; `code` is what the vendor calls it; `wait_s` the time it names."""

    status: int
    said: str
    code: str = ""
    wait_s: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A line of an adapter's table of failures: which answers it is for, and what they become.
    Empty `statuses` are all; `words` are looked for in what was said and in the code."""

    error: type[AglError]
    statuses: tuple[int, ...] = ()
    words: str = ""
    advice: str = ""

    def fits(self, answered: Answered) -> bool:
        if self.statuses and answered.status not in self.statuses:
            return False
        return re.search(self.words, f"{answered.code} {answered.said}", re.IGNORECASE) is not None


def error_of(rows: Sequence[Row], answered: Answered, who: str) -> AglError:
    """The error of the first row that fits. A used up allowance without a time to wait for stays
    used up until somebody changes something."""
    row = next((row for row in rows if row.fits(answered)), Row(UpstreamError))
    said = one_line(answered.said) or "nothing more"
    message = f"{who} answered {answered.status}: {said}{row.advice and '; '}{row.advice}"
    if row.error is UsageLimited and answered.wait_s is None:
        return DeniedError(message)
    if issubclass(row.error, Transient):
        return row.error(message, retry_after_s=answered.wait_s)
    return row.error(message)


def wait_named_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """The seconds that an answer asks to wait: `retry-after-ms` (both vendors' SDKs read it), or
    `retry-after`, a number or a date (RFC 9110)."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None or text is None:
        return seconds
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (until - now).total_seconds())


def span_s(text: str) -> float | None:
    """Seconds of a span as servers write one: `20s`, `850ms`, `7m12.5s`, `1h`."""
    if text.endswith("ms"):
        milliseconds = _number(text[:-2])
        return None if milliseconds is None else milliseconds / 1000
    found = _SPAN.fullmatch(text)
    if not text or found is None:
        return None
    hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + seconds


def utf8(text: str) -> str:
    """The text without lone surrogates, which JSON can spell and UTF-8 cannot send."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def utf8_json(value: object) -> object:
    """A copy of a JSON value in dicts and lists, its texts without lone surrogates."""
    if isinstance(value, str):
        return utf8(value)
    if isinstance(value, Mapping):
        return {utf8(name): utf8_json(inner) for name, inner in value.items()}
    if isinstance(value, tuple | list):
        return [utf8_json(inner) for inner in value]
    return value


def one_line(text: str, most: int = 300) -> str:
    """What a server said, for a sentence."""
    line = " ".join(utf8(text[: 4 * most]).split()).rstrip(".")
    return line if len(line) <= most else line[: most - 1] + "…"


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < 1e9 else None
