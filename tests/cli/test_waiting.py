"""`--max-wait DURATION`."""

from __future__ import annotations

import pytest

from agl.cli.waiting import read_duration
from agl.ports.errors import InputError
from cli.conftest import Agl


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("45", 45),
        ("1.5", 1.5),
        ("90s", 90),
        ("15m", 900),
        ("0.5h", 1800),
        ("1h30m", 5400),
        ("1d", 86400),
        ("1d2h3m4s", 93784),
    ],
)
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert read_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "h", "-1", "1h30", "30m1h", "1h1h", "1 h", "1w", "1e3", "1234567"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="write 90s, 15m, 1h30m or 1d"):
        read_duration(text)


def test_help_says_how_a_child_and_a_duration_are_written(agl: Agl) -> None:
    shown = " ".join(agl("resume", "--help").out.split())
    assert "of a child CHILD/STEP, and CHILD/ lands it again" in shown
    assert "as in 90s, 15m, 1h30m, 1d, or in plain seconds" in shown
