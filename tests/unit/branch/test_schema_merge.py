"""Two schemas made from one, put together: texts in, a text or conflicts out, whichever side is which."""

from dataclasses import replace

import pytest

from omnigraph.branch.merge.choices import Side
from omnigraph.branch.merge.schema_merge import MergedSchema, RowsChanged, merge_schemas
from omnigraph.errors import InvalidRequestError
from omnigraph.language.schema import accept, plan, render
from omnigraph.model.schema import Schema
from omnigraph.model.schema_document import digest, from_document, to_document
from omnigraph.model.schema_match import match_schemas

BASE = """
interface Named { title: String? }
node Person implements Named { name: String @key  age: I32?  kind: enum(a, b)? }
node City { name: String @key  size: I32? }
edge Lives: Person -> City { since: I32?  place: String? }
edge Knows: Person -> Person @card(0..5)
"""


def changed(before: str, *replacements: tuple[str, str]) -> str:
    for old, new in replacements:
        assert old in before, old
        before = before.replace(old, new)
    return before


def applied(schema: Schema, *texts: str) -> Schema:
    for text in texts:
        steps = plan(schema, text, validated=True)
        steps.require_supported()
        schema = steps.schema
    return schema


def merged(
    source: str,
    target: str,
    *,
    prefer: Side | None = None,
    chosen: dict[str, Side] | None = None,
    rows_changed: RowsChanged = lambda _side, _type, _name: False,
) -> MergedSchema:
    base = accept(BASE)
    both = applied(base, source), applied(base, target)
    return merge_schemas(base, *both, prefer=prefer, chosen=chosen, rows_changed=rows_changed)


AGE = ("age: I32?", "age: I32?  mail: String?")
CITY = "node City { name: String @key  size: I32? }\nedge Lives: Person -> City { since: I32?  place: String? }\n"

COMPATIBLE = {
    "two properties": (
        [AGE],
        [("age: I32?", "age: I32?  phone: String?")],
        [("age: I32?", "age: I32?  mail: String?  phone: String?")],
    ),
    "one property on both": ([AGE], [AGE], [AGE]),
    "two types": (
        [("edge Knows", "node Book {}\nedge Knows")],
        [("edge Knows", "node Shop {}\nedge Knows")],
        [("edge Knows", "node Book {}\nnode Shop {}\nedge Knows")],
    ),
    "a type on both, of which each has a property": (
        [("edge Knows", "node Book { a: I32? }\nedge Knows")],
        [("edge Knows", "node Book { b: I32? }\nedge Knows")],
        [("edge Knows", "node Book { a: I32? b: I32? }\nedge Knows")],
    ),
    "widened here, renamed there": (
        [("age: I32?", "age: I64?")],
        [("age: I32?", 'years: I32? @rename_from("age")')],
        [("age: I32?", "years: I64?")],
    ),
    "widened on both alike": ([("age: I32?", "age: I64?")], [("age: I32?", "age: I64?")], [("age: I32?", "age: I64?")]),
    "required here, wider there": (
        [("age: I32?", "age: I32")],
        [("age: I32?", "age: I64?")],
        [("age: I32?", "age: I64")],
    ),
    "more values on both": ([("(a, b)", "(a, b, c)")], [("(a, b)", "(a, b, d)")], [("(a, b)", "(a, b, c, d)")]),
    "a text here, more values there": (
        [("enum(a, b)?", "String?")],
        [("(a, b)", "(a, b, d)")],
        [("enum(a, b)?", "String?")],
    ),
    "some texts here, wider there": (
        [("place: String?", "place: enum(x, y)?")],
        [("since: I32?", "since: I64?")],
        [("place: String?", "place: enum(x, y)?"), ("since: I32?", "since: I64?")],
    ),
    "a type renamed here, its property there": (
        [("node City {", 'node Town @rename_from("City") {'), ("-> City", "-> Town")],
        [("size: I32?", 'extent: I32? @rename_from("size")')],
        [("node City {", "node Town {"), ("-> City", "-> Town"), ("size: I32?", "extent: I32?")],
    ),
    "an edge added to a type renamed there": (
        [("edge Knows", "edge Visits: Person -> City\nedge Knows")],
        [("node City {", 'node Town @rename_from("City") {'), ("-> City", "-> Town")],
        [
            ("edge Knows", "edge Visits: Person -> Town\nedge Knows"),
            ("node City {", "node Town {"),
            ("-> City", "-> Town"),
        ],
    ),
    "a property dropped": ([("size: I32?", "")], [AGE], [("size: I32?", ""), AGE]),
    "a property dropped on both": ([("size: I32?", "")], [("size: I32?", "")], [("size: I32?", "")]),
    "a type dropped": ([(CITY, "")], [AGE], [(CITY, ""), AGE]),
    "an index here, another there": (
        [("age: I32?", "age: I32? @index")],
        [("size: I32?", "size: I32? @index")],
        [("age: I32?", "age: I32? @index"), ("size: I32?", "size: I32? @index")],
    ),
    "constraints on both": (
        [("age: I32?", "age: I32?  @range(age, 0..9)")],
        [("age: I32?", "age: I32?  @unique(age)")],
        [("age: I32?", "age: I32?  @range(age, 0..9)  @unique(age)")],
    ),
    "a constraint over what is renamed there": (
        [("age: I32?", "age: I32?  @range(age, 0..9)")],
        [("age: I32?", 'years: I32? @rename_from("age")')],
        [("age: I32?", "years: I32?  @range(years, 0..9)")],
    ),
    "descriptions": (
        [("age: I32?", 'age: I32? @description("A")')],
        [("node City", 'node City @description("C")')],
        [("age: I32?", 'age: I32? @description("A")'), ("node City", 'node City @description("C")')],
    ),
    "cardinality": ([("@card(0..5)", "@card(0..9)")], [AGE], [("@card(0..5)", "@card(0..9)"), AGE]),
    "an interface grows, a type that has it is added": (
        [("title: String?", "title: String?  note: String?")],
        [("edge Knows", "node Book implements Named {}\nedge Knows")],
        [
            ("title: String?", "title: String?  note: String?"),
            ("edge Knows", "node Book implements Named {}\nedge Knows"),
        ],
    ),
}


