"""Entities as JSON lines: one object per line, in the form that a load takes back."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute

from omnigraph.model.schema import DST, ID, SRC, EdgeType, EntityType
from omnigraph.pipeline.export.json_text import json_texts

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute


def json_lines(entity: EntityType, rows: pa.RecordBatch) -> pa.Buffer:
    """Rows as lines.

    Args:
        entity: their type.
        rows: in the columns of the type's table.

    Returns:
        pa.Buffer: the bytes of one line for each row, in their order, each with its line end.
    """
    head = json.dumps(entity.name, ensure_ascii=False)
    values = {name: json_texts(rows.column(name)) for name in rows.schema.names}
    parts: list[Any] = []
    if isinstance(entity, EdgeType):
        parts += [f'{{"edge":{head},"from":', values.pop(SRC), ',"to":', values.pop(DST), ',"data":{"id":']
    else:
        parts += [f'{{"type":{head},"data":{{"id":']
    parts.append(values.pop(ID))
    for name, texts in values.items():
        parts += [f",{json.dumps(name, ensure_ascii=False)}:", texts]
    parts.append("}}\n")
    return joined_bytes(parts)


def joined_bytes(parts: "Sequence[str | pa.Array[Any]]") -> pa.Buffer:
    """Texts that are the same for every row, and columns of texts, written row by row.

    Args:
        parts: what a row consists of, in order; no column has a null.

    Returns:
        pa.Buffer: the rows' bytes, one after the other.
    """
    columns = [part for part in parts if not isinstance(part, str)]
    # The bytes of many rows may be more than offsets of 32 bits can count.
    size = sum(column.nbytes for column in columns)
    kind = pa.string() if size < 2**30 and all(column.type == pa.string() for column in columns) else pa.large_string()
    same = [pa.scalar(part, kind) if isinstance(part, str) else part.cast(kind) for part in parts]
    texts: Any = pc.binary_join_element_wise(*same, pa.scalar("", kind))
    return _bytes_of(texts)


def _bytes_of(texts: "pa.Array[Any]") -> pa.Buffer:
    """The bytes that an array of texts holds, which lie one after the other: nothing is copied."""
    if not len(texts):
        return pa.py_buffer(b"")
    _, offsets, values = texts.buffers()
    if offsets is None or values is None:
        return pa.py_buffer(b"")
    width = 8 if texts.type == pa.large_string() else 4
    ends = memoryview(offsets).cast("b").cast("q" if width == 8 else "i")
    first, last = ends[texts.offset], ends[texts.offset + len(texts)]
    return values.slice(first, last - first)


def lines_of(entity: EntityType, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Buffer]:
    """Rows as lines, a batch at a time.

    Args:
        entity: their type.
        batches: the rows.

    Yields:
        pa.Buffer: some lines.
    """
    for rows in batches:
        yield json_lines(entity, rows)
