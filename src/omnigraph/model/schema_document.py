"""JSON form and digests of a resolved schema.

    digest         over everything, ids included: what a commit stores
    shape_digest   over the meaning alone: independent of ids, order, comments and history

The document repeats names beside ids so that people can read it; ids decide.
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
    """Serialize the schema to plain JSON values."""
    document: Document = {
        "ir_version": DOCUMENT_VERSION,
        "schema_identity_domain": schema.identity_domain,
        "next_identity_id": schema.next_id,
        "interfaces": [_dump_interface(interface) for interface in schema.interfaces],
        "nodes": [_dump_node(node) for node in schema.nodes],
        "edges": [_dump_edge(edge) for edge in schema.edges],
    }
    if schema.retired:
        document["retired_identity_ids"] = list(schema.retired)
    return document


def from_document(document: Document) -> Schema:
    """Deserialize a schema that `to_document` of this or another release made.

    Raises:
        FormatError: the document was made by a newer release, or is not a schema.
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
                InterfaceType(interface["name"], interface["type_id"], _load_properties(interface))
                for interface in document["interfaces"]
            ),
            nodes=tuple(_load_node(node) for node in document["nodes"]),
            edges=tuple(_load_edge(edge) for edge in document["edges"]),
            retired=tuple(map(int, document.get("retired_identity_ids", ()))),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as mistake:
        raise FormatError(f"the schema document is damaged: {type(mistake).__name__}: {mistake}") from mistake


def to_bytes(schema: Schema) -> bytes:
    """Serialize the schema canonically: the stored bytes, which `digest` is computed over."""
    return _canonical(to_document(schema))


def from_bytes(body: bytes) -> Schema:
    """Deserialize a stored schema.

    Raises:
        FormatError: the document was made by a newer release, or is not a schema.
    """
    try:
        document = json.loads(body)
    except ValueError as mistake:
        raise FormatError(f"the schema document is not JSON: {mistake}") from mistake
    return from_document(document)


def digest(schema: Schema) -> str:
    """Return `sha256:…` of the whole document, ids included."""
    return _hash(to_bytes(schema))


def shape_digest(schema: Schema) -> str:
    """Return `sha256:…` of the meaning; equal for texts that differ in comments, order or rename hints."""
    return _hash(_canonical([_describe_type(type_) for type_ in schema.types]))


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _hash(body: bytes) -> str:
    return f"sha256:{sha256(body).hexdigest()}"


def dump_type(type_: PropertyType) -> Document:
    """Serialize a property's type."""
    return {
        "scalar": {"Vector": type_.vector_dim} if type_.scalar is Scalar.VECTOR else type_.scalar.value,
        "nullable": type_.nullable,
        "list": type_.list,
        "enum_values": None if type_.enum_values is None else list(type_.enum_values),
    }


def load_type(document: Document) -> PropertyType:
    """Deserialize a property's type."""
    scalar, values = document["scalar"], document["enum_values"]
    dimension = scalar["Vector"] if isinstance(scalar, dict) else None
    return PropertyType(
        Scalar.VECTOR if isinstance(scalar, dict) else Scalar(scalar),
        nullable=document["nullable"],
        list=document["list"],
        enum_values=None if values is None else tuple(values),
        vector_dim=dimension,
    )


def dump_annotation(annotation: Annotation) -> Document:
    """Serialize an annotation; `kwargs` only if there are any."""
    document: Document = {"name": annotation.name, "value": annotation.value}
    if annotation.kwargs:
        document["kwargs"] = dict(annotation.kwargs)
    return document


def load_annotation(document: Document) -> Annotation:
    """Deserialize an annotation."""
    return Annotation(document["name"], document["value"], tuple(document.get("kwargs", {}).items()))


def _dump_interface(interface: InterfaceType) -> Document:
    return {
        "name": interface.name,
        "type_id": interface.type_id,
        "properties": [_dump_property(property_) for property_ in interface.properties],
    }


def _dump_node(node: NodeType) -> Document:
    return {
        "name": node.name,
        "type_id": node.type_id,
        "table_incarnation_id": node.table_id,
        "annotations": [dump_annotation(annotation) for annotation in node.annotations],
        "implements": [_dump_type_ref(interface) for interface in node.implements],
        "properties": [_dump_property(property_) for property_ in node.properties],
        "constraints": [_dump_constraint(constraint, node) for constraint in node.constraints],
    }


def _dump_edge(edge: EdgeType) -> Document:
    return {
        "name": edge.name,
        "type_id": edge.type_id,
        "table_incarnation_id": edge.table_id,
        "from_type": _dump_type_ref(edge.from_type),
        "to_type": _dump_type_ref(edge.to_type),
        "cardinality": {"min": edge.cardinality.min, "max": edge.cardinality.max},
        "annotations": [dump_annotation(annotation) for annotation in edge.annotations],
        "properties": [_dump_property(property_) for property_ in edge.properties],
        "constraints": [_dump_constraint(constraint, edge) for constraint in edge.constraints],
    }


def _dump_type_ref(reference: TypeRef) -> Document:
    return {"type_id": reference.type_id, "type_name": reference.type_name}


def _dump_property_ref(reference: PropertyRef) -> Document:
    return {
        "owner_type_id": reference.owner_type_id,
        "owner_type_name": reference.owner_type_name,
        "property_id": reference.property_id,
        "property_name": reference.property_name,
    }


def _dump_property(property_: Property) -> Document:
    return {
        "name": property_.name,
        "property_id": property_.property_id,
        "prop_type": dump_type(property_.type),
        "annotations": [dump_annotation(annotation) for annotation in property_.annotations],
        "property_constraints": [constraint.value for constraint in property_.constraints],
        "embed_source": None
        if property_.embed is None
        else {"source": _dump_property_ref(property_.embed.source), "model": property_.embed.model},
        "declared_directly": property_.declared_directly,
        "satisfies_interface_properties": [_dump_property_ref(reference) for reference in property_.satisfies],
    }


