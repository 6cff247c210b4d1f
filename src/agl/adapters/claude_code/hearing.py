"""What the program's messages tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from claude_agent_sdk import (
    AssistantMessage,
    Message,
    RateLimitEvent,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

from agl.adapters.claude_code.failures import Failure
from agl.adapters.claude_code.tools import PREFIX
from agl.ports.agents import Acted, AgentEvent, Priced, Said, Spent
from agl.ports.clock import Clock
from agl.ports.models import Usage

_SYNTHETIC: Final = "<synthetic>"
_OWN_DELAY_S: Final = 1.0
"""The first pause of the program itself is half a second and a bit (2.1.332); a longer one was
named by the server."""
_MAX_LINE: Final = 120


class Hearing:
    """Turns messages into events, and keeps what is needed to go on: the session, the model that
    really answered, which tools are at work."""

    def __init__(self, emit: Callable[[AgentEvent], None], clock: Clock) -> None:
        self._emit = emit
        self._clock = clock
        self.session: str | None = None
        self.model = ""
        self.has_answered = False
        self.turn_is_over = True
        self.text = ""
        self._lines: dict[str, str] = {}
        self._account = _Account(emit)
        self._kind = ""
        self._resets_at: float | None = None

    @property
    def tools_at_work(self) -> bool:
        return bool(self._lines)

    def hear(self, message: Message) -> Failure | bool:
        """True at the end of a turn; a Failure when it went wrong, or is about to be tried again
        by the program itself."""
        match message:
            case StreamEvent(event=event):
                self._account.hear(event)
            case AssistantMessage():
                self._hear_answer(message)
            case UserMessage(content=list(blocks)):
                for block in blocks:
                    if isinstance(block, ToolResultBlock):
                        self._hear_result(block)
            case RateLimitEvent(rate_limit_info=info) if info.status == "rejected":
                self._resets_at = info.resets_at
            case ResultMessage():
                return self._hear_end(message)
            case SystemMessage(subtype="api_retry", data=data):
                return self._retry(data)
        return False

    def begin(self) -> None:
        """A turn: no tool of the last one is at work."""
        self.turn_is_over = False
        self._lines.clear()
        self._kind, self._resets_at = "", None
        self._account.begin()

    def _hear_answer(self, message: AssistantMessage) -> None:
        if message.model == _SYNTHETIC:
            self._kind = message.error or self._kind
            return
        self.session = message.session_id or self.session
        self.model, self.has_answered = message.model, True
        for block in message.content:
            match block:
                case TextBlock(text) if text.strip():
                    self._emit(Said(_printable(text)))
                case ToolUseBlock(id=number, name=name, input=arguments):
                    line = _line_about(name, arguments)
                    self._lines[number] = line
                    self._emit(Acted(line))

    def _hear_result(self, block: ToolResultBlock) -> None:
        line = self._lines.pop(block.tool_use_id, "a tool")
        if block.is_error:
            self._emit(Acted(_short(f"{line} failed: {_text_of(block.content)}")))

    def _hear_end(self, message: ResultMessage) -> Failure | bool:
        self.turn_is_over = True
        self.session = message.session_id if self.has_answered else None
        self._account.settle(message)
        if not message.is_error:
            self.text = _printable(message.result or "") or self.text
            return True
        said = message.result or "; ".join(message.errors or ()) or message.subtype
        kinds = [self._kind, message.terminal_reason or "", message.stop_reason or ""]
        wait_s = None
        if self._resets_at is not None:
            kinds.append("usage_limit")
            wait_s = max(0.0, self._resets_at - self._clock.now().timestamp())
        return Failure(said, " ".join(kinds), message.api_error_status or 0, wait_s)

    def _retry(self, data: Mapping[str, Any]) -> Failure | bool:
        """What the program is about to ask again. Of a limit without a time it is let do so once:
        only then does it say which limit that is."""
        delay_s = data.get("retry_delay_ms", 0) / 1000
        status, kind = data.get("error_status") or 0, str(data.get("error", ""))
        wait_s = delay_s if delay_s > _OWN_DELAY_S else None
        if status == 429 and wait_s is None:
            return False
        said = f"the server answered {status} ({kind})" if status else "the connection broke"
        return Failure(said, f"{kind} api_retry", status, wait_s)


class _Account:
    """Tells what each call used as it comes, and at the end of a turn what was not told yet and
    what all of it cost. The program's own totals go on in a session that is taken up again; the
    price of what it had not settled when it was killed is lost, and with it that of all."""

    def __init__(self, emit: Callable[[AgentEvent], None]) -> None:
        self._emit = emit
        self._call = Usage()
        self._told = Usage()
        self._price: float | None = None
        self._is_settled = True
        self._is_complete = True

    def begin(self) -> None:
        self._is_complete = self._is_complete and self._is_settled
        self._call = Usage()

    def hear(self, event: Mapping[str, Any]) -> None:
        match event:
            case {"type": "message_start", "message": {"usage": dict(usage)}}:
                self._call = _usage_of(usage)
            case {"type": "message_delta", "usage": {"output_tokens": int(output)}}:
                self._call = replace(self._call, output_tokens=output)
            case {"type": "message_stop"}:
                self._tell(self._call)
                self._call = Usage()

    def settle(self, message: ResultMessage) -> None:
        total = Usage()
        for one in (message.model_usage or {}).values():
            cached = one.get("cacheReadInputTokens", 0)
            asked = one.get("inputTokens", 0) + one.get("cacheCreationInputTokens", 0) + cached
            total += Usage(asked, one.get("outputTokens", 0), cached)
        self._tell(_more(total, self._told))
        self._is_settled = True
        price = message.total_cost_usd
        if self._is_complete and price not in (None, self._price) and not self._told.is_nothing:
            self._price = price
            self._emit(Priced(price))

    def _tell(self, usage: Usage) -> None:
        if not usage.is_nothing:
            self._told += usage
            self._is_settled = False
            self._emit(Spent(usage))


def _usage_of(usage: Mapping[str, Any]) -> Usage:
    cached = usage.get("cache_read_input_tokens") or 0
    asked = (usage.get("input_tokens") or 0) + (usage.get("cache_creation_input_tokens") or 0)
    return Usage(asked + cached, usage.get("output_tokens") or 0, cached)


def _more(total: Usage, told: Usage) -> Usage:
    return Usage(
        max(0, total.input_tokens - told.input_tokens),
        max(0, total.output_tokens - told.output_tokens),
        max(0, total.cached_tokens - told.cached_tokens),
    )


def _line_about(name: str, arguments: object) -> str:
    """The arguments are as the model wrote them: any JSON value (2.1.332)."""
    if not isinstance(arguments, Mapping):
        return _short(name.removeprefix(PREFIX))
    fields = ("command", "file_path", "notebook_path", "pattern", "url", "query")
    about = next((arguments[one] for one in fields if isinstance(arguments.get(one), str)), "")
    return _short(f"{name.removeprefix(PREFIX)} {about}")


def _text_of(content: str | list[dict[str, Any]] | None) -> str:
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content)
    return content or ""


def _short(text: str) -> str:
    line = " ".join(_printable(text[: 4 * _MAX_LINE]).split())
    return line if len(line) <= _MAX_LINE else line[: _MAX_LINE - 1] + "…"


def _printable(text: str) -> str:
    """A lone surrogate, which JSON can spell, cannot be printed."""
    return text.encode(errors="replace").decode()
