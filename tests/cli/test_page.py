from __future__ import annotations

import io
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path

import pytest

from agl.cli.page import Page, plain, table, write
from agl.cli.words import seconds, spent, spent_in_all, spent_in_short
from agl.ports.models import Usage


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    when: datetime
    path: Path


def test_values_of_the_api_become_json() -> None:
    inner = Inner(datetime(2030, 1, 1, tzinfo=UTC), Path("/x"))
    assert plain({"a": (inner,), "b": {Colour.RED}, "c": None}) == {
        "a": [{"when": "2030-01-01T00:00:00+00:00", "path": "/x"}],
        "b": ["red"],
        "c": None,
    }


def test_a_tables_columns_stand_under_each_other() -> None:
    assert table(("A", "B"), [("long", "x"), ("s", "")]) == "A     B\nlong  x\ns"


def test_no_control_character_reaches_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    write(Page({}, "a\x1b[31mb\x9bc\td\ne", "\x07note"), as_json=False)
    out, err = capsys.readouterr()
    assert out == "a\ufffd[31mb\ufffdc\td\ne\n"
    assert err == "\ufffdnote\n"


def test_a_document_is_one_line_safe_for_any_encoding(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert write(Page({"a": "ü\ud800"}, "text", "note", 3), as_json=True) == 3
    out, err = capsys.readouterr()
    assert (out, err) == ('{\n  "a": "\\u00fc\\ud800"\n}\n', "")


def test_what_an_output_cannot_spell_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", stream)
    write(Page({}, "größe"), as_json=False)
    assert stream.buffer.getvalue() == b"gr\\xf6\\xdfe\n"


@pytest.mark.parametrize(
    ("duration_s", "text"),
    [(0.04, "0.0s"), (59.4, "59.4s"), (61, "1m01s"), (3599.6, "1h00m"), (7260, "2h01m")],
)
def test_durations_are_short(duration_s: float, text: str) -> None:
    assert seconds(duration_s) == text


def test_an_unknown_price_is_called_unknown() -> None:
    assert spent(Usage(1, 2)) == "3 tokens, price unknown"
    assert spent(Usage(1, 2, 0, 0.5)) == "3 tokens, $0.50"
    assert spent(Usage()) == ""


@pytest.mark.parametrize(
    ("cost_usd", "text"),
    [
        (0, "$0.00"),
        (0.000031, "$0.000031"),
        (0.0042, "$0.0042"),
        (0.005, "$0.01"),
        (0.017, "$0.02"),
        (12.345, "$12.35"),
    ],
)
def test_money_that_was_spent_never_reads_as_nothing(cost_usd: float, text: str) -> None:
    assert spent(Usage(1, 2, 0, cost_usd)) == f"3 tokens, {text}"


def test_a_sum_says_what_is_known_and_what_is_not() -> None:
    priced, unpriced = Usage(11_000, 0, 0, 0.0151), Usage(6000, 600)
    mixed = "17600 tokens, $0.02 and 6600 tokens without a price"
    assert spent_in_all([priced, unpriced]) == mixed
    assert spent_in_all([priced, priced, Usage()]) == "22000 tokens, $0.03"
    assert spent_in_all([unpriced, unpriced]) == "13200 tokens, price unknown"
    assert spent_in_all([]) == ""


@pytest.mark.parametrize(
    ("usage", "text"),
    [
        (Usage(), ""),
        (Usage(999, 0, 0, 0.01), "999 tok, $0.01"),
        (Usage(1000, 0, 0, 0.01), "1.0k tok, $0.01"),
        (Usage(3000, 300), "3.3k tok, $ ?"),
        (Usage(999_949), "999.9k tok, $ ?"),
        (Usage(999_950), "1.0M tok, $ ?"),
    ],
)
def test_a_column_has_the_spending_in_short(usage: Usage, text: str) -> None:
    assert spent_in_short(usage) == text