def _dump_constraint(constraint: Constraint, owner: EntityType) -> Document:
    match constraint:
        case Range(name, least, most):
            return {"kind": constraint.kind, "field": _dump_field(name, owner), "min": least, "max": most}
        case Check(name, pattern):
            return {"kind": constraint.kind, "field": _dump_field(name, owner), "pattern": pattern}
        case Key(names) | Unique(names) | Index(names):
            return {"kind": constraint.kind, "fields": [_dump_field(name, owner) for name in names]}


def _dump_field(name: str, owner: EntityType) -> Document:
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
    return {"kind": "property", **_dump_property_ref(reference)}


def _load_node(document: Document) -> NodeType:
    return NodeType(
        name=document["name"],
        type_id=document["type_id"],
        table_id=document["table_incarnation_id"],
        properties=_load_properties(document),
        constraints=tuple(_load_constraint(constraint) for constraint in document["constraints"]),
        annotations=tuple(load_annotation(annotation) for annotation in document["annotations"]),
        implements=tuple(_load_type_ref(interface) for interface in document["implements"]),
    )


def _load_edge(document: Document) -> EdgeType:
    return EdgeType(
        name=document["name"],
        type_id=document["type_id"],
        table_id=document["table_incarnation_id"],
        from_type=_load_type_ref(document["from_type"]),
        to_type=_load_type_ref(document["to_type"]),
        cardinality=Cardinality(document["cardinality"]["min"], document["cardinality"]["max"]),
        properties=_load_properties(document),
        constraints=tuple(_load_constraint(constraint) for constraint in document["constraints"]),
        annotations=tuple(load_annotation(annotation) for annotation in document["annotations"]),
    )


def _load_type_ref(document: Document) -> TypeRef:
    return TypeRef(document["type_id"], document["type_name"])


def _load_property_ref(document: Document) -> PropertyRef:
    return PropertyRef(
        document["owner_type_id"],
        document["owner_type_name"],
        document["property_id"],
        document["property_name"],
    )


def _load_properties(document: Document) -> tuple[Property, ...]:
    return tuple(_load_property(property_) for property_ in document["properties"])


def _load_property(document: Document) -> Property:
    embed = document["embed_source"]
    return Property(
        name=document["name"],
        property_id=document["property_id"],
        type=load_type(document["prop_type"]),
        annotations=tuple(load_annotation(annotation) for annotation in document["annotations"]),
        constraints=tuple(PropertyConstraint(item) for item in document["property_constraints"]),
        embed=None if embed is None else Embed(_load_property_ref(embed["source"]), embed["model"]),
        declared_directly=document["declared_directly"],
        satisfies=tuple(_load_property_ref(item) for item in document["satisfies_interface_properties"]),
    )


def _load_constraint(document: Document) -> Constraint:
    match document["kind"]:
        case "range":
            return Range(_load_field(document["field"]), document["min"], document["max"])
        case "check":
            return Check(_load_field(document["field"]), document["pattern"])
        case kind:
            return _TUPLES[kind](tuple(_load_field(field) for field in document["fields"]))


def _load_field(document: Document) -> str:
    name: str = document["property_name"] if document["kind"] == "property" else document["role"]
    if document["kind"] != "property" and name not in _SYSTEM_ROLES:
        raise ValueError(f"{name!r} is no system column")
    return name


def _describe_type(type_: AnyType) -> Document:
    """Describe a type without ids; lists whose order has no meaning are sorted.

    An inline `@unique` is omitted beside the same constraint over the type: two spellings of one constraint.
    """
    shape: Document = {
        "kind": type_.kind.value,
        "name": type_.name,
        "properties": [_describe_property(property_, type_) for property_ in type_.properties],
    }
    if isinstance(type_, InterfaceType):
        return shape
    shape["annotations"] = _sorted([dump_annotation(annotation) for annotation in type_.annotations])
    shape["constraints"] = _sorted([describe_constraint(constraint) for constraint in type_.constraints])
    if isinstance(type_, NodeType):
        shape["implements"] = sorted(interface.type_name for interface in type_.implements)
    else:
        shape["ends"] = [type_.from_type.type_name, type_.to_type.type_name]
        shape["cardinality"] = [type_.cardinality.min, type_.cardinality.max]
    return shape


def _describe_property(property_: Property, owner: AnyType) -> Document:
    shape = {
        "name": property_.name,
        "type": dump_type(property_.type),
        "annotations": _sorted([dump_annotation(annotation) for annotation in property_.annotations]),
        "embed": None if property_.embed is None else [property_.embed.source.property_name, property_.embed.model],
        "direct": property_.declared_directly,
        "satisfies": sorted([reference.owner_type_name, reference.property_name] for reference in property_.satisfies),
    }
    if isinstance(owner, InterfaceType):
        # An interface has no constraints of its own beside those of its properties.
        shape["constraints"] = sorted(property_.constraints)
    return shape


def describe_constraint(constraint: Constraint) -> list[Any]:
    """Describe a constraint as JSON values; the order of its properties has no meaning."""
    match constraint:
        case Range(name, least, most):
            return [constraint.kind, name, least, most]
        case Check(name, pattern):
            return [constraint.kind, name, pattern]
        case Key(names) | Unique(names) | Index(names):
            return [constraint.kind, *sorted(names)]


def _sorted(values: list[Any]) -> list[Any]:
    return sorted(values, key=_canonical)
