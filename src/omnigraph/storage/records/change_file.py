"""Change sets too large for their record: an Arrow file of (type key, what happened, id)."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute

from omnigraph.errors import FormatError
from omnigraph.model.change import TypeChange
from omnigraph.storage.id_column import id_array

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

_OPERATIONS = ("insert", "update", "delete")
_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("type_key", pa.dictionary(pa.int32(), pa.string())),
    ("op", pa.dictionary(pa.int8(), pa.string())),
    ("id", pa.string()),
]
_SCHEMA = pa.schema(_COLUMNS)
# Ids made together differ in their last characters only: a tenth of the bytes.
_COMPRESSED = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", compression_level=1))


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
    keys, sizes = sorted(changed), [len(some) for _, _, some in groups]
    # Built as what they are on disk: a change may have millions of ids, and few keys.
    key_codes = np.repeat([keys.index(type_key) for type_key, _, _ in groups], sizes).astype(np.int32)
    op_codes = np.repeat([_OPERATIONS.index(operation) for _, operation, _ in groups], sizes).astype(np.int8)
    columns = [
        pa.chunked_array([pa.DictionaryArray.from_arrays(key_codes, pa.array(keys, pa.string()))]),
        pa.chunked_array([pa.DictionaryArray.from_arrays(op_codes, pa.array(_OPERATIONS, pa.string()))]),
        pa.chunked_array([chunk for _, _, some in groups for chunk in id_array(some).chunks], pa.string()),
    ]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, _SCHEMA, options=_COMPRESSED) as writer:
        writer.write_table(pa.table(columns, schema=_SCHEMA))
    return sink.getvalue().to_pybytes()


def read_change_file(body: bytes, *, path: str) -> dict[str, TypeChange]:
    """The changes in the file, ids and all."""
    try:
        table = pa.ipc.open_file(pa.BufferReader(body)).read_all()
        table.validate(full=True)
        return _changes(table)
    except (pa.ArrowException, OSError, ValueError, LookupError, MemoryError) as fault:
        raise FormatError(f"the change file {path} is damaged: {fault}", path=path) from fault


def _changes(table: pa.Table) -> dict[str, TypeChange]:
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
