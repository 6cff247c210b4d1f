from __future__ import annotations

import pytest

from agl.adapters.memory.event_log import MemoryEventLog
from agl.testing.contracts.event_log import EventLogContract


class TestMemoryEventLog(EventLogContract):
    @pytest.fixture
    def log(self) -> MemoryEventLog:
        return MemoryEventLog()
