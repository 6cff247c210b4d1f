import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from agl.adapters.memory.clock import ManualClock
from agl.adapters.memory.processes import MemoryProcesses
from agl.adapters.system import SystemProcesses
from agl.config.endpoints import Endpoint
from agl.config.keys import KeyCommand, Reached, reached, without_keys
from agl.ports.errors import AuthenticationFailed, InputError

OPENAI = "openai_compatible"


def found(
    environ: Mapping[str, str], endpoint: Endpoint | None = None, provider: str = OPENAI
) -> Reached:
    endpoints = {} if endpoint is None else {provider: endpoint}
    return reached(provider, endpoints, environ, MemoryProcesses({}), ManualClock())


def test_the_vendors_variable_goes_to_the_vendor() -> None:
    made = found({"ANTHROPIC_API_KEY": " k\n", "OPENAI_API_KEY": "o"}, provider="anthropic")
    assert (made["base_url"], made["key"], made["key_name"]) == (None, "k", "ANTHROPIC_API_KEY")


def test_the_vendors_variable_does_not_go_to_a_url_of_the_file() -> None:
    environ = {"OPENAI_API_KEY": "secret", "MINE": "m"}
    elsewhere = "http://elsewhere/v1"
    assert found(environ, Endpoint(base_url=elsewhere))["key"] is None
    assert found(environ, Endpoint(base_url=elsewhere, api_key_env="MINE"))["key"] == "m"
    named = found({**environ, "OPENAI_BASE_URL": "http://there/v1"}, Endpoint(base_url=elsewhere))
    assert (named["base_url"], named["key"]) == ("http://there/v1", "secret")


def test_what_is_not_set_is_the_adapters_to_decide() -> None:
    assert found({}).keys() == {"base_url", "key", "key_name", "headers"}
    made = found({}, Endpoint(idle_timeout_s=5, max_output_tokens=9, headers={"a": "b"}))
    assert (made["idle_s"], made["max_output_tokens"], made["headers"]) == (5, 9, {"a": "b"})


def test_what_is_no_url_or_key_is_refused() -> None:
    with pytest.raises(InputError, match="OPENAI_BASE_URL is 'localhost:1'"):
        found({"OPENAI_BASE_URL": "localhost:1"})
    with pytest.raises(AuthenticationFailed, match="OPENAI_API_KEY holds no key") as raised:
        found({"OPENAI_API_KEY": "two\nlines"})
    assert "two" not in str(raised.value)


def test_an_agents_children_get_no_key() -> None:
    environ = {"PATH": "/bin", "OPENAI_API_KEY": "a", "ANTHROPIC_API_KEY": "b", "MINE": "c"}
    endpoints = {OPENAI: Endpoint(api_key_env="MINE")}
    assert without_keys(environ, endpoints) == {"PATH": "/bin"}


def command(line: str, clock: ManualClock | None = None) -> KeyCommand:
    return KeyCommand(line, dict(os.environ), SystemProcesses(), clock or ManualClock())


async def test_a_command_is_run_once_in_five_minutes(tmp_path: Path) -> None:
    clock = ManualClock()
    key = command(f"echo run >> {tmp_path}/runs; echo key-$(wc -l < {tmp_path}/runs)", clock)
    assert set(await asyncio.gather(key(), key(), key())) == {"key-1"}
    clock.advance(299)
    assert await key() == "key-1"
    clock.advance(2)
    assert await key() == "key-2"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("echo no vault >&2; exit 3", "ended with status 3: no vault"),
        ("true", "printed no key"),
        ("echo a; echo b", "printed no key"),
        ("no-such-program-here", "ended with status 127"),
    ],
)
async def test_a_command_that_fails_is_named(line: str, said: str) -> None:
    with pytest.raises(AuthenticationFailed) as raised:
        await command(line)()
    assert said in str(raised.value)
    assert repr(line) in str(raised.value)


def test_a_command_of_the_file_gives_the_key() -> None:
    assert isinstance(found({}, Endpoint(api_key_command="true"))["key"], KeyCommand)
