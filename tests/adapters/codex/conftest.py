"""The real program against a model server on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters.codex.bench import Bench
from servers.model_server import ModelServer


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    for package in ("codex_cli_bin", "mcp"):
        pytest.importorskip(package, reason="needs openai-codex-cli-bin and mcp of agl[codex]")
    for name in ("home", "tree"):
        (tmp_path / name).mkdir(exist_ok=True)
    with ModelServer() as server:
        yield Bench(server, tmp_path / "home", tmp_path / "tree")
