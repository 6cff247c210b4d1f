"""Where model servers are and with which keys: environment > `config.toml` > defaults."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

from agl.config.endpoints import Endpoint, check_url
from agl.ports.clock import Clock
from agl.ports.errors import AuthenticationFailed
from agl.ports.processes import Command, NotStarted, Processes
from agl.ports.servers import Key, one_line

_VARIABLES = {"anthropic": "ANTHROPIC", "openai_compatible": "OPENAI"}
_SECRETS = frozenset(
    (
        *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"),
        *("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_CUSTOM_HEADERS"),
    )
)
"""Where the SDKs themselves look for secrets."""

_A_KEY = "one line of plain characters"
_KEY_LIVES_S = 300.0
_COMMAND_S = 60.0


class Reached(TypedDict, total=False):
    """An endpoint with what the environment says, as the adapters take it."""

    base_url: str | None
    key: str | Key | None
    key_name: str
    headers: Mapping[str, str]
    idle_s: float
    max_output_tokens: int


def reached(
    provider: str,
    endpoints: Mapping[str, Endpoint],
    environ: Mapping[str, str],
    processes: Processes,
    clock: Clock,
) -> Reached:
    """Where the provider's server is, and the key. The vendor's own variable goes to the vendor, or
    where the environment says, and never to a base URL of the file, which names its own.

    Raises:
        InputError, AuthenticationFailed: the environment's URL or key is none.
    """
    endpoint = endpoints.get(provider, Endpoint())
    prefix = _VARIABLES[provider]
    url = environ.get(f"{prefix}_BASE_URL")
    if url:
        check_url(url, f"{prefix}_BASE_URL")
    variable = endpoint.api_key_env or f"{prefix}_API_KEY"
    key: str | Key | None = None
    if endpoint.api_key_command is not None:
        key = KeyCommand(endpoint.api_key_command, environ, processes, clock)
    elif endpoint.api_key_env or url or not endpoint.base_url:
        key = environ.get(variable, "").strip() or None
        if key and not _is_key(key):
            raise AuthenticationFailed(f"{variable} holds no key, which is {_A_KEY}")
    made = Reached(
        base_url=url or endpoint.base_url, key=key, key_name=variable, headers=endpoint.headers
    )
    if endpoint.idle_timeout_s is not None:
        made["idle_s"] = endpoint.idle_timeout_s
    if endpoint.max_output_tokens is not None:
        made["max_output_tokens"] = endpoint.max_output_tokens
    return made


def without_keys(environ: Mapping[str, str], endpoints: Mapping[str, Endpoint]) -> dict[str, str]:
    """The environment for an agent's own children: without what opens a vendor's door."""
    named = {endpoint.api_key_env for endpoint in endpoints.values()}
    return {name: value for name, value in environ.items() if name not in _SECRETS | named}


class KeyCommand:
    """Gives the key that a command prints, for five minutes the same one; steps that ask at the
    same time wait for one run of it."""

    def __init__(
        self, command: str, environ: Mapping[str, str], processes: Processes, clock: Clock
    ) -> None:
        self._command = command
        self._environ = environ
        self._processes = processes
        self._clock = clock
        self._turn = asyncio.Lock()
        self._key = ""
        self._until_s = -math.inf

    async def __call__(self) -> str:
        """The key.

        Raises:
            AuthenticationFailed: the command failed, or printed nothing.
        """
        async with self._turn:
            if self._clock.monotonic_s() >= self._until_s:
                self._key = await self._run()
                self._until_s = self._clock.monotonic_s() + _KEY_LIVES_S
            return self._key

    async def _run(self) -> str:
        argv = ("/bin/sh", "-c", self._command)
        command = Command(argv, Path("/"), self._environ, timeout_s=_COMMAND_S)
        try:
            done = await self._processes.run(command)
        except NotStarted as error:
            raise AuthenticationFailed(f"api_key_command cannot be run: {error}") from error
        key = done.stdout.decode(errors="replace").strip()
        if done.timed_out:
            raise self._failed(f"took more than {_COMMAND_S:g} s")
        if done.status:
            said = one_line(done.stderr.decode(errors="replace"))
            raise self._failed(f"ended with status {done.status}: {said}")
        if not _is_key(key):
            raise self._failed(f"printed no key, which is {_A_KEY}")
        return key

    def _failed(self, how: str) -> AuthenticationFailed:
        return AuthenticationFailed(f"api_key_command {self._command!r} {how}; try it in a shell")


def _is_key(text: str) -> bool:
    return bool(text) and text.isprintable() and text.isascii()
