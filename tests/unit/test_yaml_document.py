import pytest

from omnigraph import limits
from omnigraph.yaml_document import Entries, Items, Place, Scalar, YamlDocumentError, read


def test_values_know_where_they_stand() -> None:
    root = read("a: 1\nb:\n  - x\n  - {c: d}\n")

    assert isinstance(root, Entries)
    assert root.values["a"] == Scalar(1, Place(1, 4))
    listed = root.values["b"]
    assert isinstance(listed, Items)
    assert listed.values[0] == Scalar("x", Place(3, 5))
    assert root.places["b"] == Place(2, 1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("7", 7),
        ("-7", -7),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("'7'", "7"),
        ('"true"', "true"),
        ("2024-01-01", "2024-01-01"),
        ("1:30", "1:30"),
        ("0x10", "0x10"),
        (".", "."),
    ],
)
def test_a_scalar_is_what_it_looks_like(text: str, value: object) -> None:
    found = read(text)
    assert isinstance(found, Scalar)
    assert (type(found.value), found.value) == (type(value), value)


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("a: 1\na: 2\n", 2, 1, "duplicate key 'a'"),
        ("x:\n  - {b: 1, b: 2}\n", 2, 12, "duplicate key 'b'"),
        ("a: &x 1\nb: *x\n", 2, 4, "aliases"),
        ("a: !!python/object 1\n", 1, 4, "tags"),
        ("? [a]\n: 1\n", 1, 3, "a key must be a text"),
        ("a: [1\nb: 2\n", 2, 2, "not YAML"),
        ("a: 1\n--- \nb: 2\n", 2, 1, "not YAML"),
        ("\tx", 1, 1, "not YAML"),
        ("a: \x00", 1, 1, "not YAML"),
    ],
)
def test_what_is_left_out_of_yaml_is_refused_where_it_stands(text: str, line: int, column: int, says: str) -> None:
    with pytest.raises(YamlDocumentError, match=says) as caught:
        read(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert f"(line {line}, column {column})" in str(caught.value)


def test_a_key_that_stands_twice_has_a_code_of_its_own() -> None:
    with pytest.raises(YamlDocumentError) as caught:
        read("a: 1\na: 1\n")
    assert caught.value.code == "duplicate_yaml_key"


def test_a_file_that_is_deep_or_long_is_refused_before_it_is_built() -> None:
    with pytest.raises(YamlDocumentError, match="nested more than"):
        read("[" * 100_000)
    with pytest.raises(YamlDocumentError, match="longer than"):
        read("#" * (limits.YAML_CHARACTERS_MAX + 1))
