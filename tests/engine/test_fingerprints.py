"""What an entry is found by depends on what was asked and on nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from agl.ports import ledger_json
from agl.ports.errors import CorruptDocument, InputError, NewerFormat
from agl.ports.ledger import Entry, Epoch, Kind, Outcome, OutcomeKind, RunRecord, Spending
from agl.ports.models import ModelId, Restriction, Usage
from agl.sdk import Choice, Role, Row, Rows, Run, Screen, TextInput, reporting_tool, tool, workflow
from agl.sdk._engine.fingerprints import canonical, digest, fingerprint, plain
from agl.testing import harness

QUICK = settings(max_examples=200, deadline=None, derandomize=True, database=None)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), texts
)
keys = st.one_of(texts, st.sampled_from(["$", "$$", "$set", "$type", "$value", "$path", "$enum"]))
jsons = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=4)),
    max_leaves=12,
)


class Colour(Enum):
    RED = "red"
    __agl_type_name__ = "colour"


class Shade(Enum):
    RED = "red"


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0


Point.__agl_type_name__ = "point"  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Spot:
    x: int
    y: int = 0


class Model(BaseModel):
    x: int


def typed(value: object) -> object:
    """The value with the type of every part, for a comparison that tells True, 1 and 1.0 apart."""
    if isinstance(value, dict):
        return {key: typed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [typed(inner) for inner in value]
    return type(value).__name__, repr(value)


def shuffled(value: object) -> object:
    """An equal value with the keys of its mappings in another order."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    if isinstance(value, list):
        return [shuffled(inner) for inner in value]
    return value


@QUICK
@given(jsons)
def test_a_fingerprint_knows_no_order_of_keys(value: object) -> None:
    assert digest(value) == digest(shuffled(value))


@QUICK
@given(jsons, jsons)
def test_values_share_a_text_only_if_they_are_the_same(one: object, two: object) -> None:
    assert (canonical(one) == canonical(two)) == (typed(one) == typed(two))


@QUICK
@given(jsons)
def test_json_comes_back_from_what_an_agent_reads(value: object) -> None:
    assert typed(plain(value, "value")) == typed(value)


@QUICK
@given(st.recursive(scalars, lambda inner: st.lists(inner, max_size=4), max_leaves=12))
def test_canonical_text_is_json_for_the_same_value(value: object) -> None:
    assert typed(json.loads(canonical(value))) == typed(value)
    assert canonical(json.loads(canonical(value))) == canonical(value)


@QUICK
@given(st.lists(st.one_of(texts, st.integers()), unique=True), st.randoms())
def test_a_fingerprint_knows_no_order_of_sets(members: list[object], chance: Any) -> None:
    other = list(members)
    chance.shuffle(other)
    assert digest(set(members)) == digest(frozenset(other))


def test_true_one_and_one_point_nought_are_three_values() -> None:
    values = [True, 1, 1.0, "1", [1], {1}, False, 0, 0.0, -0.0, None, "", [], {}, set()]
    assert len({digest(value) for value in values}) == len(values)
    assert len({digest({"key": [value]}) for value in values}) == len(values)


def test_sequences_keep_their_order_and_are_all_alike() -> None:
    assert digest([1, 2]) != digest([2, 1])
    assert digest([0, 1]) == digest((0, 1)) == digest(range(2)) == digest(deque([0, 1]))


