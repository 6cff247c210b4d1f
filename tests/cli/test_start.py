"""What a command loads before it answers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import json, os, sys
from agl.cli.main import main
sys.stdout = open(os.devnull, "w")
main(sys.argv[1:])
json.dump(sorted(sys.modules), sys.__stdout__)
"""
HEAVY = {
    "asyncio",
    "pydantic",
    "secrets",
    "subprocess",
    "rich",
    "prompt_toolkit",
    "agl.sdk",
    "agl.adapters.git.runner",
}


@pytest.mark.parametrize("words", [("--help",), ("list",), ("workflows",), ("list", "--json")])
def test_commands_that_only_look_load_little(project: Path, words: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, *words], capture_output=True, text=True, check=True
    )
    assert HEAVY & set(json.loads(done.stdout)) == set()
