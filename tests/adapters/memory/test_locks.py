from __future__ import annotations

import pytest

from agl.adapters.memory.locks import MemoryLocks
from agl.testing.contracts.locks import LocksContract


class TestMemoryLocks(LocksContract):
    @pytest.fixture
    def locks(self) -> MemoryLocks:
        return MemoryLocks()