@pytest.mark.parametrize("direction", ["there", "back"])
@pytest.mark.parametrize("name", COMPATIBLE)
def test_compatible_changes_merge_by_themselves(name: str, direction: str) -> None:
    ours, theirs, expected = COMPATIBLE[name]
    source, target = changed(BASE, *ours), changed(BASE, *theirs)
    if direction == "back":
        source, target = target, source
    found = merged(source, target)
    assert found.conflicts == ()
    assert plan(found.schema, changed(BASE, *expected)).is_empty, render(found.schema)
    base = accept(BASE)
    one, other = applied(base, source), applied(base, target)
    again = merge_schemas(base, replace(other, identity_domain=one.identity_domain), one)
    assert render(again.schema) == render(found.schema)


CLASHES = {
    "renamed differently": (
        "node:Person.age",
        [("age: I32?", 'years: I32? @rename_from("age")')],
        [("age: I32?", 'old: I32? @rename_from("age")')],
    ),
    "added with two types": ("node:Person.mail", [AGE], [("age: I32?", "age: I32?  mail: I32?")]),
    "widened differently": ("node:Person.age", [("age: I32?", "age: I64?")], [("age: I32?", "age: F64?")]),
    "dropped and widened": ("node:Person.age", [("age: I32?", "")], [("age: I32?", "age: I64?")]),
    "dropped and constrained": ("node:Person.age", [("age: I32?", "")], [("age: I32?", "age: I32? @index")]),
    "a type dropped and changed": ("node:City", [(CITY, "")], [("size: I32?", "size: I32?  zip: I32?")]),
    "a type dropped and joined": (
        "node:City",
        [(CITY, "")],
        [("edge Knows", "edge Visits: Person -> City\nedge Knows")],
    ),
    "a type renamed differently": (
        "node:City",
        [("node City {", 'node Town @rename_from("City") {'), ("-> City", "-> Town")],
        [("node City {", 'node Burg @rename_from("City") {'), ("-> City", "-> Burg")],
    ),
    "two bounds": (
        "node:Person.age",
        [("age: I32?", "age: I32?  @range(age, 0..9)")],
        [("age: I32?", "age: I32?  @range(age, 0..8)")],
    ),
    "two cardinalities": ("edge:Knows", [("@card(0..5)", "@card(0..9)")], [("@card(0..5)", "@card(0..8)")]),
    "two descriptions": (
        "node:Person.age",
        [("age: I32?", 'age: I32? @description("A")')],
        [("age: I32?", 'age: I32? @description("B")')],
    ),
    "added and renamed to one name": ("node:Person.mail", [AGE], [("age: I32?", 'mail: I32? @rename_from("age")')]),
    "two properties renamed to one name": (
        "edge:Lives.at",
        [("since: I32?", 'at: I32? @rename_from("since")')],
        [("place: String?", 'at: String? @rename_from("place")')],
    ),
    "added with two keys": (
        "node:Book",
        [("edge Knows", "node Book { name: String @key }\nedge Knows")],
        [("edge Knows", "node Book { isbn: String @key }\nedge Knows")],
    ),
    "added and renamed to one type": (
        "node:Town",
        [("edge Knows", "node Town {}\nedge Knows")],
        [("node City {", 'node Town @rename_from("City") {'), ("-> City", "-> Town")],
    ),
}