@pytest.mark.parametrize(
    ("value", "posing"),
    [
        ({1, 2}, {"$set": [1, 2]}),
        (PurePosixPath("a"), {"$path": "a"}),
        (Colour.RED, {"$enum": "colour", "$value": "red"}),
        (Point(1), {"$type": "point", "x": 1, "y": 0}),
        ({"$set": 1}, {"$$set": 1}),
        (PurePosixPath("a"), "a"),
        (Colour.RED, "red"),
        (Colour.RED, Shade.RED),
        (Point(1), Spot(1)),
        (Point(1), {"x": 1, "y": 0}),
    ],
)
def test_nothing_poses_as_something_else(value: object, posing: object) -> None:
    assert digest(value) != digest(posing)


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ({3, 1}, [1, 3]),
        (PurePosixPath("a/b"), "a/b"),
        (Colour.RED, "red"),
        (Point(1), {"x": 1, "y": 0}),
        (Model(x=1), {"x": 1}),
        ({"$set": {"$$": 1}}, {"$set": {"$$": 1}}),
        ({"deep": [{Colour.RED}]}, {"deep": [["red"]]}),
    ],
)
def test_an_agent_reads_plain_values(value: object, read: object) -> None:
    assert plain(value, "value") == read


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        -float("inf"),
        "half \ud800",
        {"half \udfff": 1},
        {1: "one"},
        {None: 1},
        {Point(1): 1},
        b"bytes",
        bytearray(b"bytes"),
        object(),
        len,
        Point,
        1j,
        datetime(2030, 1, 1, tzinfo=UTC),
        (item for item in "ab"),
        PurePosixPath("\udcff"),
        [{"deep": [{1.0, float("inf")}]}],
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_one_text_is_refused_in_one_sentence(value: object) -> None:
    for refuse in (canonical, digest, lambda one: plain(one, "value")):
        with pytest.raises(InputError) as caught:
            refuse(value)
        assert str(caught.value).startswith("value")
        assert "\n" not in str(caught.value)


# Another process, another order of hashes.

ASKED = """
from pathlib import PurePosixPath
from agl.ports.models import Capability, Restriction
from agl.sdk._engine.fingerprints import digest
names = {f"name {n}" for n in range(50)}
print(digest({
    "set": names, "nested": {frozenset({"a", "b", "c"}), frozenset({"d", "e", "f"}), ()},
    "enums": set(Restriction) | set(Capability), "paths": {PurePosixPath(n) for n in names},
    "mapping": {n: {m for m in names} for n in names}, "mixed": {1, "1", 2.5, None, False},
}))
"""


def test_a_fingerprint_knows_no_process() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", ASKED],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("0", "1", "4242")
    }
    assert found == {"8e71ea2b708a26e601703619f227b1bba2066cd9a3514fcc2a4e329b603ce738"}


# Frozen: a change here makes every run of every user begin a new epoch.

GOLDEN: list[tuple[object, str, str]] = [
    (None, "null", "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"),
    (True, "true", "b5bea41b6c623f7c09f1bf24dcae58ebab3c0cdd90ad966bc43a45b44867e12b"),
    (1, "1", "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"),
    (1.0, "1.0", "d0ff5974b6aa52cf562bea5921840c032a860a91a3512f7fe8f768f6bbe005f6"),
    (-0.1, "-0.1", "ffe616e28103a848cc8a18531f5ba096e153b50c6d597297ad5cb69e39496f6a"),
    (1e100, "1e+100", "33d5997bb6b66e3ae3b8e79fff5fe0954bc7b2a38a9d95d83f437d0e57b68f82"),
    (
        'ä "漢"\n',
        '"ä \\"漢\\"\\n"',
        "14d21440491a4da7ffbf77863546f50fb35305c1563e4d5bebcc64e56aadbf04",
    ),
    (
        [1, (2, [])],
        "[1,[2,[]]]",
        "1ea0d80950a5ba05916a6e968ea329ac74dd7aaad26ef5d197bb2e5602cb2747",
    ),
    (
        {"b": 1, "a": {"$": 2}},
        '{"a":{"$$":2},"b":1}',
        "7f33afd45417066466e7425a2fa9ccd3b1a6c1edbf456e622441184f201b5546",
    ),
    (
        {"b", "a"},
        '{"$set":["a","b"]}',
        "54266d7965875abb8fb8da730df57059bd389e31320259c34a5e87b569b6fe47",
    ),
    (
        PurePosixPath("a/b"),
        '{"$path":"a/b"}',
        "bc6432bc41a1bda75a8d8e29e956f4a408b34e836a49003a5654463826fb679c",
    ),
    (
        Colour.RED,
        '{"$enum":"colour","$value":"red"}',
        "1427b231875b41a394dd5c3f4ee309a6ad9fea98ecfa47a4c95d13524ca08a95",
    ),
    (
        Restriction.NO_SHELL,
        '{"$enum":"agl.ports.models.Restriction","$value":"no_shell"}',
        "8753dfa1448d7641ad866622b8b9b127ded436c6f23e1587fe6604db5f34a649",
    ),
    (
        Point(1),
        '{"$type":"point","x":1,"y":0}',
        "74e91b7ccdfb6c799c35a1f0fc2fdd781d68dc51683535acb01890985abd4353",
    ),
]


