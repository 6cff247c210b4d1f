from importlib import metadata
from pathlib import Path

import pytest

from agl.config.entry_points import entry_points


def test_it_says_what_importlib_metadata_says() -> None:
    everything = metadata.entry_points()
    assert {"console_scripts", "pytest11"} <= everything.groups
    for group in everything.groups:
        theirs = {
            one.name: one.value.partition("[")[0].strip() for one in everything.select(group=group)
        }
        assert entry_points(group) == theirs


def test_the_first_package_on_the_path_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("b", "a"):
        info = tmp_path / name / f"{name}-1.dist-info"
        info.mkdir(parents=True)
        (info / "entry_points.txt").write_text(
            f"[other]\nx = no:no\n\n[agl.workflows]\n# y = no:no\nx={name}.m:f [extra]\n"
        )
        monkeypatch.syspath_prepend(tmp_path / name)
    assert entry_points("agl.workflows")["x"] == "a.m:f"
    assert "y" not in entry_points("agl.workflows")
