from __future__ import annotations

from collections.abc import Callable

import pytest

from agl.adapters.system import SystemClock
from agl.testing.contracts.clock import ClockContract


class TestSystemClock(ClockContract):
    @pytest.fixture
    def clock(self) -> SystemClock:
        return SystemClock()

    @pytest.fixture
    def pass_time(self) -> Callable[[float], None]:
        return lambda seconds: None
