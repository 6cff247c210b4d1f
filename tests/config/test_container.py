import subprocess
import sys
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


@pytest.mark.parametrize(
    ("package", "model", "extra"),
    [("anthropic", "anthropic:x", "anthropic"), ("openai", "openai_compatible:x", "openai")],
)
def test_a_vendor_that_is_not_installed_is_named_with_what_to_type(
    package: str, model: str, extra: str
) -> None:
    program = f"""
import sys
sys.modules[{package!r}] = None
from pathlib import Path
from agl.adapters.memory.clock import ManualClock
from agl.adapters.memory.processes import MemoryProcesses
from agl.config.container import _agents
from agl.config.settings import Settings
from agl.ports.errors import InputError
from agl.ports.models import ModelId
agents = _agents(Settings(Path("/x")), MemoryProcesses({{}}), ManualClock(), {{}})
try:
    agents.capabilities(ModelId.parse({model!r}))
except InputError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    how = f"`{sys.executable} -m pip install 'agl[{extra}]'`"
    assert done.stdout == f"{package} is not installed; {how}\n"


def test_an_import_that_fails_within_an_adapter_is_our_bug() -> None:
    with pytest.raises(ImportError), container.needs("anthropic", extra="anthropic"):
        raise ImportError("x", name="agl.no_such_module")