@pytest.mark.parametrize(("value", "text", "gold"), GOLDEN, ids=[text for _, text, _ in GOLDEN])
def test_golden_digests_of_values(value: object, text: str, gold: str) -> None:
    assert canonical(value) == text
    assert digest(value) == gold


def test_golden_digest_of_terms() -> None:
    assert (
        fingerprint("step", {"b": "2", "a": "1"})
        == "8248c0e2005bd89b9d8a44ea7ac16997b69f9e084493ee391c4595e13992fd29"
    )


@dataclass(frozen=True)
class Finding:
    path: str
    line: int | None = None


@dataclass(frozen=True)
class Findings:
    findings: list[Finding]


async def handle(payload: Finding) -> str:
    return payload.path


async def handle_all(payload: Findings) -> str:
    return "all"


async def handle_otherwise(payload: Finding) -> str:
    return "other"


MODEL = ModelId("fake", "model", (("effort", "high"),))


def a_role(**changed: Any) -> Role[Any]:
    look = tool("look", "Looks.", Finding, changed.pop("handler", handle), type_name="Finding")
    hand_in = reporting_tool("hand_in", "Hands in.", Findings, type_name="Findings")
    model = changed.pop("model", MODEL)
    given: dict[str, Any] = {
        "name": "review",
        "instructions": "Say what is wrong.",
        "restrictions": [Restriction.NO_NETWORK, Restriction.NO_SHELL],
        "tools": [look, hand_in],
    }
    made: Role[Any] = Role(**{**given, **changed})
    return made.on(model)


Walk = Callable[[Run[None]], Any]


def entries_of(folder: Path, walk: Walk) -> tuple[Entry, ...]:
    @workflow(version="1")
    async def flow(run: Run[None]) -> None:
        await walk(run)

    h = harness(folder, verdicts=[True], answers=["yes", "yes"])
    report = h.run(flow)
    assert report.outcome == "finished", report.message
    return h.recorded()


def print_of(folder: Path, role: Role[Any], **call: Any) -> str:
    async def walk(run: Run[None]) -> None:
        await run.step(role, **({"commit": "message", "point": {"x": 1}} | call))

    (entry,) = entries_of(folder, walk)
    return entry.fingerprint


def test_golden_fingerprints_of_entries(tmp_path: Path) -> None:
    async def walk(run: Run[None]) -> None:
        await run.step(a_role(), commit="message", point={"x": 1}, names={"b", "a"})
        await run.verify("make check")
        body = ("text", Row("a", "b"), Rows([["c"], ["d"]]))
        responses: list[Choice[bool] | TextInput[bool]] = [
            Choice("yes", value=True),
            TextInput("say", bool),
        ]
        await run.ask(Screen("Go on?", *body, responses=responses))
        await run.ask(Screen("Go on?", responses=responses), key="go")
        await run.record("now", lambda zone: 1, zone="UTC")

    found = {f"{one.kind.value} {one.name}": one.fingerprint for one in entries_of(tmp_path, walk)}
    assert found == {
        "step review": "2b6cd90914b6f01d66aabedf50a4ce52ff7d25cc0db5b946f48c8e44a244a400",
        "verify verify": "91d1c83369c0c0bfb116a3dd6c2b803c6110a80951aef628d85aae97cd4660ea",
        "ask Go on?": "8ac4d187f634367c2210797a0c8bed4d594e155f91d8bc30bdf92cadccd781bc",
        "ask go": "a9f9e5adfb5076493783cbc72701a92f421bc8d65e853efcfadf8cf52032bbaa",
        "record now": "89b0706e2ccd0a4745306728f7cd5e1217ff5b51f2c2924b69c92ada9d46380c",
    }


