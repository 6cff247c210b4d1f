"""`anthropic:NAME`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import httpx2
from anthropic import AnthropicError, APIStatusError, AsyncAnthropic, Timeout

from agl.adapters.anthropic.asking import body_of, settings_of
from agl.adapters.anthropic.failures import translated
from agl.adapters.anthropic.hearing import Heard
from agl.ports.clock import Clock
from agl.ports.errors import AuthenticationFailed, NotFoundError, StreamDropped, UpstreamError
from agl.ports.llm import LLM, LLMRequest, LLMResponse
from agl.ports.models import ModelId
from agl.ports.servers import Key, one_line

BASE_URL = "https://api.anthropic.com"
_CONNECT_S = 10.0
_READY_S = 10.0
_MUTE_S = 900.0
_NO_KEY = "none"


class AnthropicLLM(LLM):
    """Models behind the Messages API. `key` is the key, or gives it each time; `key_name` is where
    it would have come from. A server that sends no byte for `idle_s` is given up, and so is one
    that for a quarter of an hour only shows that it is there."""

    def __init__(
        self,
        clock: Clock,
        *,
        key: str | Key | None = None,
        key_name: str = "ANTHROPIC_API_KEY",
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        idle_s: float = 120.0,
        mute_s: float = _MUTE_S,
        max_output_tokens: int = 32_000,
    ) -> None:
        self._clock = clock
        self._key = key
        self._key_name = key_name
        self._url = (base_url or BASE_URL).rstrip("/")
        self._headers = dict(headers or {})
        self._idle_s = idle_s
        self._mute_s = mute_s
        self._max_output_tokens = max_output_tokens
        self._who = f"anthropic ({self._url})"
        self._made: AsyncAnthropic | None = None

    async def check_ready(self, model: ModelId) -> None:
        settings_of(model)
        if self._key is None and self._url == BASE_URL:
            raise AuthenticationFailed(
                f"there is no key for {str(model)!r}; set {self._key_name}, or api_key_command"
                " under [models.anthropic] in config.toml"
            )
        client = await self._client()
        try:
            found = await client.models.retrieve(model.name, timeout=_READY_S)
        except APIStatusError as error:
            mine = translated(error, self._who, self._clock.now(), _READY_S)
            if isinstance(mine, AuthenticationFailed):
                raise mine from error
            if isinstance(mine, NotFoundError) and self._url == BASE_URL:
                raise mine from error
        except (AnthropicError, httpx2.HTTPError, ValueError) as error:
            mine = translated(error, self._who, self._clock.now(), _READY_S)
            raise UpstreamError(
                f"{mine}; is the server running, and the base URL right?"
            ) from error
        else:
            if getattr(found, "lifecycle", None) == "retired":
                raise NotFoundError(f"model {str(model)!r} is retired; choose another")

    async def generate(self, request: LLMRequest, on_delta: Callable[[str], None]) -> LLMResponse:
        body = body_of(request, self._max_output_tokens)
        client = await self._client()
        heard = Heard(request.model.name, on_delta)
        try:
            async with asyncio.timeout(self._mute_s) as limit:
                async with await client.messages.create(**body, stream=True) as stream:
                    await _check_kind(stream.response, self._who)
                    async for event in stream:
                        limit.reschedule(asyncio.get_running_loop().time() + self._mute_s)
                        heard.hear(event)
        except (AnthropicError, httpx2.HTTPError, ValueError) as error:
            raise translated(error, self._who, self._clock.now(), self._idle_s) from error
        except TimeoutError as error:
            raise StreamDropped(f"{self._who} has said nothing for {self._mute_s:g} s") from error
        return heard.response()

    async def _client(self) -> AsyncAnthropic:
        """No connection is kept: one that went stale while tools were at work would fail the next
        request, which the SDK is told not to send again."""
        if self._made is None:
            self._made = AsyncAnthropic(
                api_key=_NO_KEY,
                base_url=self._url,
                max_retries=0,
                timeout=Timeout(self._idle_s, connect=_CONNECT_S),
                default_headers={"Connection": "close", **self._headers},
            )
        if self._key is not None:
            self._made.api_key = self._key if isinstance(self._key, str) else await self._key()
        return self._made


async def _check_kind(response: httpx2.Response, who: str) -> None:
    """A page, or an answer in one piece, is no stream.

    Raises:
        UpstreamError: it is one of those, with how it begins.
    """
    kind = response.headers.get("content-type", "").split(";")[0]
    if kind in ("text/html", "application/json"):
        said = one_line((await response.aread()).decode(errors="replace"))
        raise UpstreamError(
            f"{who} answered with {kind} instead of a stream, check the base URL: {said}"
        )