@pytest.mark.parametrize("name", CLASHES)
def test_what_cannot_both_stand_is_a_conflict_over_one_item(name: str) -> None:
    item, ours, theirs = CLASHES[name]
    found = merged(changed(BASE, *ours), changed(BASE, *theirs))
    assert [(each.kind.value, each.type_key, each.entity_id) for each in found.conflicts] == [
        ("divergent_schema", "schema", item)
    ]


@pytest.mark.parametrize("by", ["chosen", "prefer"])
@pytest.mark.parametrize("side", list(Side))
@pytest.mark.parametrize("name", CLASHES)
def test_a_choice_settles_it(name: str, side: Side, by: str) -> None:
    item, ours, theirs = CLASHES[name]
    source, target = changed(BASE, *ours), changed(BASE, *theirs)
    found = merged(source, target, chosen={item: side}) if by == "chosen" else merged(source, target, prefer=side)
    assert found.conflicts == ()
    assert (item, side) in found.resolved
    wanted = source if side is Side.SOURCE else target
    if item == "node:City" and CITY not in source:
        wanted = wanted.replace(CITY.splitlines()[1], "")  # the edge is an item of its own, and untouched on the target
    assert render(found.schema) == render(accept(wanted))


def test_an_item_can_be_chosen_though_it_does_not_conflict() -> None:
    required = changed(BASE, ("age: I32?", "age: I32"))
    found = merged(required, changed(BASE, AGE), chosen={"node:Person.age": Side.TARGET})
    assert plan(found.schema, changed(BASE, AGE)).is_empty


def test_a_side_decides_what_is_disputed_and_no_more() -> None:
    source = changed(BASE, ("age: I32?", 'years: I32? @rename_from("age") @index'))
    target = changed(BASE, ("age: I32?", 'old: I64? @rename_from("age")'))
    expected = changed(BASE, ("age: I32?", "years: I64? @index"))
    for item in ("node:Person.age", "node:Person.years", "node:Person.old", "node:Person"):
        found = merged(source, target, chosen={item: Side.SOURCE})
        assert found.conflicts == ()
        assert found.resolved == ((item, Side.SOURCE),)
        assert plan(found.schema, expected).is_empty, render(found.schema)


def test_a_first_property_that_one_side_kept_comes_back_with_its_number() -> None:
    """The base of the next merge has dropped it, and numbers of the first schema are counted."""
    base = accept(BASE)
    dropped = applied(base, changed(BASE, ("age: I32?", "")))
    kept = merge_schemas(base, dropped, applied(base, changed(BASE, ("age: I32?", "age: I64?"))), prefer=Side.TARGET)
    again = merge_schemas(dropped, applied(dropped, changed(BASE, ("age: I32?", ""), ("size: I32?", ""))), kept.schema)
    before, after = kept.schema.node("Person"), again.schema.node("Person")
    assert before is not None
    assert after is not None
    assert after.property_named("age") == before.property_named("age")


