"""What a mistyped word was perhaps meant to be."""

from __future__ import annotations

from collections.abc import Iterable


def perhaps(word: str, known: Iterable[str]) -> str:
    """A question in brackets after a word that is not known, or nothing."""
    from difflib import get_close_matches

    meant = get_close_matches(word, list(known), n=1)
    return f" (is {meant[0]} meant?)" if meant else ""
