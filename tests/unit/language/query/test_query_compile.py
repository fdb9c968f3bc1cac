"""Compiled queries: what they carry, and how they are remembered."""

from dataclasses import replace

import pytest

from omnigraph.errors import InvalidRequestError, ParseError
from omnigraph.language.plan.expressions import STRING, NodeValue, Parameter
from omnigraph.language.plan.steps import MutationPlan, ReadPlan
from omnigraph.language.query import bind_params, compile, explain, lint
from omnigraph.language.schema import accept
from omnigraph.model.types import PropertyType, Scalar

SCHEMA = accept("node Person { name: String @key  age: I32? } edge Knows: Person -> Person")
READ = "query ages($n: String) { match { $p: Person { name: $n } } return { $p, $p.age } }"
SEVERAL = f"{READ} query gone($n: String) {{ delete Person where name = $n }}"


def test_a_read_carries_its_parameters_columns_and_plan() -> None:
    compiled = compile(READ, SCHEMA)

    assert compiled.name == "ages"
    assert not compiled.is_mutation
    assert compiled.parameters == (Parameter("n", STRING),)
    assert [(column.name, column.type) for column in compiled.columns] == [
        ("p", NodeValue("Person")),
        ("p.age", PropertyType(Scalar.I32, nullable=True)),
    ]
    assert isinstance(compiled.plan, ReadPlan)


def test_a_mutation_has_no_columns() -> None:
    compiled = compile(SEVERAL, SCHEMA, name="gone")

    assert compiled.is_mutation
    assert compiled.columns == ()
    assert isinstance(compiled.plan, MutationPlan)
    assert explain(compiled).startswith("mutation gone($n: String)\ndelete nodes Person")


def test_a_query_is_chosen_by_name_and_the_first_of_that_name() -> None:
    twice = READ + "query ages() { match { $p: Person } return { $p.name } }"

    assert compile(twice, SCHEMA, name="ages").parameters != ()
    with pytest.raises(InvalidRequestError, match="query 'missing' not found"):
        compile(SEVERAL, SCHEMA, name="missing")
    with pytest.raises(InvalidRequestError, match="query file contains multiple queries; pass --name"):
        compile(SEVERAL, SCHEMA)


def test_a_text_is_compiled_once_for_each_schema() -> None:
    same = accept("node Person { name: String @key  age: I32? } edge Knows: Person -> Person")
    same = replace(same, identity_domain=SCHEMA.identity_domain)
    other = accept("node Person { name: String @key  age: I64? }")

    first = compile(READ, SCHEMA)

    assert compile(READ, SCHEMA) is first
    assert compile(READ, SCHEMA, name="ages") is not first
    assert compile(READ, same) is first, "equal schemas have equal digests, whichever objects they are"
    assert compile(READ, other).columns[1].type == PropertyType(Scalar.I64, nullable=True)


def test_a_query_of_another_name_does_not_have_to_be_well_typed() -> None:
    text = READ + "query wrong() { match { $p: Nobody } return { $p } }"

    assert compile(text, SCHEMA, name="ages").name == "ages"
    with pytest.raises(ParseError, match="T1"):
        compile(text, SCHEMA, name="wrong")
    assert [result.error is None for result in lint(text, SCHEMA).results] == [True, False]


def test_bytes_and_characters_mean_the_same() -> None:
    assert explain(compile(READ.encode(), SCHEMA)) == explain(compile(READ, SCHEMA))
    with pytest.raises(ParseError, match="not UTF-8"):
        compile(b"query q\xff", SCHEMA)


def test_a_missing_parameter_is_refused_before_anything_runs() -> None:
    with pytest.raises(InvalidRequestError, match="parameter 'n' not provided"):
        bind_params(compile(READ, SCHEMA))
    assert bind_params(compile(READ, SCHEMA), {"n": "Ada"})["n"] == "Ada"


def test_a_mixture_of_inserts_and_deletes_is_no_type_error_but_refused() -> None:
    text = 'query both() { insert Person { name: "a" } delete Person where name = "b" }'

    with pytest.raises(InvalidRequestError) as caught:
        compile(text, SCHEMA)
    assert not isinstance(caught.value, ParseError)
    assert len(compile(text.replace("()", "() @ordered"), SCHEMA).plan.steps) == 2
