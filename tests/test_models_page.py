"""What docs/models.md shows is read by AGL, and does what it says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from agl.config.endpoints import PROVIDERS
from agl.config.settings import resolve
from servers.model_server import ModelServer
from test_readme import ROOT, environment

PAGE = (ROOT / "docs" / "models.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(kind: str) -> list[str]:
    return [content for found, content in BLOCK.findall(PAGE) if found == kind]


def test_its_settings_are_settings(tmp_path: Path) -> None:
    shown = blocks("toml")
    assert len(shown) == 2
    for content in shown:
        (tmp_path / "config.toml").write_text(content)
        models = resolve({"AGL_HOME": str(tmp_path)}).models
        assert models.keys() <= set(PROVIDERS)
        assert models


def test_it_names_every_setting() -> None:
    from agl.config.endpoints import Endpoint

    for name in Endpoint.__dataclass_fields__:
        assert re.search(rf"^{name} = ", PAGE, re.MULTILINE), name


def test_its_models_are_models() -> None:
    (content,) = blocks("python")
    names: dict[str, object] = {}
    exec(content, names)
    assert str(names["WRITER"]) == "anthropic:claude-sonnet-4-5"
    assert str(names["REVIEWER"]) == "openai_compatible:qwen3-coder:30b"


@pytest.mark.slow
def test_its_command_runs(tmp_path: Path) -> None:
    (content,) = blocks("sh")
    begin = "git init -q -b main shop && cd shop && git commit -q --allow-empty -m x\n"
    write = {"tool": "write", "arguments": {"path": "a.txt", "content": "a"}}
    done = {"tool": "hand_in", "arguments": {"summary": "done"}}
    found = {"tool": "report_findings", "arguments": {"findings": []}}
    with ModelServer() as server:
        writer = server.session(
            [{"calls": [write]}, {"calls": [done]}, {"text": "x"}],
            key="sk-ant-key",
            models=["claude-sonnet-4-5"],
        )
        reviewer = server.session([{"calls": [found]}, {"text": "x"}], key="sk-key")
        urls = {"ANTHROPIC_BASE_URL": writer.url, "OPENAI_BASE_URL": reviewer.v1}
        ended = subprocess.run(
            ["bash", "-euc", f"{begin}agl init --no-build\n{content}git show agl/greet:a.txt"],
            cwd=tmp_path,
            env={**environment(tmp_path), **urls},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.endswith("a")
