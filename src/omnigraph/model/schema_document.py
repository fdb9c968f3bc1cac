"""A resolved schema as a JSON document, and the digests that stand for it.

    digest         of everything, numbers included: what a commit names
    shape_digest   of what the schema says, whatever its numbers, its order, its comments and how it came about

The document repeats names beside numbers so that people can read it; numbers decide.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from omnigraph.errors import FormatError
from omnigraph.model.schema import (
    DST,
    ID,
    SRC,
    Annotation,
    AnyType,
    Cardinality,
    Check,
    Constraint,
    EdgeType,
    Embed,
    EntityType,
    Index,
    InterfaceType,
    Key,
    NodeType,
    Property,
    PropertyConstraint,
    PropertyRef,
    Range,
    Schema,
    TypeRef,
    Unique,
)
from omnigraph.model.types import PropertyType, Scalar

DOCUMENT_VERSION = 2
Document = dict[str, Any]

_TUPLES: Mapping[str, type[Key | Unique | Index]] = {"key": Key, "unique": Unique, "index": Index}
_SYSTEM_ROLES = frozenset({ID, SRC, DST})


def to_document(schema: Schema) -> Document:
    """The schema as plain JSON values."""
    document: Document = {
        "ir_version": DOCUMENT_VERSION,
        "schema_identity_domain": schema.identity_domain,
        "next_identity_id": schema.next_id,
        "interfaces": [_interface_document(each) for each in schema.interfaces],
        "nodes": [_node_document(each) for each in schema.nodes],
        "edges": [_edge_document(each) for each in schema.edges],
    }
    if schema.retired:
        document["retired_identity_ids"] = list(schema.retired)
    return document


def from_document(document: Document) -> Schema:
    """The schema a document describes.

    Args:
        document: what `to_document` made, perhaps by another release.

    Returns:
        An equal schema.

    Raises:
        FormatError: it was made by a newer release, or is no such document.
    """
    version = document.get("ir_version") if isinstance(document, dict) else None
    if isinstance(version, int) and version > DOCUMENT_VERSION:
        raise FormatError(f"the schema was written in format {version}; upgrade omnigraph first")
    if version != DOCUMENT_VERSION:
        raise FormatError(f"the schema document has ir_version {version!r}, which no release has written")
    try:
        return Schema(
            identity_domain=document["schema_identity_domain"],
            next_id=document["next_identity_id"],
            interfaces=tuple(
                InterfaceType(each["name"], each["type_id"], _properties(each)) for each in document["interfaces"]
            ),
            nodes=tuple(_node(each) for each in document["nodes"]),
            edges=tuple(_edge(each) for each in document["edges"]),
            retired=tuple(map(int, document.get("retired_identity_ids", ()))),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as mistake:
        raise FormatError(f"the schema document is damaged: {type(mistake).__name__}: {mistake}") from mistake


def to_bytes(schema: Schema) -> bytes:
    """The document in its one canonical spelling: what is stored, and what `digest` is over."""
    return _canonical(to_document(schema))


def from_bytes(body: bytes) -> Schema:
    """The schema of a stored document.

    Raises:
        FormatError: it was made by a newer release, or is no such document.
    """
    try:
        document = json.loads(body)
    except ValueError as mistake:
        raise FormatError(f"the schema document is not JSON: {mistake}") from mistake
    return from_document(document)


def digest(schema: Schema) -> str:
    """`sha256:…` of the whole document, numbers included."""
    return _digest(to_bytes(schema))


def shape_digest(schema: Schema) -> str:
    """`sha256:…` of what the schema says; equal for two texts that differ in comments, order or rename hints."""
    return _digest(_canonical([_shape(each) for each in schema.types]))


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _digest(body: bytes) -> str:
    return f"sha256:{sha256(body).hexdigest()}"


def type_document(of: PropertyType) -> Document:
    """A property's type as plain JSON values."""
    return {
        "scalar": {"Vector": of.vector_dim} if of.scalar is Scalar.VECTOR else of.scalar.value,
        "nullable": of.nullable,
        "list": of.list,
        "enum_values": None if of.enum_values is None else list(of.enum_values),
    }


