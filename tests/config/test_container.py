from pathlib import Path

import pytest

from agl.config import container
from agl.config.container import in_memory
from agl.config.settings import Settings
from agl.ports.errors import InputError


async def test_a_new_process_in_memory_sees_what_the_old_one_left(tmp_path: Path) -> None:
    old = in_memory(tmp_path, files={"a.txt": b"a"})
    old.store.write(("x",), {"format": 1})
    head = await old.services.history.resolve("HEAD")
    new = in_memory(tmp_path, after=old)
    assert new.services.store.read(("x",)) == {"format": 1}
    assert await new.services.history.resolve("HEAD") == head
    assert new.services.locks is not old.services.locks


def test_a_folder_outside_any_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not in a git repository"):
        container.find_repository(tmp_path)


def test_the_light_doors_make_nothing(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "home")
    assert container.store(settings).folders(("projects",)) == ()
    assert container.locks(settings).holder(("x", "y")) is None
    assert list(container.event_log(settings).read(("projects", "x"))) == []
    assert list(tmp_path.iterdir()) == []
