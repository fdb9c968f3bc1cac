"""What the fixtures cannot show: the public names, all problems at once, plans between schemas made by hand."""

import json
from dataclasses import replace

import pytest

from omnigraph.errors import InvalidRequestError, ParseError
from omnigraph.language import schema as language
from omnigraph.language.schema.lint import CATALOGUE, FAMILIES, Severity, Tier
from omnigraph.language.schema.plan import plan_steps
from omnigraph.language.schema.shape import SchemaShape
from omnigraph.language.schema.syntax import SchemaSyntax
from omnigraph.model.schema import Index, Schema, Unique
from omnigraph.model.schema_change import UnsupportedChange
from omnigraph.model.schema_document import digest, from_bytes, to_bytes


def test_the_public_names_are_functions_and_not_the_modules_they_live_in() -> None:
    syntax = language.parse("node A {}", name="a.pg")

    assert isinstance(syntax, SchemaSyntax)
    assert isinstance(language.check(syntax), SchemaShape)
    assert isinstance(language.accept("node A {}"), Schema)
    assert language.plan(language.accept("node A {}"), "node A {}").is_empty
    assert language.format("node A{}") == "node A {}\n"
    assert language.lint(syntax) == ()
    assert set(language.__all__) == {
        "CATALOGUE",
        "Finding",
        "accept",
        "check",
        "format",
        "lint",
        "parse",
        "plan",
        "find_problems",
        "render",
        "plan_steps",
        "property_order",
    }


def test_all_problems_of_a_text_are_found_at_once() -> None:
    text = """
    node A { id: I32  x: I32? @key }
    node A { y: [I32] @unique }
    node B { z: I32? @key(z)  @range(w, 0..1) }
    edge E: A -> C
    """

    assert [each.message for each in language.find_problems(language.parse(text))] == [
        "property name 'id' is reserved: every node and edge has an id of its own",
        "@unique is not supported on list property A.y",
        "@key property B.z cannot be nullable",
        "@range on B references unknown property 'w'",
        "duplicate node type: A",
        "edge E references unknown target type: C",
    ]


def test_the_first_problem_is_the_one_raised() -> None:
    with pytest.raises(ParseError, match="reserved") as raised:
        language.accept("node A { id: I32 }\nedge E: A -> B")

    assert raised.value.stage == "parse"


def test_line_ends_of_any_system_mean_the_same() -> None:
    unix = "node A {\n  x: I32 // x\n}\n"

    assert language.parse(unix.replace("\n", "\r\n")) == language.parse(unix)
    assert language.format(unix.replace("\n", "\r\n")) == unix
    with pytest.raises(ParseError) as raised:
        language.parse("node A {\r\n  x I32\r\n}")
    assert (raised.value.line, raised.value.column) == (2, 5)


def test_a_byte_order_mark_is_ignored() -> None:
    assert language.parse(b"\xef\xbb\xbfnode A {}") == language.parse("node A {}")


def test_every_new_graph_has_an_identity_domain_of_its_own() -> None:
    first, second = language.accept("node A {}"), language.accept("node A {}")

    assert first.identity_domain != second.identity_domain
    assert replace(second, identity_domain=first.identity_domain) == first


def test_numbers_are_never_given_twice() -> None:
    schema = language.accept("node A { x: I32? }\nnode B {}")
    seen = numbers(schema)
    for text in ("node A {}", "node A { x: I32? }", "node A { x: I32? }\nnode B {}\nedge E: A -> B", "node B {}"):
        known = numbers(schema)
        schema = language.plan(schema, text).schema
        fresh = numbers(schema) - known
        assert not fresh & seen
        seen |= fresh


def numbers(schema: Schema) -> set[int]:
    return set(schema.numbers)


def evolved(schema: Schema, *texts: str) -> Schema:
    """The schema after one text after the other was applied."""
    for text in texts:
        schema = language.plan(schema, text).schema
    return schema


def test_equal_changes_have_equal_numbers_in_any_order() -> None:
    first = language.accept("node A {}")
    both = "node A { x: I32? y: I32? }\nnode B { z: I32? }\nedge E: A -> B"
    texts = ["node A { x: I32? }", "node A { y: I32? }\nnode B { z: I32? }", "node A {}\nnode B {}"]
    schemas = [evolved(first, both), *(evolved(first, text, both) for text in texts[:1])]
    assert len(set(map(digest, schemas))) == 1
    # What is dropped on the way has had its number.
    assert [each.name for each in evolved(first, texts[1], texts[2], both).types] == ["A", "B", "E"]
    assert numbers(evolved(first, texts[1], texts[2], both)) != numbers(schemas[0])


def test_a_property_dropped_and_added_again_has_another_number_each_time() -> None:
    schema = language.accept("node A { x: I32? }")
    seen = []
    for _ in range(4):
        schema = evolved(schema, "node A {}", "node A { x: I32? }")
        seen.append(schema.nodes[0].properties[0].property_id)
    assert len({1, *seen}) == 5
    assert schema.retired == tuple(sorted(seen[:-1]))
    assert from_bytes(to_bytes(schema)) == schema


