"""What a cell of a blob property holds: the bytes themselves, or where they are.

    bytes            a managed blob, as it is
    mark, R, uri     a reference: the bytes lie elsewhere, at this address
    mark, M, bytes   a managed blob that happens to begin with the mark

Whoever gives bytes cannot make a reference of them: what begins with the mark is marked again on its way in.
"""

import base64
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute

from omnigraph.errors import InvalidRequestError

# The stubs know no pattern of bytes.
pc: Any = pyarrow.compute

_MARK = b"\x00omnigraph\x00\x8f\x1d\xb3\x52\xe6\x09\xc4\x7a"
BASE64 = "base64:"
_REFERENCE, _MANAGED = b"R", b"M"
# Enough of a cell to know what it holds.
HEAD_BYTES = len(_MARK) + 1


@dataclass(frozen=True, slots=True)
class CellHead:
    """What the beginning of a cell tells.

    Attributes:
        is_reference: whether the rest is an address.
        skipped: how many bytes of the cell come before the content.
    """

    is_reference: bool = False
    skipped: int = 0


def cell_head(beginning: bytes) -> CellHead:
    """What a cell holds.

    Args:
        beginning: at least its first `HEAD_BYTES` bytes, or all it has.

    Returns:
        Whether it is a reference, and where its content begins.
    """
    if not beginning.startswith(_MARK) or len(beginning) < HEAD_BYTES:
        return CellHead()
    return CellHead(beginning[len(_MARK) : HEAD_BYTES] == _REFERENCE, HEAD_BYTES)


def managed(content: bytes) -> bytes:
    """The cell of a managed blob."""
    return _MARK + _MANAGED + content if content.startswith(_MARK) else content


def managed_column(column: "pa.Array[Any]") -> "pa.Array[Any]":
    """The cells of managed blobs; as a rule the column itself."""
    if not pc.any(pc.starts_with(column, pattern=_MARK)).as_py():
        return column
    made: pa.Array[Any] = pa.array(
        [cell if cell is None else managed(cell) for cell in column.to_pylist()], column.type
    )
    return made


def reference(uri: str) -> bytes:
    """The cell of a blob that lies elsewhere."""
    return _MARK + _REFERENCE + uri.encode()


def outward(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows as others get them in columns of bytes: every blob as the bytes it is.

    Raises:
        InvalidRequestError: a blob lies elsewhere, which no bytes can say.
    """
    for place, field in enumerate(rows.schema):
        if pa.types.is_large_binary(field.type) and pc.any(pc.starts_with(rows.column(place), pattern=_MARK)).as_py():
            content = [None if cell is None else _content(cell, field.name) for cell in rows.column(place).to_pylist()]
            column: pa.Array[Any] = pa.array(content, field.type)
            rows = rows.set_column(place, field, column)
    return rows


def _content(cell: bytes, name: str) -> bytes:
    head = cell_head(cell[:HEAD_BYTES])
    if head.is_reference:
        raise InvalidRequestError(
            f"blobs of property '{name}' lie elsewhere, which a column of bytes cannot say; "
            "choose other columns, or export as JSON lines",
            code="external_blob",
            uri=cell[head.skipped :].decode(),
        )
    return cell[head.skipped :]


def as_text(cell: bytes) -> str:
    """A whole cell as JSON shows it and loads take it back: `base64:…` of the bytes, or the address as it is."""
    head = cell_head(cell[:HEAD_BYTES])
    content = cell[head.skipped :]
    return content.decode() if head.is_reference else f"{BASE64}{base64.b64encode(content).decode()}"