def type_from_document(document: Document) -> PropertyType:
    """The type a document describes."""
    scalar, values = document["scalar"], document["enum_values"]
    dimension = scalar["Vector"] if isinstance(scalar, dict) else None
    return PropertyType(
        Scalar.VECTOR if isinstance(scalar, dict) else Scalar(scalar),
        nullable=document["nullable"],
        list=document["list"],
        enum_values=None if values is None else tuple(values),
        vector_dim=dimension,
    )


def annotation_document(annotation: Annotation) -> Document:
    """An annotation as plain JSON values; `kwargs` only where there are some."""
    document: Document = {"name": annotation.name, "value": annotation.value}
    if annotation.kwargs:
        document["kwargs"] = dict(annotation.kwargs)
    return document


def annotation_from_document(document: Document) -> Annotation:
    """The annotation a document describes."""
    return Annotation(document["name"], document["value"], tuple(document.get("kwargs", {}).items()))


def _interface_document(of: InterfaceType) -> Document:
    return {
        "name": of.name,
        "type_id": of.type_id,
        "properties": [_property_document(each) for each in of.properties],
    }


def _node_document(of: NodeType) -> Document:
    return {
        "name": of.name,
        "type_id": of.type_id,
        "table_incarnation_id": of.table_id,
        "annotations": [annotation_document(each) for each in of.annotations],
        "implements": [_type_ref_document(each) for each in of.implements],
        "properties": [_property_document(each) for each in of.properties],
        "constraints": [_constraint_document(each, of) for each in of.constraints],
    }


def _edge_document(of: EdgeType) -> Document:
    return {
        "name": of.name,
        "type_id": of.type_id,
        "table_incarnation_id": of.table_id,
        "from_type": _type_ref_document(of.from_type),
        "to_type": _type_ref_document(of.to_type),
        "cardinality": {"min": of.cardinality.min, "max": of.cardinality.max},
        "annotations": [annotation_document(each) for each in of.annotations],
        "properties": [_property_document(each) for each in of.properties],
        "constraints": [_constraint_document(each, of) for each in of.constraints],
    }


def _type_ref_document(of: TypeRef) -> Document:
    return {"type_id": of.type_id, "type_name": of.type_name}


def _property_ref_document(of: PropertyRef) -> Document:
    return {
        "owner_type_id": of.owner_type_id,
        "owner_type_name": of.owner_type_name,
        "property_id": of.property_id,
        "property_name": of.property_name,
    }


def _property_document(of: Property) -> Document:
    return {
        "name": of.name,
        "property_id": of.property_id,
        "prop_type": type_document(of.type),
        "annotations": [annotation_document(each) for each in of.annotations],
        "property_constraints": [each.value for each in of.constraints],
        "embed_source": None
        if of.embed is None
        else {"source": _property_ref_document(of.embed.source), "model": of.embed.model},
        "declared_directly": of.declared_directly,
        "satisfies_interface_properties": [_property_ref_document(each) for each in of.satisfies],
    }


def _constraint_document(of: Constraint, owner: EntityType) -> Document:
    match of:
        case Range(name, least, most):
            return {"kind": of.kind, "field": _field_document(name, owner), "min": least, "max": most}
        case Check(name, pattern):
            return {"kind": of.kind, "field": _field_document(name, owner), "pattern": pattern}
        case Key(names) | Unique(names) | Index(names):
            return {"kind": of.kind, "fields": [_field_document(name, owner) for name in names]}


def _field_document(name: str, owner: EntityType) -> Document:
    found = owner.property_named(name)
    if found is None:
        return {
            "kind": "system",
            "stable_table_id": owner.type_id,
            "table_type_name": owner.name,
            "table_incarnation_id": owner.table_id,
            "role": name,
        }
    reference = PropertyRef(owner.type_id, owner.name, found.property_id, name)
    return {"kind": "property", **_property_ref_document(reference)}


def _node(document: Document) -> NodeType:
    return NodeType(
        name=document["name"],
        type_id=document["type_id"],
        table_id=document["table_incarnation_id"],
        properties=_properties(document),
        constraints=tuple(_constraint(each) for each in document["constraints"]),
        annotations=tuple(annotation_from_document(each) for each in document["annotations"]),
        implements=tuple(_type_ref(each) for each in document["implements"]),
    )


