"""What a repository's own files say of how it is checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from agl.api.builds import detect

NPM = '{"scripts": {"test": "node --test"}}'
DETECTED = [
    ({"Makefile": "all:\n\ntest: all\n\t./run\n", "Cargo.toml": ""}, "make test"),
    ({"Makefile": "check:\n\ttrue\ntest:\n\ttrue\n"}, "make check"),
    ({"tox.ini": "[tox]\n", "conftest.py": ""}, "tox"),
    ({"pyproject.toml": "[tool.tox]\nenv_list = ['py']\n"}, "tox"),
    ({"uv.lock": "", "pyproject.toml": "[tool.pytest.ini_options]\n"}, "uv run pytest -q"),
    ({"uv.lock": "", "pyproject.toml": ""}, "uv run python -m unittest -q"),
    ({"poetry.lock": "", "tests/conftest.py": ""}, "poetry run pytest -q"),
    (
        {"pyproject.toml": "[project]\n[dependency-groups]\ndev = ['pytest']\n"},
        "python3 -m pytest -q",
    ),
    ({"setup.py": ""}, "python3 -m unittest -q"),
    ({"test_calc.py": ""}, "python3 -m unittest -q"),
    ({"package.json": NPM, "pnpm-lock.yaml": ""}, "pnpm install --frozen-lockfile && pnpm test"),
    ({"package.json": NPM, "yarn.lock": ""}, "yarn install --frozen-lockfile && yarn test"),
    (
        {"package.json": NPM, "package-lock.json": "{}"},
        "{ test -d node_modules || npm ci; } && npm test",
    ),
    ({"package.json": NPM}, "{ test -d node_modules || npm install; } && npm test"),
    ({"Cargo.toml": ""}, "cargo test"),
    ({"go.mod": ""}, "go test ./..."),
    ({"pom.xml": "", "mvnw": ""}, "./mvnw -q verify"),
    ({"pom.xml": ""}, "mvn -q verify"),
    ({"build.gradle.kts": "", "gradlew": ""}, "./gradlew build"),
    ({"build.gradle": ""}, "gradle build"),
    ({"shop.sln": ""}, "dotnet test"),
    ({"shop.csproj": ""}, "dotnet test"),
    ({"mix.exs": ""}, "mix deps.get && mix test"),
    ({"composer.json": '{"scripts": {"test": "x"}}'}, "composer install -q && composer test"),
    (
        {"composer.json": "{}", "phpunit.xml": ""},
        "composer install -q && vendor/bin/phpunit",
    ),
]


def made(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(("files", "command"), DETECTED, ids=[c for _, c in DETECTED])
def test_a_tool_is_known_by_its_files(tmp_path: Path, files: dict[str, str], command: str) -> None:
    found = detect(made(tmp_path, files))
    assert found is not None
    assert found.command == command
    assert any(part.split("/")[-1] in found.why for part in files) or "Python" in found.why


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"README.md": "run make test"},
        {"Makefile": "test := 1\nall:\n"},
        {"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'},
        {"package.json": "not json"},
        {"package.json": '{"scripts": []}'},
        {"package.json": '{"scripts": {"test": 1}}'},
        {"composer.json": "{}"},
    ],
)
def test_nothing_is_guessed_without_a_sign(tmp_path: Path, files: dict[str, str]) -> None:
    assert detect(made(tmp_path, files)) is None


def test_a_broken_file_is_no_sign(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"\xff[tool")
    (tmp_path / "Makefile").mkdir()
    found = detect(tmp_path)
    assert found is not None
    assert found.command == "python3 -m unittest -q"
