import pytest

from agl.ports.errors import InputError
from agl.ports.models import ModelId
from agl.sdk import Anthropic, OpenAICompatible


def test_a_model_has_any_name() -> None:
    assert OpenAICompatible("a/b:c") == ModelId.parse("openai_compatible:a/b:c")
    assert Anthropic("claude-x") == ModelId.parse("anthropic:claude-x")
    with pytest.raises(InputError):
        Anthropic("")


def test_what_is_asked_of_a_model_is_part_of_it() -> None:
    asked = Anthropic("claude-x", thinking="adaptive", effort="high")
    assert asked.settings == (("effort", "high"), ("thinking", "adaptive"))
    assert OpenAICompatible("x", effort="low").settings == (("effort", "low"),)