def test_what_an_agent_is_not_told_is_not_in_a_fingerprint(tmp_path: Path) -> None:
    same = print_of(tmp_path / "1", a_role())
    restrictions = [Restriction.NO_SHELL, Restriction.NO_NETWORK]
    assert print_of(tmp_path / "2", a_role(), commit="another message") == same
    assert print_of(tmp_path / "3", a_role(), timeout_s=7.0) == same
    assert print_of(tmp_path / "4", a_role(handler=handle_otherwise)) == same
    assert print_of(tmp_path / "5", a_role(restrictions=restrictions)) == same


def test_each_thing_that_an_agent_is_told_is_in_a_fingerprint(tmp_path: Path) -> None:
    look = tool("look", "Looks.", Finding, handle, type_name="Finding")
    roles = [
        a_role(),
        a_role(name="other"),
        a_role(instructions="Say what is right."),
        a_role(restrictions=[Restriction.NO_SHELL]),
        a_role(tools=[look]),
        a_role(tools=[tool("look", "Looks hard.", Finding, handle, type_name="Finding")]),
        a_role(tools=[tool("look", "Looks.", Findings, handle_all, type_name="Finding")]),
        a_role(tools=[tool("look", "Looks.", Finding, handle, type_name="Other")]),
        a_role(tools=[reporting_tool("look", "Looks.", Finding, type_name="Finding")]),
        a_role(model=ModelId("fake", "model", (("effort", "low"),))),
        a_role(model=ModelId("fake", "other", (("effort", "high"),))),
        a_role(model=ModelId("other", "model", (("effort", "high"),))),
    ]
    found = [print_of(tmp_path / str(place), role) for place, role in enumerate(roles)]
    calls: list[dict[str, Any]] = [
        {"commit": None, "discard": True},
        {"point": {"x": 1.0}},
        {"point": {"x": True}},
        {"more": None},
    ]
    for place, call in enumerate(calls):
        found.append(print_of(tmp_path / f"call {place}", a_role(), **call))
    assert len(set(found)) == len(roles) + len(calls)


# The documents of the ledger.

moments = st.datetimes(
    min_value=datetime(2000, 1, 1),
    max_value=datetime(2100, 1, 1),
    timezones=st.builds(lambda hours: timezone(timedelta(hours=hours)), st.integers(-12, 14)),
)
counts = st.integers(0, 2**53)
usages = st.builds(Usage, counts, counts, counts, st.none() | st.floats(0, 1e6, allow_nan=False))
some = st.lists(texts, max_size=3).map(tuple)
tables = st.dictionaries(texts, texts, max_size=3)
optional = st.none() | texts

Codec = tuple[Callable[[Any], Mapping[str, object]], Callable[[Any, str], Any]]
CODECS: dict[type, Codec] = {
    RunRecord: (ledger_json.run_to_json, ledger_json.run_from_json),
    Epoch: (ledger_json.epoch_to_json, ledger_json.epoch_from_json),
    Entry: (ledger_json.entry_to_json, ledger_json.entry_from_json),
    Outcome: (ledger_json.outcome_to_json, ledger_json.outcome_from_json),
    Spending: (ledger_json.spending_to_json, ledger_json.spending_from_json),
}
VALUES: dict[type, st.SearchStrategy[Any]] = {
    RunRecord: st.builds(
        RunRecord, *[texts] * 7, params=st.dictionaries(texts, jsons, max_size=3), created=moments
    ),
    Epoch: st.builds(Epoch, counts, texts, tables, moments),
    Entry: st.builds(
        Entry,
        kind=st.sampled_from(Kind),
        name=texts,
        epoch=counts,
        number=counts,
        fingerprint=texts,
        ordinal=counts,
        value=jsons,
        head_before=texts,
        head_after=texts,
        started=moments,
        finished=moments,
        attempts=some,
        model=optional,
        usage=usages,
        terms=tables,
        given=optional,
        copy_of=st.none() | counts,
        cut_from=st.none() | counts,
    ),
    Outcome: st.builds(
        Outcome,
        st.sampled_from(OutcomeKind),
        counts,
        texts,
        texts,
        moments,
        texts,
        some,
        optional,
        some,
    ),
    Spending: st.builds(
        Spending, texts, texts, texts, counts, counts, texts, usages, moments, moments, texts, texts
    ),
}
documents = pytest.mark.parametrize("kind", list(CODECS), ids=lambda kind: kind.__name__)


