"""What a server tells of a model without being paid for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from openai import APIStatusError, AsyncOpenAI

from agl.ports.errors import InputError, NotFoundError
from agl.ports.models import ModelId

_READY_S = 10.0
_MOST_NAMES = 5
_LISTS_ALL = ("vllm", "library")
"""Who is said to own the models of vLLM, and of Ollama: what these do not list, they do not have.
llama.cpp answers to any name, and gateways have more than they list."""


async def check(client: AsyncOpenAI, url: str, model: ModelId, who: str) -> None:
    """Asks for the list of models, and Ollama for what the model can do.

    Raises:
        InputError, NotFoundError: the model cannot be used, or the URL is not the right one.
        APIError: the server's own failure.
    """
    try:
        listed = await _page(client, f"{url}/models")
    except APIStatusError as error:
        if error.status_code == 404 and await _is_below(client, url):
            raise InputError(f"{who} is not the base URL; write {f'{url}/v1'!r}") from error
        if error.status_code in (401, 403):
            raise
        return
    entries = _entries(listed)
    entry = _of(model.name, entries)
    if entry is None and _is_complete(entries, url):
        names = ", ".join(repr(one["id"]) for one in entries[:_MOST_NAMES]) or "none"
        raise NotFoundError(f"{who} has no model {model.name!r}; it has {names}")
    able = (entry or {}).get("supported_parameters")
    if any(one.get("owned_by") == "library" for one in entries):
        able = await _abilities(client, url, model.name)
    if isinstance(able, list) and "tools" not in able:
        raise InputError(f"model {str(model)!r} cannot call tools; choose one that can")


async def _page(client: AsyncOpenAI, url: str) -> object:
    return await client.get(url, cast_to=object, options={"timeout": _READY_S})


async def _is_below(client: AsyncOpenAI, url: str) -> bool:
    try:
        return bool(_entries(await _page(client, f"{url}/v1/models")))
    except APIStatusError:
        return False


async def _abilities(client: AsyncOpenAI, url: str, name: str) -> object:
    """Ollama's `capabilities` of a model, or None where it does not tell."""
    root = url.removesuffix("/v1")
    try:
        shown = await client.post(
            f"{root}/api/show",
            cast_to=object,
            body={"model": name},
            options={"timeout": _READY_S},
        )
    except APIStatusError:
        return None
    return shown.get("capabilities") if isinstance(shown, Mapping) else None


def _entries(page: object) -> list[Mapping[str, Any]]:
    data = page.get("data") if isinstance(page, Mapping) else None
    if not isinstance(data, list):
        return []
    return [one for one in data if isinstance(one, Mapping) and isinstance(one.get("id"), str)]


def _of(name: str, entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The model's entry. Ollama adds a tag; OpenRouter knows tags that it does not list."""
    for wanted in (name, f"{name}:latest", name.rpartition(":")[0]):
        for entry in entries:
            if entry["id"] == wanted:
                return entry
    return None


def _is_complete(entries: Sequence[Mapping[str, Any]], url: str) -> bool:
    """Whether a model that is not listed is not there."""
    if any(one.get("owned_by") in _LISTS_ALL or "supported_parameters" in one for one in entries):
        return True
    return url.startswith("https://api.openai.com/")
