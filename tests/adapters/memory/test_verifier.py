from __future__ import annotations

from pathlib import Path

import pytest

from agl.adapters.memory.verifier import MemoryVerifier
from agl.ports.errors import InternalError
from agl.ports.processes import Marker
from agl.ports.verifier import Verdict
from agl.testing.contracts.verifier import VerifierContract

RED = Verdict(passed=False, status=3, tail="boom")


def judge(tree: Path, command: str) -> bool | Verdict:
    return True if command == "true" else RED


class TestMemoryVerifier(VerifierContract):
    @pytest.fixture
    def verifier(self) -> MemoryVerifier:
        return MemoryVerifier(judge)


async def test_verdicts_come_in_their_order(tmp_path: Path) -> None:
    verifier = MemoryVerifier([True, RED, False])
    verdicts = [await verifier.verify(tmp_path, f"make {n}", 1, Marker("r")) for n in range(3)]
    assert [verdict.passed for verdict in verdicts] == [True, False, False]
    assert verdicts[1] == RED
    assert verifier.calls == [(f"make {n}", tmp_path) for n in range(3)]


async def test_more_builds_than_verdicts_are_an_error_of_the_test(tmp_path: Path) -> None:
    with pytest.raises(InternalError, match="'make'"):
        await MemoryVerifier([]).verify(tmp_path, "make", 1, Marker("r"))
