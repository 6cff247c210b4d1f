from datetime import UTC, datetime

import pytest

from agl.ports.errors import (
    AglError,
    DeniedError,
    Overloaded,
    RateLimited,
    UpstreamError,
    UsageLimited,
)
from agl.ports.servers import (
    Answered,
    Row,
    error_of,
    one_line,
    span_s,
    utf8_json,
    wait_named_s,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "20"}, 20),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Tue, 01 Jan 2030 00:02:00 GMT"}, 120),
        ({"retry-after": "Tue, 01 Jan 2030 00:02:00 -0000"}, 120),
        ({"retry-after": "Mon, 31 Dec 2029 00:00:00 GMT"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
    ],
)
def test_the_time_to_wait_is_read(headers: dict[str, str], expected: float | None) -> None:
    assert wait_named_s(headers, NOW) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("20s", 20),
        ("850ms", 0.85),
        ("7m12.5s", 432.5),
        ("1h", 3600),
        ("1h2m3s", 3723),
        ("", None),
        ("x", None),
        ("xms", None),
    ],
)
def test_a_span_is_read(text: str, expected: float | None) -> None:
    assert span_s(text) == expected


def test_the_first_row_that_fits_counts() -> None:
    rows = (Row(RateLimited, (429,), "slow"), Row(Overloaded, (429, 503), "", "wait"))

    def made(status: int, said: str, wait_s: float | None = None) -> AglError:
        return error_of(rows, Answered(status, said, wait_s=wait_s), "x")

    assert type(made(429, "too SLOW")) is RateLimited
    error = made(503, "no\n room.", 3)
    assert isinstance(error, Overloaded)
    assert (str(error), error.retry_after_s) == ("x answered 503: no room; wait", 3)
    assert type(made(400, "")) is UpstreamError


@pytest.mark.parametrize(("wait_s", "expected"), [(None, DeniedError), (0.0, UsageLimited)])
def test_an_allowance_without_an_end_is_final(
    wait_s: float | None, expected: type[AglError]
) -> None:
    assert type(error_of([Row(UsageLimited)], Answered(429, "", wait_s=wait_s), "x")) is expected


def test_lone_surrogates_are_not_sent() -> None:
    assert utf8_json({"a\ud800": ["é\udcff", 1, None, ("x",)]}) == {"a?": ["é?", 1, None, ["x"]]}
    assert one_line("a\ud800\n b" + "x" * 400) == "a? b" + "x" * 295 + "…"
