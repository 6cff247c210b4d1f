from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agl.ports.reasons import reason


@pytest.mark.parametrize(
    ("fails", "said"),
    [
        (lambda: Path("/no/such").read_text(), "No such file or directory"),
        (lambda: b"\xff".decode("utf-8"), "it is not UTF-8"),
        (lambda: json.loads('{"a":\n ?}'), "it is not JSON (line 2, column 2)"),
        (lambda: json.loads("[" * 100_000), "it is nested too deeply"),
        (lambda: int("x"), "invalid literal for int() with base 10: 'x'"),
    ],
)
def test_a_reason_is_in_plain_words(fails: Callable[[], object], said: str) -> None:
    with pytest.raises(Exception) as raised:
        fails()
    assert reason(raised.value) == said