def written(kind: type) -> Mapping[str, Any]:
    """A document of that kind as it is read back from its file."""
    encode, _ = CODECS[kind]
    now = datetime(2030, 1, 1, tzinfo=UTC)
    sample: dict[type, object] = {
        RunRecord: RunRecord("w", "1", "s", "l", "HEAD", "b", "agl/l", "/t", {}, now),
        Epoch: Epoch(1, "s", {}, now),
        Entry: Entry(Kind.STEP, "n", 1, 1, "f", 0, None, "a", "b", now, now),
        Outcome: Outcome(OutcomeKind.FAILED, 1, "m", "h", now, "landed"),
        Spending: Spending("a", "", "s", 1, 1, "m", Usage(), now, now),
    }
    document: Mapping[str, Any] = json.loads(json.dumps(encode(sample[kind])))
    return document


@documents
@QUICK
@given(data=st.data())
def test_a_document_comes_back_as_it_was(kind: type, data: st.DataObject) -> None:
    encode, decode = CODECS[kind]
    value = data.draw(VALUES[kind])
    text = json.dumps(encode(value), allow_nan=False)
    assert decode(json.loads(text), "file") == value
    assert json.loads(text)["format"] == 1


@documents
def test_a_newer_document_is_refused_by_name(kind: type) -> None:
    _, decode = CODECS[kind]
    with pytest.raises(NewerFormat, match=r"runs/x/file\.json was written by a newer AGL"):
        decode({**written(kind), "format": 2, "new": 1}, "runs/x/file.json")


@documents
@pytest.mark.parametrize("number", [None, "1", 1.0, True])
def test_a_document_without_a_format_number_is_broken(kind: type, number: object) -> None:
    _, decode = CODECS[kind]
    with pytest.raises(CorruptDocument, match=r"file\.json: no format number"):
        decode({**written(kind), "format": number}, "file.json")


LATER = ("program", "sandbox", "unlanded")
"""What the first documents did not have."""


@documents
def test_a_document_from_before_a_part_was_there_is_read(kind: type) -> None:
    _, decode = CODECS[kind]
    document = written(kind)
    decode({key: value for key, value in document.items() if key not in LATER}, "file.json")
    for part in document.keys() & set(LATER):
        with pytest.raises(CorruptDocument, match=part):
            decode({**document, part: 1}, "file.json")


@documents
def test_a_document_with_a_part_missing_is_broken_and_says_which(kind: type) -> None:
    _, decode = CODECS[kind]
    document = written(kind)
    for part in document.keys() - {"format", *LATER}:
        rest = {key: value for key, value in document.items() if key != part}
        with pytest.raises(CorruptDocument, match=rf"file\.json: '{part}' is missing"):
            decode(rest, "file.json")


@documents
def test_a_document_with_a_part_of_another_type_is_broken_and_says_which(kind: type) -> None:
    _, decode = CODECS[kind]
    document = written(kind)
    for part in document.keys() - {"format", "value"}:
        for wrong in (b"bytes", 1.5, True, {"a": 1.5}, [1.5]):
            if part == "params" and isinstance(wrong, dict):
                continue
            with pytest.raises(CorruptDocument, match=rf"file\.json: '{part}' "):
                decode({**document, part: wrong}, "file.json")
