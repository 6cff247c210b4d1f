"""`--max-wait DURATION`."""

from __future__ import annotations

import re

from agl.cli.parsing import Parser
from agl.ports.errors import InputError

_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_NUMBER = r"(\d{1,6}(?:\.\d+)?)"
_PLAIN = re.compile(_NUMBER)
_SPELLED = re.compile("".join(f"(?:{_NUMBER}{unit})?" for unit in _UNITS))


def add_flag(parser: Parser) -> None:
    parser.add_argument(
        "--max-wait",
        metavar="DURATION",
        default="1h",
        help="how long to wait, in a row, for a provider that has no capacity or whose limit is"
        " reached, as in 90s, 15m, 1h30m, 1d, or in plain seconds (default: 1h); 0 waits for"
        " nothing",
    )


def read_duration(text: str) -> float:
    """Seconds.

    Raises:
        InputError: it is no duration.
    """
    if _PLAIN.fullmatch(text):
        return float(text)
    found = _SPELLED.fullmatch(text)
    if found is None or not text:
        raise InputError(f"--max-wait {text!r} is no duration; write 90s, 15m, 1h30m or 1d")
    return sum(
        float(number or 0) * size
        for number, size in zip(found.groups(), _UNITS.values(), strict=True)
    )