def _edge(document: Document) -> EdgeType:
    return EdgeType(
        name=document["name"],
        type_id=document["type_id"],
        table_id=document["table_incarnation_id"],
        from_type=_type_ref(document["from_type"]),
        to_type=_type_ref(document["to_type"]),
        cardinality=Cardinality(document["cardinality"]["min"], document["cardinality"]["max"]),
        properties=_properties(document),
        constraints=tuple(_constraint(each) for each in document["constraints"]),
        annotations=tuple(annotation_from_document(each) for each in document["annotations"]),
    )


def _type_ref(document: Document) -> TypeRef:
    return TypeRef(document["type_id"], document["type_name"])


def _property_ref(document: Document) -> PropertyRef:
    return PropertyRef(
        document["owner_type_id"],
        document["owner_type_name"],
        document["property_id"],
        document["property_name"],
    )


def _properties(document: Document) -> tuple[Property, ...]:
    return tuple(_property(each) for each in document["properties"])


def _property(document: Document) -> Property:
    embed = document["embed_source"]
    return Property(
        name=document["name"],
        property_id=document["property_id"],
        type=type_from_document(document["prop_type"]),
        annotations=tuple(annotation_from_document(each) for each in document["annotations"]),
        constraints=tuple(PropertyConstraint(each) for each in document["property_constraints"]),
        embed=None if embed is None else Embed(_property_ref(embed["source"]), embed["model"]),
        declared_directly=document["declared_directly"],
        satisfies=tuple(_property_ref(each) for each in document["satisfies_interface_properties"]),
    )


def _constraint(document: Document) -> Constraint:
    match document["kind"]:
        case "range":
            return Range(_field(document["field"]), document["min"], document["max"])
        case "check":
            return Check(_field(document["field"]), document["pattern"])
        case kind:
            return _TUPLES[kind](tuple(_field(each) for each in document["fields"]))


def _field(document: Document) -> str:
    name: str = document["property_name"] if document["kind"] == "property" else document["role"]
    if document["kind"] != "property" and name not in _SYSTEM_ROLES:
        raise ValueError(f"{name!r} is no system column")
    return name


def _shape(of: AnyType) -> Document:
    """What a type says, without numbers; lists whose order means nothing are sorted.

    A property's own `@unique` is left out beside the same constraint over the type: two spellings of one thing.
    """
    shape: Document = {
        "kind": of.kind.value,
        "name": of.name,
        "properties": [_property_shape(each, of) for each in of.properties],
    }
    if isinstance(of, InterfaceType):
        return shape
    shape["annotations"] = _sorted([annotation_document(each) for each in of.annotations])
    shape["constraints"] = _sorted([constraint_shape(each) for each in of.constraints])
    if isinstance(of, NodeType):
        shape["implements"] = sorted(each.type_name for each in of.implements)
    else:
        shape["ends"] = [of.from_type.type_name, of.to_type.type_name]
        shape["cardinality"] = [of.cardinality.min, of.cardinality.max]
    return shape


def _property_shape(of: Property, owner: AnyType) -> Document:
    shape = {
        "name": of.name,
        "type": type_document(of.type),
        "annotations": _sorted([annotation_document(each) for each in of.annotations]),
        "embed": None if of.embed is None else [of.embed.source.property_name, of.embed.model],
        "direct": of.declared_directly,
        "satisfies": sorted([each.owner_type_name, each.property_name] for each in of.satisfies),
    }
    if isinstance(owner, InterfaceType):
        # An interface has no constraints of its own beside those of its properties.
        shape["constraints"] = sorted(of.constraints)
    return shape


def constraint_shape(of: Constraint) -> list[Any]:
    """What a constraint says, as JSON values; the order of a tuple's members means nothing."""
    match of:
        case Range(name, least, most):
            return [of.kind, name, least, most]
        case Check(name, pattern):
            return [of.kind, name, pattern]
        case Key(names) | Unique(names) | Index(names):
            return [of.kind, *sorted(names)]


def _sorted(values: list[Any]) -> list[Any]:
    return sorted(values, key=_canonical)
