"""The JSON document of a schema, and the digests over it."""

import json
from dataclasses import replace
from typing import Any

import pytest

from omnigraph.errors import FormatError
from omnigraph.language.schema import accept
from omnigraph.model.schema import Schema
from omnigraph.model.schema_document import digest, from_bytes, from_document, shape_digest, to_bytes, to_document

TEXT = """
interface Named { name: String @index }
node Doc implements Named {
  name: String @key
  body: String  mood: enum(good, bad)?  tags: [String]?  size: I32
  v: Vector(4)? @embed(body, model="small") @description("what it means")
  @range(size, -1..2.5)  @check(name, "^a")  @unique(size, mood)
}
edge Cites: Doc -> Doc @card(0..9) @instruction("ask") { page: I32?  @unique(src, dst)  @index(page) }
"""


class FixedIds:
    def new(self) -> str:
        return "01J00000000000000000000000"


def schema() -> Schema:
    return accept(TEXT, ids=FixedIds())


def test_a_schema_survives_its_document() -> None:
    assert from_document(json.loads(json.dumps(to_document(schema())))) == schema()
    assert from_bytes(to_bytes(schema())) == schema()


def test_the_document_names_what_programs_read() -> None:
    document = to_document(schema())

    assert (document["ir_version"], document["next_identity_id"]) == (2, 14)
    assert document["schema_identity_domain"] == "01J00000000000000000000000"
    assert document["interfaces"] == [
        {
            "name": "Named",
            "type_id": 1,
            "properties": [
                {
                    "name": "name",
                    "property_id": 4,
                    "prop_type": {"scalar": "String", "nullable": False, "list": False, "enum_values": None},
                    "annotations": [],
                    "property_constraints": ["index"],
                    "embed_source": None,
                    "declared_directly": True,
                    "satisfies_interface_properties": [],
                }
            ],
        }
    ]


def test_a_vector_property_carries_its_dimension_and_its_source() -> None:
    (node,) = to_document(schema())["nodes"]
    vector = next(each for each in node["properties"] if each["name"] == "v")

    assert vector["prop_type"]["scalar"] == {"Vector": 4}
    assert vector["embed_source"] == {
        "source": {"owner_type_id": 2, "owner_type_name": "Doc", "property_id": 5, "property_name": "body"},
        "model": "small",
    }
    assert vector["annotations"] == [{"name": "description", "value": "what it means"}]


def test_constraints_name_properties_and_system_columns() -> None:
    (node,), (edge,) = to_document(schema())["nodes"], to_document(schema())["edges"]
    size = {
        "kind": "property",
        "owner_type_id": 2,
        "owner_type_name": "Doc",
        "property_id": 8,
        "property_name": "size",
    }
    src = {
        "kind": "system",
        "stable_table_id": 3,
        "table_type_name": "Cites",
        "table_incarnation_id": 13,
        "role": "src",
    }

    assert {"kind": "range", "field": size, "min": -1, "max": 2.5} in node["constraints"]
    assert [each["kind"] for each in node["constraints"]] == ["key", "unique", "range", "check"]
    assert edge["constraints"][0] == {"kind": "unique", "fields": [src, {**src, "role": "dst"}]}
    assert edge["cardinality"] == {"min": 0, "max": 9}
    assert edge["from_type"] == {"type_id": 2, "type_name": "Doc"}


def test_the_digest_sees_numbers_and_the_shape_does_not() -> None:
    other = accept(TEXT)

    assert digest(other) != digest(schema())
    assert shape_digest(other) == shape_digest(schema())
    assert digest(schema()) == digest(schema())
    assert digest(schema()).startswith("sha256:")
    assert len(digest(schema())) == len("sha256:") + 64


def test_the_digest_of_a_schema_does_not_change_between_releases() -> None:
    # Commits name their schema by this digest: another value would orphan every graph there is.
    assert digest(schema()) == "sha256:0dbfb63a4ca5872862954ebf5c4ab98859dbf3229c5212a6884241d0cfd55117"


def test_the_digest_of_a_shape_does_not_change_between_releases() -> None:
    assert shape_digest(schema()) == "sha256:3210ce2ba4a2890e90c361264839f76957fa88877ebcc6b41f448623d718377b"


def test_the_digest_sees_every_field() -> None:
    base = schema()
    node = base.nodes[0]
    changed = [
        replace(base, next_id=base.next_id + 1),
        replace(base, identity_domain="01J00000000000000000000001"),
        replace(base, nodes=(replace(node, table_id=99),)),
        replace(base, nodes=(replace(node, annotations=base.edges[0].annotations),)),
        replace(base, nodes=(replace(node, constraints=node.constraints[1:]),)),
        replace(base, nodes=(replace(node, implements=()),)),
        replace(base, edges=()),
    ]

    assert len({digest(each) for each in [base, *changed]}) == len(changed) + 1


def damaged(**changes: object) -> dict[str, Any]:
    return {**to_document(schema()), **changes}


@pytest.mark.parametrize(
    "document",
    [
        damaged(nodes=[{"name": "A"}]),
        damaged(nodes=None),
        damaged(edges=[7]),
        damaged(interfaces=[{"name": "I", "type_id": 1, "properties": [{"name": "x"}]}]),
        {key: value for key, value in damaged().items() if key != "next_identity_id"},
    ],
)
def test_a_damaged_document_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match="damaged"):
        from_document(document)


@pytest.mark.parametrize("role", ["rowid", ""])
def test_a_system_column_that_does_not_exist_is_refused(role: str) -> None:
    document = json.loads(to_bytes(schema()))
    document["edges"][0]["constraints"][0]["fields"][0]["role"] = role

    with pytest.raises(FormatError, match="is no system column"):
        from_document(document)


def test_a_document_of_a_newer_release_asks_for_an_upgrade() -> None:
    with pytest.raises(FormatError, match="upgrade omnigraph first"):
        from_document(damaged(ir_version=3))


@pytest.mark.parametrize("version", [None, 1, "2"])
def test_a_document_of_an_unknown_format_is_refused(version: object) -> None:
    with pytest.raises(FormatError, match="which no release has written"):
        from_document(damaged(ir_version=version))


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[1]"])
def test_bytes_that_are_no_document_are_refused(body: bytes) -> None:
    with pytest.raises(FormatError):
        from_bytes(body)