@pytest.mark.parametrize("item", ["node:Person.name", "node:Nobody", "node:City"])
def test_a_choice_for_an_item_that_nobody_changed_is_refused(item: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"names the schema item '{item}', which neither branch has changed"):
        merged(changed(BASE, AGE), changed(BASE, ("age: I32?", "age: I64?")), chosen={item: Side.SOURCE})


def test_one_side_can_be_taken_as_a_whole() -> None:
    source, target = changed(BASE, AGE), changed(BASE, ("age: I32?", ""))
    assert plan(merged(source, target, chosen={"*": Side.SOURCE}).schema, source).is_empty
    with pytest.raises(InvalidRequestError, match=r'name "\*" and single items'):
        merged(source, target, chosen={"*": Side.SOURCE, "node:Person.age": Side.SOURCE})


def test_data_that_changed_keeps_what_the_other_side_drops() -> None:
    def rows_changed(side: Side, type_key: str, name: str | None) -> bool:
        return (side, type_key, name) == (Side.TARGET, "node:Person", "age")

    dropped = changed(BASE, ("age: I32?", ""))
    found = merged(dropped, changed(BASE, ("size: I32?", "size: I64?")), rows_changed=rows_changed)
    assert [each.message for each in found.conflicts] == [
        "node:Person.age was dropped on the source and changed on the target"
    ]


def test_both_texts_on_both_branches_in_either_order_are_one_schema() -> None:
    base = accept(BASE)
    first, second = changed(BASE, AGE), changed(BASE, ("size: I32?", "size: I32?  zip: I32?"))
    both = changed(first, ("size: I32?", "size: I32?  zip: I32?"))
    assert digest(applied(base, first, both)) == digest(applied(base, second, both))


def counted(schema: Schema, *names: str) -> Schema:
    """A schema as an older release would have made it: properties added since the first one have counted numbers."""
    document = to_document(schema)
    number = document["next_identity_id"]
    for kind in ("nodes", "edges"):
        for each in document[kind]:
            for part in each["properties"]:
                if part["name"] in names:
                    part["property_id"] = number
                    number += 1
    document["next_identity_id"] = number
    document.pop("retired_identity_ids", None)
    return from_document(document)


def test_branches_of_an_older_release_that_counted_alike_are_put_together_by_name() -> None:
    base = accept(BASE)
    mail, zip_ = changed(BASE, AGE), changed(BASE, ("size: I32?", "size: I32?  zip: I32?"))
    both = changed(mail, ("size: I32?", "size: I32?  zip: I32?"))
    source, target = counted(applied(base, mail), "mail"), counted(applied(base, zip_), "zip")
    first = merge_schemas(base, source, target)
    assert first.conflicts == ()
    assert plan(first.schema, both).is_empty
    # The branch goes on, under its own numbers, and is merged again.
    further = applied(source, changed(mail, ("place: String?", "place: String?  note: String?")))
    person = source.node("Person")
    assert person is not None
    assert match_schemas(source, first.schema).columns(person)["mail"] == "mail"
    second = merge_schemas(source, further, first.schema)
    assert second.conflicts == ()
    assert plan(second.schema, changed(both, ("place: String?", "place: String?  note: String?"))).is_empty


def test_one_property_that_both_added_by_other_ways_stays_one() -> None:
    base = accept(BASE)
    detour = (
        changed(BASE, ("age: I32?", "age: I32?  post: String?")),
        changed(BASE, ("age: I32?", 'age: I32?  mail: String? @rename_from("post")')),
    )
    source, target = applied(base, *detour), applied(base, changed(BASE, AGE))
    first = merge_schemas(base, source, target)
    assert first.conflicts == ()
    for side in (source, target):
        person = side.node("Person")
        assert person is not None
        assert match_schemas(side, first.schema).columns(person)["mail"] == "mail"
        assert digest(merge_schemas(side, side, first.schema).schema) == digest(first.schema)
