from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from agl.adapters.rich_terminal.lines import clean, cut, fit, one_line

TEXTS = st.text(st.sampled_from("ab 漢字⚙\u200d👨👩👧\ufe0fe\u0301🇩🇪\u200b…\t\n\x1b\ud800"))


@pytest.mark.parametrize(
    ("text", "cells", "is_cut"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("漢字", 4, "漢字"),
        ("漢字漢", 5, "漢字…"),
        ("漢字漢", 4, "漢…"),
        ("漢字", 1, "…"),
        ("e\u0301e\u0301", 2, "e\u0301e\u0301"),
        ("👨‍👩‍👧 x", 3, "👨‍👩‍👧…"),
        ("abc", 0, ""),
    ],
)
def test_a_text_is_cut_by_its_cells(text: str, cells: int, is_cut: str) -> None:
    assert cut(text, cells) == is_cut


@given(TEXTS, st.integers(0, 12))
def test_what_is_cut_or_fitted_has_its_size(text: str, cells: int) -> None:
    assert cell_len(cut(one_line(text), cells)) <= cells
    assert cell_len(fit(one_line(text), cells)) == cells


@given(st.text())
def test_a_clean_text_acts_on_no_terminal(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode()
    assert not set(map(chr, (*range(10), *range(11, 32), *range(127, 160)))) & set(cleaned)


@pytest.mark.parametrize("text", ["\u200d\u200d漢", "\u200d漢", " \u200d漢", "漢\u200d\u200d漢"])
def test_a_joiner_that_joins_nothing_does_no_harm(text: str) -> None:
    assert cut(one_line(text), 1) in ("", "…")
    assert clean(f"a\n{text}").count("\u200d") == 0
