"""A model server on loopback that plays scripts: one session each, by the prefix of the URL.

    session = server.session([{"text": "hello"}, {"error": {"kind": "overloaded"}}])
    session.url           # for ANTHROPIC_BASE_URL; session.v1 for an OpenAI base URL

The same turns drive Anthropic Messages, chat completions and Responses. It runs in a thread of its
own, so that it serves the test's event loop and other processes alike.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from servers.anthropic_wire import AnthropicWire
from servers.chat_wire import ChatWire
from servers.http import Asked, Reply, read_request
from servers.responses_wire import ResponsesWire
from servers.turns import STATUSES, Failure, Turn, turn_of
from servers.wires import Wire, encoded

WIRES: Mapping[str, Wire] = {
    "messages": AnthropicWire(),
    "chat/completions": ChatWire(),
    "responses": ResponsesWire(),
}

_TICK_S = 0.02


@dataclass(frozen=True)
class Request:
    """A request of the log. `path` is what follows the session's prefix."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: Any

    @property
    def text(self) -> str:
        return json.dumps(self.body)


class Session:
    """A script, where it has come to, and the log. With `strict`, a request beyond the script and
    a turn that was not asked for are errors of the test; else an agent is told nothing more."""

    def __init__(
        self,
        url: str,
        turns: Sequence[Mapping[str, Any]],
        *,
        quirks: Iterable[str] = (),
        models: Sequence[Mapping[str, Any] | str] | None = (),
        shows: Mapping[str, Mapping[str, Any]] | None = None,
        key: str | None = None,
        strict: bool = True,
    ) -> None:
        self.url = url
        self.v1 = f"{url}/v1"
        self.quirks = frozenset(quirks)
        self.models = models
        self.shows = shows
        self.key = key
        self.strict = strict
        self.only_v1 = False
        self.requests: list[Request] = []
        self.strays: list[str] = []
        self._parts: list[tuple[str, list[Turn]]] = []
        self._lock = threading.Lock()
        if turns:
            self.add(turns)

    def add(self, turns: Sequence[Mapping[str, Any]], *, where: str = "") -> None:
        """Turns for requests that hold the text, before those of an earlier part."""
        made = [turn_of(turn, number) for number, turn in enumerate(turns)]
        self._parts.insert(0, (where, made))

    @property
    def asked(self) -> list[Request]:
        """The requests that were for a turn."""
        return [request for request in self.requests if request.path in WIRES]

    @property
    def open_turns(self) -> int:
        return sum(len(turns) for _, turns in self._parts)

    def next_turn(self, request: Request) -> Turn | None:
        with self._lock:
            for where, turns in self._parts:
                if turns and where in request.text:
                    return turns.pop(0)
            if not self.strict:
                return Turn()
            self.strays.append(f"{request.method} {request.path}: the script is at its end")
            return None

    def check(self) -> None:
        """Fails when something was asked that was not written, or not asked that was."""
        if self.strict:
            assert not self.strays, f"{self.url}: {self.strays}"
            assert not self.open_turns, f"{self.url}: {self.open_turns} turns were not asked for"


