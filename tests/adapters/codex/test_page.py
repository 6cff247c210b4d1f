"""What docs/codex.md shows is so."""

import re
import shlex
from pathlib import Path

import pytest

from agl.ports.models import Restriction
from agl.sdk import Codex

PAGE = (Path(__file__).parents[3] / "docs" / "codex.md").read_text()
FAMILIES = {"sol", "terra", "luna", "astra"}


def test_its_models_are_models() -> None:
    (content,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    exec(content, names)
    assert names["WRITER"] == Codex.SOL
    assert str(names["REVIEWER"]) == "codex:gpt-5.6-terra"


def test_it_names_every_family() -> None:
    (line,) = re.findall(r"^(`sol`.*?): the newest", PAGE, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", line)) == FAMILIES
    models = (Codex.SOL, Codex.TERRA, Codex.LUNA, Codex.ASTRA)
    assert {model.name for model in models} == FAMILIES


def test_its_commands_are_commands() -> None:
    (content,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    words = shlex.split(content.replace("\\\n", " "), comments=True)
    assert {word for word in words if word.startswith("codex:")} <= {
        f"codex:{name}" for name in FAMILIES
    }


def test_it_names_every_restriction() -> None:
    assert set(re.findall(r"^\| `(no_\w+)` \|", PAGE, re.MULTILINE)) == {
        restriction.value for restriction in Restriction
    }


@pytest.mark.vendor
def test_it_names_every_effort_and_the_oldest_version() -> None:
    pytest.importorskip("codex_cli_bin", reason="needs openai-codex-cli-bin of agl[codex]")
    from agl.adapters.codex.asking import EFFORTS
    from agl.adapters.codex.program import LEAST

    (efforts,) = re.findall(r"`effort` is (.*?), and part", PAGE, re.DOTALL)
    assert tuple(re.findall(r"`(\w+)`", efforts)) == EFFORTS
    assert f"{'.'.join(map(str, LEAST))} or\nnewer" in PAGE
