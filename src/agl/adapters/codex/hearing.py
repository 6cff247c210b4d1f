"""What the program's messages tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from agl.adapters.codex.conversation import Message
from agl.adapters.codex.failures import Failure, failure_of
from agl.adapters.codex.reading import number, part, parts, word
from agl.ports.agents import Acted, AgentEvent, Said, Spent
from agl.ports.clock import Clock
from agl.ports.models import Usage
from agl.ports.servers import utf8

_MAX_LINE: Final = 120
_WAITING: Final = ("mcpToolCall", "dynamicToolCall")
"""Tools that take as long as they like."""


class Hearing:
    """Turns messages into events, and keeps what is needed to go on: the thread, the model that
    really answered, which tools are at work."""

    def __init__(self, emit: Callable[[AgentEvent], None], clock: Clock) -> None:
        self._emit = emit
        self._clock = clock
        self.thread: str | None = None
        self.turn = ""
        self.model = ""
        self.has_answered = False
        self.turn_is_over = True
        self.text = ""
        self._at_work: dict[str, str] = {}
        self._told = Usage()
        self._resets_at: float | None = None

    @property
    def waits_for_a_tool(self) -> bool:
        return any(kind in _WAITING for kind in self._at_work.values())

    @property
    def runs_a_command(self) -> bool:
        return bool(self._at_work)

    def opened(self, thread: str, model: str) -> None:
        """A thread is there, a new one or the old one again. In a new one nobody has answered."""
        if thread != self.thread:
            self._told = Usage()
            self.has_answered = False
        self.thread, self.model = thread, model

    def begin(self) -> None:
        """A turn: no tool of the last one is at work."""
        self.turn_is_over = False
        self._at_work.clear()
        self._resets_at = None

    def hear(self, message: Message) -> Failure | bool:
        """True at the end of a turn; a Failure when it went wrong."""
        params = message.params
        match message.method:
            case "item/started":
                self._hear_start(part(params, "item"))
            case "item/completed":
                self._hear_end_of(part(params, "item"))
            case "thread/tokenUsage/updated":
                self._account(part(params, "tokenUsage"))
            case "account/rateLimits/updated":
                self._hear_limits(part(params, "rateLimits"))
            case "model/rerouted":
                self.model = str(params.get("toModel") or self.model)
            case "error" if params.get("willRetry"):
                return self._hear_retry(part(params, "error"))
            case "turn/completed":
                return self._hear_end(part(params, "turn"))
        return False

    def _hear_start(self, item: Mapping[str, Any]) -> None:
        line = _line_about(item)
        if line:
            self.has_answered = True
            self._at_work[str(item.get("id"))] = str(item.get("type"))
            self._emit(Acted(line))

    def _hear_end_of(self, item: Mapping[str, Any]) -> None:
        self._at_work.pop(str(item.get("id")), None)
        text = item.get("text")
        if item.get("type") == "agentMessage" and isinstance(text, str):
            self.has_answered = True
            self.text = utf8(text)
            if text.strip():
                self._emit(Said(self.text))
        elif item.get("status") in ("failed", "declined"):
            self._emit(Acted(_short(f"{_line_about(item)} failed: {_output_of(item)}")))

    def _account(self, usage: Mapping[str, Any]) -> None:
        """Totals go on in a thread that is taken up again."""
        total = part(usage, "total")
        spent = Usage(
            max(0, number(total, "inputTokens") - self._told.input_tokens),
            max(0, number(total, "outputTokens") - self._told.output_tokens),
            max(0, number(total, "cachedInputTokens") - self._told.cached_tokens),
        )
        if not spent.is_nothing:
            self._told += spent
            self._emit(Spent(spent))

    def _hear_limits(self, limits: Mapping[str, Any]) -> None:
        """When the windows that are used up begin anew."""
        windows = [part(limits, name) for name in ("primary", "secondary")]
        until = [
            number(one, "resetsAt")
            for one in windows
            if number(one, "usedPercent") >= 100 and number(one, "resetsAt")
        ]
        self._resets_at = max(until, default=self._resets_at)

    def _hear_retry(self, error: Mapping[str, Any]) -> Failure | bool:
        """What is about to be asked again is AGL's to decide. Only from web sockets the program is
        let go on, to what it falls back to."""
        if re.search(r"url: wss?:", str(error.get("additionalDetails"))):
            return False
        return failure_of(error, self._clock.now(), self._resets_at)

    def _hear_end(self, turn: Mapping[str, Any]) -> Failure | bool:
        self.turn_is_over = True
        status = turn.get("status")
        if status == "completed":
            return True
        error = part(turn, "error") or {"message": f"its turn was {status}"}
        return failure_of(error, self._clock.now(), self._resets_at)


def _line_about(item: Mapping[str, Any]) -> str:
    """Empty: nothing that a person would call work."""
    match item.get("type"):
        case "commandExecution":
            actions = [word(one, "command") for one in parts(item, "commandActions")]
            return _short(f"shell {' && '.join(actions) or item.get('command', '')}")
        case "fileChange":
            paths = [str(one.get("path", "")) for one in parts(item, "changes")]
            return _short(f"edit {' '.join(paths)}")
        case "mcpToolCall" | "dynamicToolCall":
            return _short(str(item.get("tool", "a tool")))
        case "webSearch":
            return _short(f"search {item.get('query', '')}")
    return ""


def _output_of(item: Mapping[str, Any]) -> str:
    error, result = item.get("error"), item.get("result")
    if isinstance(error, Mapping):
        return str(error.get("message", ""))
    if isinstance(result, Mapping):
        return " ".join(word(one, "text") for one in parts(result, "content"))
    return str(item.get("aggregatedOutput") or item.get("status"))


def _short(text: str) -> str:
    line = " ".join(utf8(text[: 4 * _MAX_LINE]).split())
    return line if len(line) <= _MAX_LINE else line[: _MAX_LINE - 1] + "…"
