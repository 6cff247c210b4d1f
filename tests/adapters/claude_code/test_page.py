"""What docs/claude_code.md shows is so."""

import re
from pathlib import Path

import pytest

from agl.ports.models import Restriction
from agl.sdk import Claude

PAGE = (Path(__file__).parents[3] / "docs" / "claude_code.md").read_text()


def test_its_models_are_models() -> None:
    (content,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    exec(content, names)
    assert names["WRITER"] == Claude.OPUS
    assert str(names["REVIEWER"]) == "claude_code:claude-sonnet-5"


def test_it_names_every_restriction() -> None:
    assert set(re.findall(r"^\| `(no_\w+)` \|", PAGE, re.MULTILINE)) == {
        restriction.value for restriction in Restriction
    }


@pytest.mark.vendor
def test_it_names_every_tool_and_the_oldest_version() -> None:
    pytest.importorskip("claude_agent_sdk", reason="needs claude-agent-sdk of agl[claude-code]")
    from agl.adapters.claude_code.permissions import tools_for
    from agl.adapters.claude_code.program import LEAST

    (row,) = re.findall(r"^\| tools \| (.*) \|$", PAGE, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", row)) == set(tools_for(frozenset()))
    assert f"{'.'.join(map(str, LEAST))} or\nnewer" in PAGE
