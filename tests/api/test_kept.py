from __future__ import annotations

from pathlib import Path

import pytest

from agl.api import kept
from agl.config.container import in_memory
from agl.ports.errors import NotFoundError
from agl.ports.ids import Label, Scope
from agl.ports.workspace import Keeping


async def test_what_was_kept_comes_back_by_its_name(tmp_path: Path) -> None:
    services = in_memory(tmp_path, files={"a.txt": b"a"}).services
    base = await services.history.resolve("HEAD")
    scope = Scope(services.project, Label("one"))
    tree = await services.workspaces.open(scope, base)
    (tree.path / "new.txt").write_text("new")
    await tree.restore(base, Keeping(scope, "a test"))
    (item,) = await kept.items(services)
    assert await kept.items(services, Label("two")) == ()
    assert (item.kind, item.subject) == ("commit", "a test")
    assert (await kept.bring_back(services, item.name, "back")).commit == item.commit
    tip = await services.history.tip("back")
    assert tip is not None
    assert (await services.history.files(tip))["new.txt"] == b"new"


async def test_an_unknown_name_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="nothing is kept as 'x'"):
        await kept.bring_back(in_memory(tmp_path, files={}).services, "x", "back")
