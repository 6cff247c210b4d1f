"""What every `Verifier` promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from agl.ports.processes import Marker
from agl.ports.verifier import Verifier


class VerifierContract:
    """Subclass it and give the fixture `verifier`, for which `true` passes and `exit 3` fails."""

    @pytest.fixture
    def verifier(self) -> Verifier:
        raise NotImplementedError

    async def test_a_green_build_passes(self, verifier: Verifier, tmp_path: Path) -> None:
        verdict = await verifier.verify(tmp_path, "true", 10, Marker("r"))
        assert verdict.passed
        assert verdict.status == 0

    async def test_a_red_build_is_a_verdict(self, verifier: Verifier, tmp_path: Path) -> None:
        verdict = await verifier.verify(tmp_path, "exit 3", 10, Marker("r"))
        assert not verdict.passed
        assert verdict.status == 3
