"""Change sets too large for their record: an Arrow file of (type key, what happened, id)."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute

from omnigraph.errors import FormatError
from omnigraph.model.change import TypeChange

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

_OPERATIONS = ("insert", "update", "delete")
_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("type_key", pa.dictionary(pa.int32(), pa.string())),
    ("op", pa.dictionary(pa.int8(), pa.string())),
    ("id", pa.string()),
]
_SCHEMA = pa.schema(_COLUMNS)


class ChangedIds(NamedTuple):
    """The ids of one type's changes."""

    inserted: Sequence[str]
    updated: Sequence[str]
    deleted: Sequence[str]


def change_file_bytes(changed: Mapping[str, ChangedIds]) -> bytes:
    """The file."""
    groups = [
        (type_key, operation, some)
        for type_key, ids in sorted(changed.items())
        for operation, some in zip(_OPERATIONS, ids, strict=True)
    ]
    columns = [
        pa.concat_arrays([pa.repeat(type_key, len(some)) for type_key, _, some in groups]),
        pa.concat_arrays([pa.repeat(operation, len(some)) for _, operation, some in groups]),
        pa.concat_arrays([pa.array(some, pa.string()) for _, _, some in groups]),
    ]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, _SCHEMA) as writer:
        writer.write_table(pa.table(columns, names=_SCHEMA.names).cast(_SCHEMA))
    return sink.getvalue().to_pybytes()


def read_change_file(body: bytes, *, path: str) -> dict[str, TypeChange]:
    """The changes in the file, ids and all."""
    try:
        table = pa.ipc.open_file(pa.BufferReader(body)).read_all()
    except pa.ArrowInvalid as fault:
        raise FormatError(f"the change file {path} is damaged: {fault}", path=path) from fault
    found: dict[str, TypeChange] = {}
    keys: Any = table["type_key"].cast(pa.string())
    operations: Any = table["op"].cast(pa.string())
    ids: Any = table["id"]
    for type_key in sorted(set(keys.to_pylist())):
        mine = pc.equal(keys, type_key)
        inserted, updated, deleted = (
            tuple(ids.filter(pc.and_(mine, pc.equal(operations, operation))).to_pylist()) for operation in _OPERATIONS
        )
        found[type_key] = TypeChange(len(inserted), len(updated), len(deleted), inserted, updated, deleted)
    return found
