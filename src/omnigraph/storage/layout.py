"""How a type of the schema lies in a table: which columns, in which order, of which Arrow types.

A node has `id` and its properties, an edge `id`, `src`, `dst` and its properties, these in the order of their names.
Each property's column carries the number that stays when the name changes.
"""

from collections.abc import Mapping

import pyarrow as pa

from omnigraph.model.schema import DST, ID, SRC, EdgeType, EntityType, Schema
from omnigraph.model.types import PropertyType, Scalar

PROPERTY_ID = b"omnigraph.stable_property_id"
# Lance keeps the values of a column with this mark apart from its rows.
BLOB_MARK = b"lance-encoding:blob"
# Ids made together differ in their last characters only, which general compression halves.
_ID_ENCODING = {b"lance-encoding:compression": b"zstd"}

# A DateTime is an instant with whole milliseconds. Arrow's Date64 would hold the same number, but means whole days:
# some readers of tables cut it to the day, others do not know it.
INSTANT = pa.timestamp("ms", tz="UTC")

_ARROW_SCALARS: Mapping[Scalar, pa.DataType] = {
    Scalar.STRING: pa.string(),
    Scalar.BLOB: pa.large_binary(),
    Scalar.BOOL: pa.bool_(),
    Scalar.I32: pa.int32(),
    Scalar.I64: pa.int64(),
    Scalar.U32: pa.uint32(),
    Scalar.U64: pa.uint64(),
    Scalar.F32: pa.float32(),
    Scalar.F64: pa.float64(),
    Scalar.DATE: pa.date32(),
    Scalar.DATETIME: INSTANT,
}

_ARROW_NAMES: Mapping[Scalar, str] = {
    Scalar.STRING: "Utf8",
    Scalar.BLOB: "LargeBinary",
    Scalar.BOOL: "Boolean",
    Scalar.I32: "Int32",
    Scalar.I64: "Int64",
    Scalar.U32: "UInt32",
    Scalar.U64: "UInt64",
    Scalar.F32: "Float32",
    Scalar.F64: "Float64",
    Scalar.DATE: "Date32",
    Scalar.DATETIME: "Timestamp(ms, UTC)",
    Scalar.VECTOR: "FixedSizeList<Float32>",
}


def arrow_type(of: PropertyType) -> pa.DataType:
    """The Arrow type of a property's column.

    Args:
        of: the property's type; whether it may be absent does not matter.

    Returns:
        A fixed-size list of 32-bit floats for a vector, a list for a list, else the scalar's own type.
    """
    if of.scalar is Scalar.VECTOR:
        return pa.list_(pa.field("item", pa.float32()), of.vector_dim or 0)
    scalar = _ARROW_SCALARS[of.scalar]
    return pa.list_(pa.field("item", scalar)) if of.list else scalar


def arrow_name(scalar: Scalar) -> str:
    """What messages call the Arrow type of a scalar: `Int32`, `Utf8`."""
    return _ARROW_NAMES[scalar]


def system_columns(entity: EntityType) -> tuple[str, ...]:
    """The columns a table has beside the properties."""
    return (ID, SRC, DST) if isinstance(entity, EdgeType) else (ID,)


def table_schema(entity: EntityType) -> pa.Schema:
    """The columns of a type's table.

    Returns:
        The system columns, which are never null, then the properties in the order of their names; those that the schema
        requires are never null either.
    """
    system = [
        pa.field(name, pa.string(), nullable=False, metadata=_ID_ENCODING if name == ID else None)
        for name in system_columns(entity)
    ]
    properties = [
        pa.field(
            property_.name,
            arrow_type(property_.type),
            nullable=property_.type.nullable,
            metadata={PROPERTY_ID: str(property_.property_id).encode()}
            | ({BLOB_MARK: b"true"} if property_.type.is_blob else {}),
        )
        for property_ in entity.properties
    ]
    return pa.schema([*system, *properties])


def table_schemas(schema: Schema) -> dict[str, pa.Schema]:
    """The columns of every table of a graph, by type key."""
    return {entity.type_key: table_schema(entity) for entity in schema.entities}
