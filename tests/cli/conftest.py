"""A repository, a home, and `agl` as a call."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agl.cli.main import main

FLOW = '''
from dataclasses import dataclass
from typing import Literal

from agl.sdk import Choice, ModelId, Role, Run, Screen, Stop, arg, role, workflow


@dataclass(frozen=True)
class Params:
    model: ModelId = arg("--model")
    times: int = arg("--times", default=1, help="how often, up to 100%")
    how: Literal["well", "fast"] = arg("--how", default="well")
    loud: bool = arg("--loud", default=False)
    tag: tuple[str, ...] = arg("-t", "--tag", default=())

    def __post_init__(self) -> None:
        if self.times < 0:
            raise ValueError("--times is below 0")


@role()
def writer() -> Role[None]:
    return Role(name="writer", instructions="Write.")


@workflow(version="1")
async def {name}(run: Run[Params]) -> None:
    """Writes a file."""
    for n in range(run.params.times):
        await run.step(writer(model=run.params.model), commit="write", n=n, tag=run.params.tag)
    if run.params.how == "fast":
        raise Stop("too fast")
    if run.params.loud:
        await run.ask(Screen("Loud?", responses=[Choice("yes", True), Choice("no", False)]))
'''

SCRIPT: dict[str, Any] = {
    "format": 1,
    "steps": {
        f"writer#{n}": [
            {"calls": [{"tool": "write", "arguments": {"path": f"{n}.txt", "content": "x\n"}}]},
            {"text": "done", "usage": {"input_tokens": 5, "output_tokens": 1, "cost_usd": 0.5}},
        ]
        for n in (1, 2, 3)
    },
}


@dataclass(frozen=True)
class Said:
    """What one call of `agl` answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Agl = Callable[..., Said]


@pytest.fixture(autouse=True)
def _machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A Person")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "person@example.org")
    monkeypatch.setenv("AGL_HOME", str(tmp_path / "home"))
    for name in ("AGL_TREES_ROOT", "AGL_KEEP_DAYS", "AGL_BUILD_TIMEOUT_S", "PYTHONUNBUFFERED"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit; the current folder."""
    folder = tmp_path / "calc"
    git(tmp_path, "init", "-q", "-b", "main", "calc")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def project(repo: Path, agl: Agl) -> Path:
    """The repository, registered."""
    assert agl("init", "--no-build").code == 0
    return repo


@pytest.fixture
def flow(tmp_path: Path) -> str:
    """A workflow file of a name of its own, since a process imports a name once."""
    name = f"flow_{tmp_path.name}".replace("-", "_")
    file = tmp_path / f"{name}.py"
    file.write_text(FLOW.replace("{name}", "write"))
    return str(file)


@pytest.fixture
def model(tmp_path: Path) -> str:
    file = tmp_path / "script.json"
    file.write_text(json.dumps(SCRIPT))
    return f"scripted:{file}"


@pytest.fixture
def agl(capsys: pytest.CaptureFixture[str]) -> Agl:
    def call(*words: str) -> Said:
        code = main(words)
        out, err = capsys.readouterr()
        return Said(code, out, err)

    return call


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ("git", "-C", str(folder), *words), check=True, capture_output=True, text=True
    )
    return done.stdout.strip()
