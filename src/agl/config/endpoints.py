"""What `[models.PROVIDER]` in `config.toml` says of model servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agl.config.spelling import perhaps
from agl.ports.errors import InputError

PROVIDERS = ("anthropic", "openai_compatible")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One provider's server, as it is configured. What is None is the adapter's to decide.
    `api_key_env` names a variable, `api_key_command` a line for the shell that prints the key."""

    base_url: str | None = None
    api_key_env: str | None = None
    api_key_command: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    idle_timeout_s: float | None = None
    max_output_tokens: int | None = None


def read_endpoints(value: object, where: str) -> Mapping[str, Endpoint]:
    """The table `[models]`.

    Raises:
        InputError: it holds what is not known, or a value of the wrong kind.
    """
    if not isinstance(value, dict):
        raise InputError(f"{where} is {value!r}; write a table, as in [models.anthropic]")
    for provider in value:
        if provider not in PROVIDERS:
            known = ", ".join(PROVIDERS)
            raise InputError(
                f"{where}: no provider {provider!r} is set up there; known are {known}"
            )
    return {name: _endpoint(table, f"{where}, {name!r}") for name, table in value.items()}


def _endpoint(table: object, where: str) -> Endpoint:
    if not isinstance(table, dict):
        raise InputError(f"{where} is {table!r}, not a table")
    for name, value in table.items():
        if name not in _READ:
            known = ", ".join(_READ)
            meant = perhaps(name, _READ)
            raise InputError(f"{where}: unknown setting {name!r}{meant}; known are {known}")
        _READ[name](value, f"{where}, {name!r}")
    if "api_key_env" in table and "api_key_command" in table:
        raise InputError(f"{where} has both api_key_env and api_key_command; leave one out")
    return Endpoint(**table)


def _text(value: object, where: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where} is {value!r}, not a text in quotes")


def check_url(value: object, where: str) -> None:
    """Passes the URL of a server.

    Raises:
        InputError: it is none.
    """
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(value if isinstance(value, str) else "")
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return
    except ValueError:
        pass
    raise InputError(f"{where} is {value!r}, not a URL that begins with http:// or https://")


def _headers(value: object, where: str) -> None:
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        raise InputError(f"{where} is {value!r}, not a table of texts")


def _above_0(kinds: tuple[type, ...]) -> Callable[[object, str], None]:
    def check(value: object, where: str) -> None:
        if type(value) not in kinds or not 0 < float(str(value)) < float("inf"):
            whole = "" if float in kinds else "whole "
            raise InputError(f"{where} is {value!r}, not a {whole}number above 0")

    return check


_READ: Mapping[str, Callable[[object, str], None]] = {
    "base_url": check_url,
    "api_key_env": _text,
    "api_key_command": _text,
    "headers": _headers,
    "idle_timeout_s": _above_0((int, float)),
    "max_output_tokens": _above_0((int,)),
}
