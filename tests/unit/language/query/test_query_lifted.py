"""Texts that differ in their strings share a plan, and answer like the text itself."""

import pytest

from omnigraph.errors import GraphError, ParseError
from omnigraph.language.plan.expressions import Value
from omnigraph.language.query import lifted
from omnigraph.language.query.compile import CompiledQuery, compile
from omnigraph.language.query.lifted import compile_lifted
from omnigraph.language.schema import accept
from omnigraph.lru import LruCache
from omnigraph.model.schema_document import digest

SCHEMA = accept(
    """
    node Person { name: String @key  city: String?  mood: enum(glad, sad)?  born: Date?  tags: [String]? }
    edge Knows: Person -> Person { how: String? }
    """
)
DIGEST = digest(SCHEMA)


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifted, "_shapes", LruCache(100))


def asked(text: str) -> tuple[CompiledQuery, dict[str, Value]]:
    compiled, values = compile_lifted(text, SCHEMA, name=None, schema_digest=DIGEST)
    return compiled, dict(values)


def query(body: str, returned: str = "$p") -> str:
    return f"query q($c: String) {{ match {{ {body} }} return {{ {returned} }} }}"


def shared(*texts: str) -> list[tuple[CompiledQuery, dict[str, Value]]]:
    """The last of these texts, all of which share one plan."""
    found = [asked(text) for text in texts]
    assert len({id(compiled) for compiled, _ in found[2:]}) == 1
    return found[2:]


def test_from_the_second_text_on_the_plan_is_shared_and_the_strings_are_values() -> None:
    texts = [query(f'$p: Person {{ name: "n{at}" }} $p knows $q $q.city = "c{at}"') for at in range(4)]
    first, second, *later = (asked(text) for text in texts)
    assert first[1] == {}
    assert [values for _, values in (second, *later)] == [{"#text0": f"n{at}", "#text1": f"c{at}"} for at in (1, 2, 3)]
    assert second[0] is later[0][0] is later[1][0]


def test_a_text_asked_before_is_remembered_as_it_is() -> None:
    text = query('$p: Person { name: "x" }')
    first, values = asked(text)
    assert values == {}
    assert asked(text)[0] is first


@pytest.mark.parametrize(
    "body",
    [
        '$p: Person { name: "%s", mood: "glad" }',
        '$p: Person { name: "%s" } $p.born = date("2024-01-31")',
        '$p: Person { name: "%s" } $p.name in ["a", "b"]',
    ],
)
def test_strings_that_had_a_say_in_the_plan_stay(body: str) -> None:
    for compiled, values in shared(*(query(body % name) for name in "uvwxy")):
        assert list(values) == ["#text0"]
        assert "#text0" in repr(compiled.plan)


def test_texts_that_differ_in_a_string_that_stays_share_nothing() -> None:
    texts = [query(f'$p: Person {{ name: "{name}", mood: "glad" }}') for name in "abc"]
    glad = [asked(text) for text in texts][-1][0]
    sad, values = asked(query('$p: Person { name: "d", mood: "sad" }'))
    assert values == {}
    assert sad is not glad
    assert "sad" in repr(sad.plan)


def test_a_string_in_the_result_is_a_value_and_its_column_keeps_its_name() -> None:
    texts = [query('$p: Person { name: "a" }', f'$p.name as who, "{word}" as word') for word in ("x", "y", "z")]
    compiled, values = [asked(text) for text in texts][-1]
    assert values == {"#text0": "a", "#text1": "z"}
    assert [column.name for column in compiled.columns] == ["who", "word"]


@pytest.mark.parametrize(
    "body",
    [
        r'$p: Person { name: "a\"%s" }',
        '$p: Person { name: "%s" } // said "so"\n',
        '$p: Person { name: "%s" /* "quoted" */ }',
        "$p: Person { name: $c } // %s\n",
        " ".join(f'$p.city != "{at}"' for at in range(9)) + ' $p: Person { name: "%s" }',
    ],
)
def test_texts_whose_strings_are_not_plain_to_see_are_compiled_one_by_one(body: str) -> None:
    found = [asked(query(body % name)) for name in "abc"]
    assert [values for _, values in found] == [{}, {}, {}]
    assert len({id(compiled) for compiled, _ in found}) == 3


@pytest.mark.parametrize(
    ("good", "wrong"),
    [
        ('$p: Person { mood: "glad" }', '$p: Person { mood: "cross" }'),
        ('$p: Person $p.born = date("2024-01-31")', '$p: Person $p.born = date("yesterday")'),
        ('$p: Person { name: "a" }', '$p: Person { name: "a\ud800" }'),
        ('$p: Person { name: "a" }', '$p: Person { name: "a\0" }'),
        ('$p: Person { name: "a" }', '$p: Person { name: "a'),
    ],
)
def test_what_is_wrong_with_a_text_is_told_as_ever(good: str, wrong: str) -> None:
    for _ in range(3):
        asked(query(good))
        with pytest.raises(ParseError) as first:
            asked(query(wrong))
        with pytest.raises(ParseError) as alone:
            compile(query(wrong), SCHEMA)
        assert str(first.value) == str(alone.value)


def test_mutations_are_never_shared() -> None:
    texts = [f'query q() {{ insert Person {{ name: "{name}" }} }}' for name in "abcd"]
    found = [asked(text) for text in texts]
    assert [values for _, values in found] == [{}] * 4
    assert [repr(name) in repr(compiled.plan) for name, (compiled, _) in zip("abcd", found, strict=True)] == [True] * 4


def test_a_name_chooses_among_several_queries_of_a_text() -> None:
    def both(name: str) -> str:
        return (
            f'query one() {{ match {{ $p: Person {{ name: "{name}" }} }} return {{ $p.city }} }}\n'
            f'query two() {{ match {{ $p: Person {{ city: "{name}" }} }} return {{ $p.name }} }}'
        )

    for chosen, column in (("one", "p.city"), ("two", "p.name")):
        for name in "abc":
            compiled, values = compile_lifted(both(name), SCHEMA, name=chosen, schema_digest=DIGEST)
        assert compiled.columns[0].name == column
        assert name in values.values()
    with pytest.raises(GraphError):
        compile_lifted(both("d"), SCHEMA, name=None, schema_digest=DIGEST)
