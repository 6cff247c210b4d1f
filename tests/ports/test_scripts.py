import pytest

from agl.ports.scripts import sample_of, script_keys


def test_the_most_exact_key_comes_first() -> None:
    assert script_keys("fix", "left/up", 2) == ("fix@left/up#2", "fix@left/up", "fix#2", "fix")
    assert script_keys("fix", "", 1) == ("fix#1", "fix")


@pytest.mark.parametrize(
    ("schema", "sample"),
    [
        ({"type": "string"}, "text"),
        ({"type": "string", "minLength": 6}, "textxx"),
        ({"type": "string", "maxLength": 2}, "te"),
        ({"type": "string", "format": "date"}, "2000-01-01"),
        ({"type": "integer"}, 0),
        ({"type": "integer", "minimum": 3}, 3),
        ({"type": "integer", "exclusiveMinimum": 3}, 4),
        ({"type": "integer", "maximum": -2}, -2),
        ({"type": "integer", "exclusiveMaximum": 0}, -1),
        ({"type": "integer", "minimum": 7, "multipleOf": 5}, 10),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
        ({"type": "boolean"}, False),
        ({"type": "null"}, None),
        ({"type": ["string", "null"]}, "text"),
        ({"const": None}, None),
        ({"enum": ["high", "low"]}, "high"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, 0),
        ({"type": "array", "items": {"type": "string"}}, []),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [0, 0]),
        ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "null"}]}, ["text", None]),
        ({"type": "object", "properties": {"a": {}, "b": {"type": "null"}}, "required": ["b"]},
         {"b": None}),
        ({"allOf": [{"$ref": "#/$defs/n"}], "minimum": 2, "$defs": {"n": {"type": "integer"}}}, 2),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"const": 1}}}, 1),
        ({}, "text"),
    ],
)  # fmt: skip
def test_a_sample_fits_its_schema(schema: dict[str, object], sample: object) -> None:
    made = sample_of(schema)
    assert made == sample
    assert type(made) is type(sample)


def test_a_type_that_may_hold_itself_has_a_sample() -> None:
    node = {
        "type": "object",
        "properties": {"next": {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}},
        "required": ["next"],
    }
    assert sample_of({"$ref": "#/$defs/N", "$defs": {"N": node}}) == {"next": None}


def test_a_type_without_end_is_refused() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}
    with pytest.raises(ValueError, match="without end"):
        sample_of({"$ref": "#/$defs/N", "$defs": {"N": {"allOf": [node]}}, **node})
