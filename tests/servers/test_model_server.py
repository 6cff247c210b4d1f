"""The scripted model server keeps what it promises to the tests that lean on it."""

import http.client
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from servers.model_server import ModelServer, Session

PATHS = ("/v1/messages?beta=true", "/v1/chat/completions", "/v1/responses")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


def post(
    session: Session, path: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> tuple[int, Mapping[str, str], bytes]:
    host, _, prefix = session.url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=60)
    try:
        connection.request("POST", f"/{prefix}{path}", json.dumps(body), dict(headers or {}))
        answer = connection.getresponse()
        return answer.status, dict(answer.headers.items()), answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [True, False])
def test_one_script_drives_each_wire(server: ModelServer, path: str, stream: bool) -> None:
    session = server.session(
        [
            {
                "thinking": {"text": "hm", "signature": "seal"},
                "text": "hello there, dear client",
                "calls": [{"tool": "look", "arguments": {"a": 1}}],
                "usage": {"input_tokens": 7, "output_tokens": 3, "cached_tokens": 2},
            }
        ]
    )
    status, _, body = post(session, path, {"model": "m", "stream": stream, "messages": []})
    assert status == 200
    told = body.decode()
    said = ["hello there,", " dear client"] if stream else ["hello there, dear client"]
    for word in (*said, "look", "call_0_0", '"m"'):
        assert word in told
    assert session.asked[0].body["model"] == "m"
    assert session.asked[0].query == ("beta=true" if "beta" in path else "")


@pytest.mark.parametrize("path", PATHS)
def test_a_failure_has_its_status_and_time(server: ModelServer, path: str) -> None:
    session = server.session(
        [
            {"error": {"kind": "rate_limited", "retry_after_s": 2}},
            {"error": {"kind": "failed", "status": 502}},
        ]
    )
    status, headers, body = post(session, path, {"stream": True})
    assert (status, headers["retry-after"]) == (429, "2")
    assert "error" in json.loads(body)
    assert post(session, path, {})[0] == 502


@pytest.mark.parametrize("kind", ["dropped", "broken", "reset"])
def test_a_stream_that_breaks_off_is_seen_as_broken(server: ModelServer, kind: str) -> None:
    session = server.session([{"text": "x" * 100, "error": {"kind": kind}}])
    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        post(session, PATHS[0], {"stream": True})


def test_a_stream_cut_at_an_event_ends_properly(server: ModelServer) -> None:
    session = server.session([{"text": "x", "error": {"kind": "cut"}}])
    assert b"message_stop" not in post(session, PATHS[0], {"stream": True})[2]


@pytest.mark.parametrize("kind", ["silent", "stalled", "stuck"])
def test_silence_lasts_until_the_client_goes(server: ModelServer, kind: str) -> None:
    session = server.session([{"text": "x", "error": {"kind": kind}}])
    host, port = session.url.removeprefix("http://").split("/")[0].split(":")
    body = b'{"stream": true}'
    head = f"POST /s1/v1/messages HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + body)
        connection.settimeout(0.2)
        seen = b""
        try:
            while data := connection.recv(10_000):
                seen += data
            pytest.fail("the server hung up")
        except TimeoutError:
            pass
    assert (b"200 OK" in seen, b"message_start" in seen) == (kind != "silent", kind == "stuck")


def test_a_part_is_played_to_those_who_hold_its_text(server: ModelServer) -> None:
    session = server.session([{"text": "for anybody"}])
    session.add([{"text": "for the left"}], where="left")
    right = post(session, PATHS[1], {"messages": ["right"]})[2]
    left = post(session, PATHS[1], {"messages": ["left"]})[2]
    assert (b"for anybody" in right, b"for the left" in left) == (True, True)


def test_a_turn_that_nobody_asked_for_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="1 turns were not asked for"), ModelServer() as server:
        server.session([{"text": "x"}])


def test_a_request_beyond_the_script_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="at its end"), ModelServer() as server:
        assert post(server.session([]), PATHS[0], {})[0] == 400


def test_a_lenient_session_takes_both() -> None:
    with ModelServer() as server:
        server.session([{"text": "x"}], strict=False)
        assert post(server.session([], strict=False), PATHS[0], {})[0] == 200


def test_a_misspelt_turn_is_refused(server: ModelServer) -> None:
    with pytest.raises(ValueError, match="txet"):
        server.session([{"txet": "x"}])
    with pytest.raises(ValueError, match="exploded"):
        server.session([{"error": {"kind": "exploded"}}])


def test_a_wrong_key_is_refused(server: ModelServer) -> None:
    session = server.session([{"text": "x"}], key="k")
    assert post(session, PATHS[0], {})[0] == 401
    assert post(session, PATHS[0], {}, {"Authorization": "Bearer k"})[0] == 200


def test_quirks_change_the_bytes(server: ModelServer) -> None:
    quirks = ("no_space", "comments", "crlf", "no_done", "no_index")
    session = server.session([{"calls": [{"tool": "look"}]}], quirks=quirks)
    body = post(session, PATHS[1], {"stream": True})[2]
    assert b'data:{"id"' in body
    assert b": still here\r\n\r\n" in body
    assert b"[DONE]" not in body
    assert b'"function": {"name": "look", "arguments": "{}"}}]' in body


def test_nothing_listens_at_its_end() -> None:
    with ModelServer() as server:
        port = server.port
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=1)
    assert not [one for one in threading.enumerate() if one is server._thread]
