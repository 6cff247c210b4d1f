"""`--max-wait DURATION`."""

from __future__ import annotations

import re

from agl.cli.parsing import Parser
from agl.ports.errors import InputError

_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


def add_flag(parser: Parser) -> None:
    parser.add_argument(
        "--max-wait",
        metavar="DURATION",
        default="1h",
        help="how long to wait, in a row, for a provider that has no capacity or whose limit is"
        " reached, as in 90s, 15m, 2h (default: 1h); 0 waits for nothing",
    )


def read_duration(text: str) -> float:
    """Seconds.

    Raises:
        InputError: it is no duration.
    """
    found = re.fullmatch(r"(\d{1,6}(?:\.\d+)?)([smh]?)", text)
    if found is None:
        raise InputError(f"--max-wait {text!r} is no duration; write 90s, 15m or 2h")
    return float(found[1]) * _SECONDS[found[2]]
