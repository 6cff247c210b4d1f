from __future__ import annotations

from collections.abc import Callable

import pytest

from agl.adapters.memory.store import MemoryStore
from agl.ports.store import Address
from agl.testing.contracts.store import StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()

    @pytest.fixture
    def spoil(self, store: MemoryStore) -> Callable[[Address, str], None]:
        return store.put_text
