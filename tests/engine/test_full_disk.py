"""A disk that is full from some write of the ledger on: the first thing that failed is told."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from agl.adapters.memory.store import MemoryStore
from agl.api import runs
from agl.config import container
from agl.ports.ids import Label
from agl.ports.store import Address, Document
from agl.sdk import Run, UpstreamError
from engine.authored import THREE, of, three, writer


class FullStore(MemoryStore):
    """Refuses its write number `at`, and with `for_ever` all that come after it."""

    def __init__(self, at: int, *, for_ever: bool) -> None:
        super().__init__()
        self._left = at
        self._for_ever = for_ever
        self.failures = 0

    def write(self, address: Address, document: Document) -> None:
        self._left -= 1
        if self._left == 0 or (self._left < 0 and self._for_ever):
            self.failures += 1
            raise UpstreamError(f"no space, failure {self.failures}")
        super().write(address, document)


def said(folder: Path, store: FullStore, body: Callable[[Run[None]], Awaitable[None]]) -> str:
    """What a run tells that meets the full disk."""
    flow = of(body)
    world = container.in_memory(folder, agent=THREE, verdicts=lambda tree, command: True)
    services = dataclasses.replace(world.services, store=store)
    loaded = runs.Loaded(flow.module, flow)
    try:
        return asyncio.run(runs.run(services, loaded, Label("run"), None)).message
    except UpstreamError as error:
        return str(error)


@pytest.mark.parametrize("for_ever", [False, True])
def test_what_failed_first_is_told_whatever_fails_after_it(tmp_path: Path, for_ever: bool) -> None:
    async def body(run: Run[None]) -> None:
        await three(run)
        await run.step(writer("last"), commit="Last")

    for at in range(1, 100):
        store = FullStore(at, for_ever=for_ever)
        text = said(tmp_path / str(at), store, body)
        if not store.failures:
            assert at > 20
            return
        assert "failure 1" in text, (at, text)
    raise AssertionError("it never ends")


def test_an_end_that_could_not_be_written_is_told(tmp_path: Path) -> None:
    async def body(run: Run[None]) -> None:
        raise ValueError("the author's own")

    text = said(tmp_path, FullStore(3, for_ever=True), body)
    assert "the author's own" in text
    assert "failure 1" in text
    assert "agl resume run" in text
