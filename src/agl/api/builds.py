"""How a project is checked, as its own files tell."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Detected:
    """A build command, and in a few words why it was chosen."""

    command: str
    why: str


def detect(folder: Path) -> Detected | None:
    """The build command that the files in a repository's top folder speak for, or None. What the
    authors wrote down as their own test command comes before what a tool would do by itself."""
    for look in (_make, _tox, _python, _node, _named_files):
        found = look(folder)
        if found is not None:
            return found
    return None


# A tree of a run has the tracked files alone: what a tool installs beside them, it must install
# there first.
_FILES: tuple[tuple[str, str, str], ...] = (
    ("Cargo.toml", "cargo test", ""),
    ("go.mod", "go test ./...", ""),
    ("mvnw", "./mvnw -q verify", ""),
    ("pom.xml", "mvn -q verify", ""),
    ("gradlew", "./gradlew build", ""),
    ("build.gradle", "gradle build", ""),
    ("build.gradle.kts", "gradle build", ""),
    ("*.sln", "dotnet test", ""),
    ("*.slnx", "dotnet test", ""),
    ("*.csproj", "dotnet test", ""),
    ("*.fsproj", "dotnet test", ""),
    ("mix.exs", "mix deps.get && mix test", ""),
    ("composer.json", "composer install -q && composer test", '"test"'),
    ("phpunit.xml", "composer install -q && vendor/bin/phpunit", ""),
    ("phpunit.xml.dist", "composer install -q && vendor/bin/phpunit", ""),
)

_NODE: tuple[tuple[str, str], ...] = (
    ("pnpm-lock.yaml", "pnpm install --frozen-lockfile && pnpm test"),
    ("yarn.lock", "yarn install --frozen-lockfile && yarn test"),
    ("package-lock.json", "{ test -d node_modules || npm ci; } && npm test"),
    ("package.json", "{ test -d node_modules || npm install; } && npm test"),
)


def _make(folder: Path) -> Detected | None:
    for name in ("GNUmakefile", "makefile", "Makefile"):
        text = _read(folder / name)
        for target in ("check", "test"):
            if re.search(rf"^{target}\s*:(?!=)", text, re.MULTILINE):
                return Detected(f"make {target}", f"{name} has a target {target!r}")
    return None


def _tox(folder: Path) -> Detected | None:
    if (folder / "tox.ini").is_file() or (folder / "tox.toml").is_file():
        return Detected("tox", "there is a tox.ini or tox.toml")
    if "tox" in _tools(folder):
        return Detected("tox", "pyproject.toml configures tox")
    return None


def _python(folder: Path) -> Detected | None:
    why = next(_signs_of_pytest(folder), None)
    tests = "pytest -q" if why else "python -m unittest -q"
    for lock, runner in (("uv.lock", "uv run"), ("poetry.lock", "poetry run")):
        if (folder / lock).is_file():
            return Detected(
                f"{runner} {tests}", f"there is a {lock}" + (f" and {why}" if why else "")
            )
    if why:
        return Detected("python3 -m pytest -q", why)
    is_python = any((folder / name).is_file() for name in ("pyproject.toml", "setup.py"))
    if is_python or any(folder.glob("test*.py")):
        return Detected("python3 -m unittest -q", "there is Python, and no sign of pytest")
    return None


def _signs_of_pytest(folder: Path) -> Iterator[str]:
    if "pytest" in _tools(folder):
        yield "pyproject.toml configures pytest"
    for name in ("pytest.ini", "conftest.py", "tests/conftest.py", "test/conftest.py"):
        if (folder / name).is_file():
            yield f"there is {name}"
    for name in ("pyproject.toml", "setup.cfg", "requirements-dev.txt", "requirements.txt"):
        if re.search(r"\bpytest\b", _read(folder / name)):
            yield f"{name} names pytest"


def _node(folder: Path) -> Detected | None:
    script = _scripts(folder).get("test", "")
    # What `npm init` writes where there are no tests.
    if not isinstance(script, str) or not script or "no test specified" in script:
        return None
    for name, command in _NODE:
        if (folder / name).is_file():
            return Detected(command, f"package.json has a script 'test', and there is {name}")
    return None


def _named_files(folder: Path) -> Detected | None:
    for pattern, command, holds in _FILES:
        for file in sorted(folder.glob(pattern)):
            if file.is_file() and holds in _read(file):
                return Detected(command, f"there is {file.name}")
    return None


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""


def _parsed(file: Path, parse: Callable[[str], object]) -> dict[str, object]:
    try:
        found = parse(_read(file))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _tools(folder: Path) -> dict[str, object]:
    tools = _parsed(folder / "pyproject.toml", tomllib.loads).get("tool")
    return tools if isinstance(tools, dict) else {}


def _scripts(folder: Path) -> dict[str, object]:
    scripts = _parsed(folder / "package.json", json.loads).get("scripts")
    return scripts if isinstance(scripts, dict) else {}
