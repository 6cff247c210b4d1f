"""What one more document in a folder costs, when there are few and when there are many."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

from agl.adapters.filesystem import FilesystemStore
from agl.adapters.filesystem.store import encoded
from agl.ports.store import Address, Document
from bench.figures import Figure

BLOCK = 10
DOCUMENT: Document = {"format": 1, "value": {"text": "x" * 1000}}


def measure(folder: Path, documents: int, sample: int) -> list[Figure]:
    """The first `sample` writes of one folder and the last of another that comes to hold
    `documents`, in blocks by turns, so that both meet the same disk."""
    store = FilesystemStore(folder)
    full = folder / "full"
    full.mkdir(parents=True)
    for number in range(documents - sample):
        (full / f"{number:06}.json").write_bytes(encoded(DOCUMENT))
    first: list[float] = []
    last: list[float] = []
    for begin in range(0, sample, BLOCK):
        numbers = range(begin, min(begin + BLOCK, sample))
        first += [_write_ms(store, ("empty", f"{number:06}")) for number in numbers]
        before = documents - sample
        last += [_write_ms(store, ("full", f"{before + number:06}")) for number in numbers]
    return [
        Figure("journaled write, the first ones", median(first), "ms"),
        Figure(f"journaled write, at {documents:,}", median(last), "ms"),
        Figure(
            f"journaled write, at {documents:,} : the first", median(last) / median(first), "×", 1.2
        ),
    ]


def _write_ms(store: FilesystemStore, address: Address) -> float:
    began = time.perf_counter()
    store.write(address, DOCUMENT)
    return (time.perf_counter() - began) * 1000
