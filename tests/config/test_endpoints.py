from pathlib import Path

import pytest

from agl.config.endpoints import Endpoint
from agl.config.settings import resolve
from agl.ports.errors import InputError

WHOLE = """
[models.anthropic]
api_key_command = "pass show anthropic"
max_output_tokens = 64000

[models.openai_compatible]
base_url = "http://localhost:11434/v1"
api_key_env = "ROUTER_KEY"
headers = { X-Team = "blue" }
idle_timeout_s = 900
"""


def test_endpoints_are_read(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(WHOLE)
    assert resolve({"AGL_HOME": str(tmp_path)}).models == {
        "anthropic": Endpoint(api_key_command="pass show anthropic", max_output_tokens=64_000),
        "openai_compatible": Endpoint(
            base_url="http://localhost:11434/v1",
            api_key_env="ROUTER_KEY",
            headers={"X-Team": "blue"},
            idle_timeout_s=900,
        ),
    }


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("models = 3", "'models' is 3"),
        ("[models.gemini]", "no provider 'gemini'"),
        ("[models]\nanthropic = 3", "'anthropic' is 3"),
        ("[models.anthropic]\nbase_ulr = 'x'", "'base_ulr' (is base_url meant?)"),
        ("[models.anthropic]\nbase_url = 'localhost:1'", "'base_url' is 'localhost:1'"),
        ("[models.anthropic]\nbase_url = 'http://'", "'base_url' is 'http://'"),
        ("[models.anthropic]\nbase_url = 'http://x:y'", "'base_url' is 'http://x:y'"),
        ("[models.anthropic]\nbase_url = 3", "'base_url' is 3"),
        ("[models.anthropic]\napi_key_env = ''", "'api_key_env' is ''"),
        ("[models.anthropic]\napi_key_command = 3", "'api_key_command' is 3"),
        ("[models.anthropic]\nheaders = 'x'", "'headers' is 'x'"),
        ("[models.anthropic]\nheaders = { a = 3 }", "'headers' is {'a': 3}"),
        ("[models.anthropic]\nidle_timeout_s = 0", "'idle_timeout_s' is 0"),
        ("[models.anthropic]\nmax_output_tokens = 1.5", "'max_output_tokens' is 1.5"),
        ("[models.anthropic]\nmax_output_tokens = true", "'max_output_tokens' is True"),
        ("[models.anthropic]\napi_key_env='a'\napi_key_command='b'", "leave one out"),
    ],
)
def test_a_wrong_endpoint_is_named_with_its_key(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "config.toml").write_text(content)
    with pytest.raises(InputError) as raised:
        resolve({"AGL_HOME": str(tmp_path)})
    assert said in str(raised.value)
    assert "config.toml" in str(raised.value)
