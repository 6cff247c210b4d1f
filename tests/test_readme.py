"""The README's commands do what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_readme_is_true(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text()
    blocks = BLOCK.findall(readme)
    assert len(blocks) == 7
    env = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "AGL_HOME": str(tmp_path / "home"),
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        **{f"GIT_{who}_NAME": "A Person" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "person@example.org" for who in ("AUTHOR", "COMMITTER")},
    }
    said, here = "", tmp_path
    for kind, content in blocks:
        if kind == "text":
            assert without_ids(said).endswith(without_ids(content))
            continue
        done = subprocess.run(
            ["bash", "-euc", content],
            cwd=here,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said, here = done.stdout, tmp_path / "calc"
    assert re.search(r"^first/", said, re.MULTILINE)


def test_the_readme_names_every_folder() -> None:
    tree = (ROOT / "README.md").read_text().split("## The tree")[1]
    for folder in (ROOT / "src" / "agl").iterdir():
        if folder.is_dir() and folder.name != "__pycache__":
            assert f"  {folder.name}/" in tree


def without_ids(text: str) -> str:
    return re.sub(r"\b[0-9a-f]{10}\b", "ID", text)
