from __future__ import annotations

from pathlib import Path

import pytest

from adapters.git.hands import GitTrees


@pytest.fixture
def repo(tmp_path: Path) -> GitTrees:
    return GitTrees(tmp_path)
