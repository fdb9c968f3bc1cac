"""Every row of the table of changes: what a plan says of it, word for word, and what applying it does."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidRequestError
from omnigraph.language.schema.plan import plan_steps
from omnigraph.model.schema_change import UnsupportedChange
from omnigraph.model.schema_change_document import dump_plan

BEFORE = """\
interface Named { name: String }
interface Aged { age: I32? }
node Person implements Named {
    name: String
    mail: String @key
    age: I32?
    mood: enum(good, bad)?
    bio: String?
    vec: Vector(4)? @embed("bio", model="m1")
    far: Vector(2)?
    nick: String? @unique
    born: Date? @index
    tags: [String]?
    @range(age, 0..150)
}
node Place { title: String?  sort: String }
edge Knows: Person -> Person { since: I32? }
edge Near: Place -> Place @card(0..3)
"""
V1 = "is not supported in schema migration v1"
EMBED = (
    f"changing @embed source or model for 'Person.vec' {V1}; rebuild the graph so stored vectors and their declared "
    "embedding space cannot diverge"
)

# What is refused: the change, what it is about, why, and the code of the rule.
REFUSED: dict[str, tuple[str, str, str, str, str | None]] = {
    "remove an interface": (
        "interface Aged { age: I32? }\n", "", "interface:Aged", f"removing interface 'Aged' {V1}", None,
    ),
    "add a required property": (
        "bio: String?", "bio: String?  size: I32", "node:Person.size",
        f"adding required property 'Person.size' requires a backfill and {V1}", "OG-MF-103",
    ),
    "another scalar": (
        "born: Date?", "born: I64?", "node:Person.born", f"changing property type for 'Person.born' {V1}", "OG-MF-106",
    ),
    "a wider number": (
        "since: I32?", "since: I64?", "edge:Knows.since", f"changing property type for 'Knows.since' {V1}", "OG-MF-106",
    ),
    "null no more": (
        "bio: String?", "bio: String", "node:Person.bio", f"changing property type for 'Person.bio' {V1}", "OG-MF-106",
    ),
    "null from now on": (
        "sort: String", "sort: String?", "node:Place.sort", f"changing property type for 'Place.sort' {V1}",
        "OG-MF-106",
    ),
    "a list": (
        "tags: [String]?", "tags: String?", "node:Person.tags", f"changing property type for 'Person.tags' {V1}",
        "OG-MF-106",
    ),
    "an enum that loses a value": (
        "enum(good, bad)", "enum(good)", "node:Person.mood", f"changing property type for 'Person.mood' {V1}",
        "OG-MF-106",
    ),
    "an enum with a value renamed": (
        "enum(good, bad)", "enum(good, worse)", "node:Person.mood", f"changing property type for 'Person.mood' {V1}",
        "OG-MF-106",
    ),
    "an enum that becomes a text": (
        "enum(good, bad)", "String", "node:Person.mood", f"changing property type for 'Person.mood' {V1}", "OG-MF-106",
    ),
    "a text that becomes an enum": (
        "bio: String?", "bio: enum(a, b)?", "node:Person.bio", f"changing property type for 'Person.bio' {V1}",
        "OG-MF-106",
    ),
    "another dimension": (
        "Vector(4)", "Vector(5)", "node:Person.vec", f"changing property type for 'Person.vec' {V1}", "OG-MF-106",
    ),
    "another model": ('model="m1"', 'model="m2"', "node:Person.vec", EMBED, None),
    "another source of vectors": ('@embed("bio"', '@embed("nick"', "node:Person.vec", EMBED, None),
    "vectors of nothing": ('@embed("bio", model="m1")', "", "node:Person.vec", EMBED, None),
    "vectors of something": (
        "far: Vector(2)?", 'far: Vector(2)? @embed("bio")', "node:Person.far", EMBED.replace(".vec", ".far"), None,
    ),
    "a key": (
        "sort: String", "sort: String @key", "node:Place.sort",
        f"adding a property-level @key constraint to 'Place.sort' {V1}", None,
    ),
    "a key of several": (
        "sort: String }", "sort: String  @key(sort) }", "node:Place",
        f"adding constraint '@key(sort)' to 'Place' {V1}", None,
    ),
    "a unique property": (
        "bio: String?", "bio: String? @unique", "node:Person.bio",
        f"adding a property-level @unique constraint to 'Person.bio' {V1}", None,
    ),
    "a unique tuple": (
        "@range(age, 0..150)", "@range(age, 0..150)  @unique(bio, born)", "node:Person",
        f"adding constraint '@unique(bio, born)' to 'Person' {V1}", None,
    ),
    "a range": (
        "sort: String }", "sort: String  size: I32?  @range(size, 0..9) }", "node:Place",
        f"adding constraint '@range(size, 0..9)' to 'Place' {V1}", None,
    ),
    "a check": (
        "sort: String }", 'sort: String  @check(sort, "^a") }', "node:Place",
        f"adding constraint '@check(sort, \"^a\")' to 'Place' {V1}", None,
    ),
    "no range any more": (
        "    @range(age, 0..150)\n", "", "node:Person", f"removing constraints from 'Person' {V1}", None,
    ),
    "not unique any more": (
        "nick: String? @unique", "nick: String?", "node:Person.nick",
        f"removing property constraints from 'Person.nick' {V1}", None,
    ),
    "no index any more": (
        "born: Date? @index", "born: Date?", "node:Person.born",
        f"removing property constraints from 'Person.born' {V1}", None,
    ),
    "another annotation": (
        "bio: String?", 'bio: String? @colour("red")', "node:Person.bio",
        f"changing annotations beyond @description/@instruction {V1}", None,
    ),
    "another annotation of a type": (
        "node Place {", 'node Place @colour("red") {', "node:Place",
        f"changing annotations beyond @description/@instruction {V1}", None,
    ),
    "another interface": (
        "node Place {", "node Place implements Aged {", "node:Place",
        f"changing implemented interfaces on node 'Place' {V1}", None,
    ),
    "other ends": (
        "edge Knows: Person -> Person", "edge Knows: Person -> Place", "edge:Knows",
        f"changing edge endpoints on 'Knows' {V1}", None,
    ),
    "another cardinality": (
        "@card(0..3)", "@card(0..4)", "edge:Near", f"changing cardinality on edge 'Near' {V1}", None,
    ),
    "not declared by the type itself": (
        "    name: String\n    mail", "    mail", "node:Person.name",
        f"changing whether 'Person.name' is declared by the type itself {V1}", None,
    ),
}  # fmt: skip

# What is done: the change, and the steps it takes.
DONE: dict[str, tuple[str, str, list[dict[str, Any]]]] = {
    "add a node": ("node Place", "node Pet {}\nnode Place", [{"kind": "add_type", "type_kind": "node", "name": "Pet"}]),
    "add an edge": (
        "edge Near", "edge Likes: Person -> Place\nedge Near",
        [{"kind": "add_type", "type_kind": "edge", "name": "Likes"}],
    ),
    "add an interface": (
        "node Place", "interface Sized { size: I32? }\nnode Place",
        [{"kind": "add_type", "type_kind": "interface", "name": "Sized"}],
    ),
    "rename a node": (
        "node Place {", 'node Spot @rename_from("Place") {',
        [{"kind": "rename_type", "type_kind": "node", "from": "Place", "to": "Spot"}],
    ),
    "rename an edge": (
        "edge Knows: Person -> Person {", 'edge Met: Person -> Person @rename_from("Knows") {',
        [{"kind": "rename_type", "type_kind": "edge", "from": "Knows", "to": "Met"}],
    ),
    "remove an edge": (
        "edge Knows: Person -> Person { since: I32? }\n", "",
        [{"kind": "drop_type", "type_kind": "edge", "name": "Knows", "mode": "soft"}],
    ),
    "remove a node": (
        "node Place { title: String?  sort: String }\n", "",
        [
            {"kind": "drop_type", "type_kind": "node", "name": "Place", "mode": "soft"},
            {"kind": "drop_type", "type_kind": "edge", "name": "Near", "mode": "soft"},
        ],
    ),
    "add a nullable property": (
        "title: String?", "title: String?  size: I32?",
        [{
            "kind": "add_property", "type_kind": "node", "type_name": "Place", "property_name": "size",
            "property_type": {"scalar": "I32", "nullable": True, "list": False, "enum_values": None},
        }],
    ),
    "rename a property": (
        "born: Date?", 'birth: Date? @rename_from("born")',
        [{"kind": "rename_property", "type_kind": "node", "type_name": "Person", "from": "born", "to": "birth"}],
    ),
    "remove a property": (
        "{ since: I32? }", "",
        [{
            "kind": "drop_property", "type_kind": "edge", "type_name": "Knows", "property_name": "since",
            "mode": "soft",
        }],
    ),
    "an enum that grows": (
        "enum(good, bad)", "enum(fine, bad, good)",
        [{
            "kind": "extend_enum", "type_kind": "node", "type_name": "Person", "property_name": "mood",
            "added_values": ["fine"],
        }],
    ),
    "an enum in another order": ("enum(good, bad)", "enum(bad, good)", []),
    "an index": (
        "bio: String?", "bio: String? @index",
        [{"kind": "add_constraint", "type_kind": "node", "type_name": "Person", "constraint": {"Index": ["bio"]}}],
    ),
    "an index of several": (
        "@range(age, 0..150)", "@range(age, 0..150)  @index(bio, born)",
        [{
            "kind": "add_constraint", "type_kind": "node", "type_name": "Person",
            "constraint": {"Index": ["bio", "born"]},
        }],
    ),
    "a description of a type": (
        "node Place {", 'node Place @description("where") {',
        [{
            "kind": "update_type_metadata", "type_kind": "node", "name": "Place",
            "annotations": [{"name": "description", "value": "where"}],
        }],
    ),
    "an instruction for a type": (
        "edge Near: Place -> Place @card(0..3)", 'edge Near: Place -> Place @card(0..3) @instruction("ask")',
        [{
            "kind": "update_type_metadata", "type_kind": "edge", "name": "Near",
            "annotations": [{"name": "instruction", "value": "ask"}],
        }],
    ),
    "a description of a property": (
        "bio: String?", 'bio: String? @description("life")',
        [{
            "kind": "update_property_metadata", "type_kind": "node", "type_name": "Person", "property_name": "bio",
            "annotations": [{"name": "description", "value": "life"}],
        }],
    ),
}  # fmt: skip


def after(was: str, now: str) -> str:
    assert BEFORE.count(was) == 1, was
    text = BEFORE.replace(was, now)
    if was.startswith("node Place {") and "Spot" in now:
        text = text.replace("Place -> Place", "Spot -> Spot")
    if was.startswith("node Place { title"):
        text = text.replace("edge Near: Place -> Place @card(0..3)\n", "")
    return text


def planned(graph: Graph, text: str, *, allow_data_loss: bool = False) -> dict[str, Any]:
    return dump_plan(graph.schema_plan(text, allow_data_loss=allow_data_loss).steps)


@pytest.fixture(scope="module")
def graph() -> Iterator[Graph]:
    with omnigraph.init("memory://", BEFORE) as made:
        yield made


@pytest.mark.parametrize("change", REFUSED)
def test_what_is_not_supported_is_planned_with_its_reason_and_applying_it_moves_nothing(
    graph: Graph, change: str
) -> None:
    was, now, entity, reason, code = REFUSED[change]
    head = graph.snapshot().number

    plan = planned(graph, after(was, now))

    assert plan["supported"] is False
    first = next(step for step in plan["steps"] if step["kind"] == "unsupported_change")
    expected = {"kind": "unsupported_change", "entity": entity, "reason": reason}
    assert first == (expected if code is None else expected | {"code": code})
    with pytest.raises(InvalidRequestError) as refused:
        graph.schema_apply(after(was, now))
    assert refused.value.message == (reason if code is None else f"[{code}] {reason}")
    assert graph.snapshot().number == head
    assert graph.schema_text() == BEFORE


@pytest.mark.parametrize("change", ["a key", "a unique property"])
def test_what_a_property_declares_is_refused_of_its_type_as_well(graph: Graph, change: str) -> None:
    was, now, entity, _, _ = REFUSED[change]
    owner, _, name = entity.partition(".")
    kind = now.rpartition("@")[2]
    assert planned(graph, after(was, now))["steps"][1:] == [
        {
            "kind": "unsupported_change",
            "entity": owner,
            "reason": f"adding constraint '@{kind}({name})' to '{owner.removeprefix('node:')}' {V1}",
        }
    ]


def test_steps_come_by_kind_and_name_and_within_a_type_in_one_order(graph: Graph) -> None:
    text = (
        BEFORE.replace("interface Aged", "interface Zoned { zone: String? }\ninterface Aged")
        .replace("node Place {", 'node Spot @rename_from("Place") @description("where") {')
        .replace("title: String?  sort: String }", 'label: String? @rename_from("title")  size: I32? @index }')
        .replace("Place -> Place", "Spot -> Spot")
        .replace("node Person", "node Ant {}\nnode Person")
        .replace("enum(good, bad)", "enum(good, bad, fine)")
        .replace("edge Knows: Person -> Person { since: I32? }\n", "edge Adores: Person -> Person\n")
    )
    assert [str(step) for step in graph.schema_plan(text).steps] == [
        "add interface type 'Zoned'",
        "add node type 'Ant'",
        "extend enum 'Person.mood' (+fine) on node 'Person'",
        "rename node type 'Place' -> 'Spot'",
        "update metadata on node 'Spot' (@description(\"where\"))",
        "rename property 'Spot.title' -> 'Spot.label' on node 'Spot'",
        "add property 'Spot.size' (I32?) on node 'Spot'",
        "drop property 'Spot.sort' of node 'Spot' (soft mode)",
        "add constraint @index(size) on node 'Spot'",
        "add edge type 'Adores'",
        "drop edge type 'Knows' (soft mode)",
    ]


@pytest.mark.parametrize("change", DONE)
def test_what_is_supported_is_planned_in_its_steps_and_applied_as_one_commit(change: str) -> None:
    was, now, steps = DONE[change]
    with omnigraph.init("memory://", BEFORE) as graph:
        head = graph.snapshot().number

        plan = planned(graph, after(was, now))
        done = graph.schema_apply(after(was, now))

        assert plan == {"supported": True, "steps": steps}
        assert done.to_dict()["steps"] == steps
        assert done.applied is bool(steps)
        assert graph.snapshot().number == head + bool(steps)
        assert planned(graph, after(was, now))["steps"] == []


@pytest.mark.parametrize("change", ["remove a node", "remove an edge", "remove a property"])
def test_allowing_data_loss_makes_every_drop_a_hard_one(graph: Graph, change: str) -> None:
    was, now, steps = DONE[change]
    plan = planned(graph, after(was, now), allow_data_loss=True)
    assert plan["steps"] == [step | {"mode": "hard"} for step in steps]


def test_a_property_that_satisfies_another_interface_is_refused() -> None:
    nicked = BEFORE.replace("node Person implements Named {", "node Person implements Named, Nicked {").replace(
        "node Place", "interface Nicked { nick: String? @unique }\nnode Place"
    )
    with omnigraph.init("memory://", BEFORE) as graph:
        reasons = [step.get("reason") for step in planned(graph, nicked)["steps"]]
    assert f"changing implemented interfaces on node 'Person' {V1}" in reasons
    assert f"changing which interface properties 'Person.nick' satisfies {V1}" in reasons


def test_a_renamed_interface_is_refused(graph: Graph) -> None:
    schema = graph.schema()
    renamed = replace(schema, interfaces=tuple(replace(each, name=f"{each.name}X") for each in schema.interfaces))
    assert plan_steps(schema, renamed)[:2] == tuple(
        UnsupportedChange(f"interface:{name}X", f"renaming interfaces {V1}") for name in ("Aged", "Named")
    )


def test_a_change_that_no_rule_knows_is_refused_as_such(graph: Graph) -> None:
    schema = graph.schema()
    other = replace(schema, identity_domain="01J00000000000000000000000")
    assert plan_steps(schema, other) == (
        UnsupportedChange("schema", "schema migration contains an unclassified semantic IR change"),
    )


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        (
            "node Place {", 'node Spot @rename_from("Nowhere") {',
            'node \'Spot\' declares @rename_from("Nowhere") but no accepted declaration has that name',
        ),
        (
            "node Place {", 'node Spot @rename_from("Near") {',
            "node 'Spot' cannot rename accepted 'Near' across declaration kinds",
        ),
        (
            "node Place { title: String?  sort: String }",
            'node A @rename_from("Place") {}\nnode B @rename_from("Place") {}',
            "accepted node 'Place' is consumed by more than one desired declaration",
        ),
        (
            "title: String?", 'label: String? @rename_from("nothing")',
            "property 'Place.label' declares @rename_from(\"nothing\"): no accepted property with that name exists "
            "under the stable owner",
        ),
        (
            "title: String?", 'life: String? @rename_from("bio")',
            "property 'Place.life' declares @rename_from(\"bio\"): property moves across stable owners are not "
            "supported",
        ),
        (
            "edge Near", 'node Pet { title: String? @rename_from("name") }\nedge Near',
            'new owner \'node:Pet\' cannot import property identity with @rename_from("name")',
        ),
    ],
)  # fmt: skip
def test_a_hint_that_names_what_it_cannot_mean_is_refused(graph: Graph, was: str, now: str, message: str) -> None:
    text = after(was, now)
    if "Spot" in now:
        text = text.replace("Place -> Place", "Spot -> Spot")
    if "node A" in now:
        text = text.replace("Place -> Place", "A -> A")
    with pytest.raises(InvalidRequestError) as refused:
        graph.schema_plan(text)
    assert refused.value.message == f"schema identity resolution failed: {message}"