def test_a_name_given_up_by_a_rename_is_free_for_another_number() -> None:
    first = evolved(language.accept("node A {}"), "node A { x: I32? }")
    renamed = evolved(first, 'node A { y: I32? @rename_from("x") }')
    both = evolved(renamed, "node A { x: I32? y: I32? }")
    old, new = (each.nodes[0].properties[0].property_id for each in (first, both))
    assert both.nodes[0].properties[1].property_id == old != new


def test_numbers_fit_into_the_whole_numbers_that_every_reader_of_json_has() -> None:
    schema = evolved(language.accept("node A {}"), "node A {" + " ".join(f"p{at}: I32?" for at in range(500)) + "}")
    assert all(number < 2**53 for number in schema.numbers)
    assert len(numbers(schema)) == 502


def test_the_order_of_a_key_stays_when_its_properties_are_renamed() -> None:
    first = language.accept("node A { a: I32 b: I32 @key(b, a) }")
    renamed = evolved(first, 'node A { z: I32 @rename_from("a") b: I32 @key(b, z) }')
    assert [each.name for each in first.nodes[0].key] == ["a", "b"]
    assert [each.name for each in renamed.nodes[0].key] == ["z", "b"]
    added = evolved(first, "node A { a: I32 b: I32 @key(b, a) }\nnode B { y: I32 x: I32 @key(y, x) }")
    assert [each.name for each in added.nodes[1].key] == ["x", "y"]


def test_a_rename_keeps_every_number() -> None:
    before = language.accept("node A { x: I32? }\nedge E: A -> A")
    after = language.plan(
        before, 'node B @rename_from("A") { y: I32? @rename_from("x") }\nedge F: B -> B @rename_from("E")'
    ).schema

    assert numbers(after) == numbers(before)
    assert after.next_id == before.next_id


def test_a_type_dropped_and_added_again_is_another_one() -> None:
    first = language.accept("node A { x: I32? }\nnode B {}")
    second = language.plan(first, "node B {}").schema
    third = language.plan(second, "node A { x: I32? }\nnode B {}").schema
    was, now = first.node("A"), third.node("A")
    assert was is not None and now is not None

    assert {was.type_id, was.table_id, was.properties[0].property_id}.isdisjoint(
        {now.type_id, now.table_id, now.properties[0].property_id}
    )


def test_the_order_of_a_tuple_stays_as_it_was_accepted() -> None:
    before = language.accept("node A { x: I32 y: I32 z: I32? @unique(y, x) @index(y, x) }")
    after = language.plan(
        before, 'node A { w: I32 @rename_from("x") y: I32 v: I32? @unique(w, y) @index(w, y) }'
    ).schema

    assert after.nodes[0].constraints == (Unique(("y", "w")), Index(("y", "w")))


def test_renaming_an_interface_is_unsupported() -> None:
    schema = language.accept("interface I { x: I32 }")
    renamed = replace(schema, interfaces=(replace(schema.interfaces[0], name="J"),))

    assert plan_steps(schema, renamed) == (
        UnsupportedChange("interface:J", "renaming interfaces is not supported in schema migration v1"),
    )


def test_a_difference_no_step_describes_is_unsupported() -> None:
    schema = language.accept("node A { x: I32 }")
    foreign = replace(schema, identity_domain="01J00000000000000000000000")

    assert plan_steps(schema, foreign) == (
        UnsupportedChange("schema", "schema migration contains an unclassified semantic IR change"),
    )


def test_an_identity_error_says_where() -> None:
    with pytest.raises(InvalidRequestError, match="schema identity resolution failed") as raised:
        language.plan(language.accept("node A {}"), 'node A {}\nnode B @rename_from("C") {}')

    assert (raised.value.details["line"], raised.value.details["column"]) == (2, 6)
    assert json.dumps(raised.value.details)
    assert raised.value.code == "bad_request"


def test_the_catalogue_of_lint_codes_is_whole() -> None:
    migrations = [each for each in CATALOGUE.values() if each.family]

    assert [each.code for each in migrations] == [
        "OG-DS-101",
        "OG-DS-102",
        "OG-DS-103",
        "OG-DS-104",
        "OG-DS-105",
        "OG-MF-103",
        "OG-MF-104",
        "OG-MF-106",
    ]
    assert {each.family for each in migrations} <= set(FAMILIES)
    assert all(each.severity is Severity.ERROR for each in migrations)
    assert [each.code for each in migrations if each.tier is Tier.VALIDATED] == ["OG-MF-103", "OG-MF-104"]
    assert [each.code for each in migrations if each.is_emitted] == ["OG-MF-103", "OG-MF-106"]


@pytest.mark.parametrize(
    ("text", "code"), [("node A { x: I32  y: I32 }", "OG-MF-103"), ("node A { x: I64 }", "OG-MF-106")]
)
def test_every_emitted_migration_code_stands_on_a_step(text: str, code: str) -> None:
    (step,) = language.plan(language.accept("node A { x: I32 }"), text).steps

    assert isinstance(step, UnsupportedChange)
    assert step.code == code
