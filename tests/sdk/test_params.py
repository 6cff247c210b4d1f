"""A workflow's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agl.sdk import InputError, ModelId, arg
from agl.sdk.params import Param, params_from_json, params_of, params_to_json


@dataclass(frozen=True)
class Params:
    request: str = arg("-r", "--request", help="what to do")
    rounds: int = arg("--rounds", default=3)
    share: float = arg("--share", default=0.5)
    fast: bool = arg("--fast", default=False)
    careful: bool = arg("--careful", default=True)
    model: ModelId = arg("--model", default=ModelId("fake", "one"))
    style: Literal["plain", "loud"] = arg("--style", default="plain")
    note: str | None = arg("--note", default=None)
    files: tuple[str, ...] = arg("--file", default=())


@given(
    st.builds(
        Params,
        request=st.text(),
        rounds=st.integers(),
        share=st.floats(allow_nan=False, allow_infinity=False),
        fast=st.booleans(),
        careful=st.booleans(),
        model=st.builds(ModelId, st.just("fake"), st.text(min_size=1)),
        style=st.sampled_from(["plain", "loud"]),
        note=st.none() | st.text(),
        files=st.lists(st.text()).map(tuple),
    )
)
def test_parameters_round_trip(params: Params) -> None:
    assert params_from_json(Params, params_to_json(params)) == params


def by_name(name: str) -> Param:
    return next(param for param in params_of(Params) if param.name == name)


def test_a_field_without_a_default_is_required() -> None:
    assert by_name("request").required
    assert not by_name("note").required
    with pytest.raises(InputError, match="--request is required"):
        params_from_json(Params, {})


def test_only_a_bool_that_is_false_at_first_is_a_switch() -> None:
    assert by_name("fast").is_switch
    assert not by_name("careful").is_switch


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rounds", "many"),
        ("share", "half"),
        ("careful", "yes"),
        ("style", "quiet"),
        ("model", "opus"),
    ],
)
def test_a_value_of_another_kind_is_refused_naming_the_flag(name: str, text: str) -> None:
    with pytest.raises(InputError, match=f"--{name}|provider:name"):
        by_name(name).parse(text)


@pytest.mark.parametrize(
    "values",
    [
        {"request": 1},
        {"request": "x", "rounds": True},
        {"request": "x", "rounds": 1.5},
        {"request": "x", "style": "quiet"},
        {"request": "x", "files": "one"},
        {"request": "x", "unknown": 1},
        {"request": None},
    ],
)
def test_a_recorded_value_that_no_longer_fits_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(InputError):
        params_from_json(Params, values)


def test_a_field_that_cannot_be_typed_is_refused() -> None:
    @dataclass
    class Odd:
        table: dict[str, str] = arg("--table")

    with pytest.raises(InputError, match="'table'"):
        params_of(Odd)


def test_two_fields_cannot_share_a_flag() -> None:
    @dataclass
    class Twice:
        one: str = arg("--same")
        two: str = arg("--same")

    with pytest.raises(InputError, match="--same"):
        params_of(Twice)


@pytest.mark.parametrize("flags", [(), ("positional",), ("--a b",), ("--a=b",), ("--",)])
def test_arg_takes_flags_alone(flags: tuple[str, ...]) -> None:
    with pytest.raises(InputError):
        arg(*flags)


def test_a_scripted_models_path_is_absolute() -> None:
    assert ModelId.parse("scripted:x.json").name.startswith("/")
    assert ModelId.parse("fake:x.json").name == "x.json"


def test_a_file_that_cannot_be_read_is_told_in_plain_words(tmp_path: Path) -> None:
    @dataclass
    class Asked:
        request: str = arg("--request", from_file=True)

    (param,) = params_of(Asked)
    (tmp_path / "request").write_bytes(b"caf\xe9")
    for file, why in (("none", "No such file or directory"), ("request", "it is not UTF-8")):
        with pytest.raises(InputError) as raised:
            param.parse(f"@{tmp_path / file}")
        where = repr(str(tmp_path / file))
        assert str(raised.value) == f"--request: {where} cannot be read: {why}"