class ModelServer:
    """To be used in a `with`: at its end nothing listens, and each session is checked."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    def session(self, turns: Sequence[Mapping[str, Any]] = (), **more: Any) -> Session:
        """A session under a prefix of its own; `more` is as for Session."""
        name = f"s{len(self.sessions) + 1}"
        made = Session(f"http://127.0.0.1:{self.port}/{name}", turns, **more)
        self.sessions[name] = made
        return made

    def __enter__(self) -> ModelServer:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, *failure: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
        if failure[0] is None:
            for session in self.sessions.values():
                session.check()

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**26)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while (asked := await read_request(reader)) is not None:
                if not await self._answer(asked, Reply(writer), reader):
                    break
                if asked.headers.get("connection", "").lower() == "close":
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, asked: Asked, reply: Reply, reader: asyncio.StreamReader) -> bool:
        """Whether the connection can be used again."""
        _, name, *rest = asked.path.split("/")
        session = self.sessions.get(name)
        if session is None:
            await reply.whole(404, b"{}")
            return True
        path = "/".join(rest).removeprefix("v1/")
        request = Request(asked.method, path, asked.query, asked.headers, _body(asked))
        session.requests.append(request)
        wire = WIRES.get(path)
        if session.key is not None and not _is_allowed(request, session.key):
            speaker = (
                wire or WIRES["messages" if "anthropic-version" in asked.headers else "responses"]
            )
            return await _fail(reply, speaker, Failure("auth"))
        if session.only_v1 and rest[0] != "v1":
            await reply.whole(404, b"404 page not found", "text/plain")
            return True
        if wire is not None and asked.method == "POST":
            return await _play(session, wire, request, reply, reader)
        return await _beside(session, request, reply)


async def _beside(session: Session, request: Request, reply: Reply) -> bool:
    """What is asked beside turns: for models, tokens, whether anybody is there."""
    if request.path == "models" and session.models is not None:
        entries = [
            {"id": one, "object": "model"} if isinstance(one, str) else dict(one)
            for one in session.models
        ]
        page = {"object": "list", "data": entries, "has_more": False}
        await reply.whole(200, json.dumps(page).encode())
        return True
    if request.path.startswith("models/") and session.models is not None:
        wanted = request.path.removeprefix("models/")
        entries = [{"id": one} if isinstance(one, str) else dict(one) for one in session.models]
        found = next((one for one in entries if one["id"] == wanted), None)
        if found is not None:
            await reply.whole(200, json.dumps({**found, "type": "model"}).encode())
            return True
    if request.path == "api/show" and session.shows is not None:
        shown = session.shows.get(request.body.get("model", ""))
        await reply.whole(404 if shown is None else 200, json.dumps(shown or {}).encode())
        return True
    if request.path == "messages/count_tokens":
        await reply.whole(200, b'{"input_tokens": 1}')
        return True
    await reply.whole(404, b'{"error": {"type": "not_found_error", "message": "no such page"}}')
    return True


async def _play(
    session: Session, wire: Wire, request: Request, reply: Reply, reader: asyncio.StreamReader
) -> bool:
    if "no_tools" in session.quirks and request.body.get("tools"):
        return await _fail(reply, wire, Failure("no_tools"))
    turn = session.next_turn(request)
    if turn is None:
        return await _fail(reply, wire, Failure("bad_request", message="the script is at its end"))
    if turn.delay_s:
        await asyncio.sleep(turn.delay_s)
    failure = turn.failure
    if failure is not None and failure.kind in STATUSES:
        return await _fail(reply, wire, failure)
    if failure is not None and failure.kind == "silent":
        await reader.read()
        return False
    if failure is not None and failure.kind == "hung_up":
        return False
    if failure is not None and failure.kind == "html":
        await reply.whole(200, b"<!doctype html><p>Welcome.", "text/html")
        return True
    if not request.body.get("stream"):
        if failure is not None:
            return False
        await reply.whole(200, json.dumps(wire.whole(turn, request.body)).encode())
        return True
    return await _stream(session, wire, turn, request, reply, reader)


async def _stream(
    session: Session,
    wire: Wire,
    turn: Turn,
    request: Request,
    reply: Reply,
    reader: asyncio.StreamReader,
) -> bool:
    await reply.begin()
    events = wire.events(turn, request.body, session.quirks)
    failure = turn.failure
    last = len(events)
    if failure is not None:
        last = len(events) // 2 if failure.after is None else failure.after
        last = 0 if failure.kind == "stalled" else last
    for event in events[:last]:
        for _ in range(round(turn.gap_s / _TICK_S)):
            await asyncio.sleep(_TICK_S)
            if "comments" in session.quirks:
                await reply.chunk(b": still here\n\n")
        await reply.chunk(encoded(event, session.quirks))
    if failure is None:
        await reply.end()
        return True
    match failure.kind:
        case "stalled" | "stuck":
            await reader.read()
        case "reset":
            # What was sent before a reset is lost to a client that has not read it yet.
            await asyncio.sleep(0.05)
            reply.reset()
        case "broken":
            await reply.half_chunk(encoded(events[last], session.quirks))
        case "garbage":
            name, _ = events[last]
            await reply.chunk(encoded((name, '{"type": "mess'), session.quirks))
            await reply.end()
        case "said":
            said = wire.said(failure.what, failure)
            await reply.chunk(encoded(wire.error_event(said), session.quirks))
            await reply.end()
        case "cut":
            await reply.end()
        case _:
            pass
    return False


async def _fail(reply: Reply, wire: Wire, failure: Failure) -> bool:
    said = wire.said(failure.kind, failure)
    headers = dict(failure.headers)
    if failure.retry_after_s is not None:
        headers["retry-after"] = f"{failure.retry_after_s:g}"
    body = wire.error_body(said)
    body["error"] |= failure.more
    written = json.dumps(body if failure.body is None else failure.body).encode()
    await reply.whole(said.status, written, headers=headers)
    return True


def _body(asked: Asked) -> Any:
    try:
        return json.loads(asked.body or b"{}")
    except ValueError:
        return {"not_json": repr(asked.body[:200])}


def _is_allowed(request: Request, key: str) -> bool:
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
    return key in (given, request.headers.get("x-api-key"))
