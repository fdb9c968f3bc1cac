"""Rows on their way between tasks: spread by the hash of a column, each share packed as Arrow's own bytes.

So values never pass through Spark's types, and what is equal in a column meets in one share.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_HASHED_BYTES = 8
_GOLDEN, _PRIME = np.uint64(0x9E3779B97F4A7C15), np.uint64(0x100000001B3)


def in_shares(table: pa.Table, column: str, shares: int) -> Iterator[tuple[int, pa.Table]]:
    """Rows, spread by the hash of a text.

    Args:
        table (pa.Table): the rows.
        column (str): what decides.
        shares (int): how many shares there are.

    Yields:
        tuple[int, pa.Table]: a share and the rows that belong to it; shares without rows are left out.
    """
    if not len(table):
        return
    if shares == 1:
        yield 0, table
        return
    share = (_hashed(table.column(column).combine_chunks()) % np.uint64(shares)).astype(np.int64)
    order = np.argsort(share, kind="stable")
    sorted_by_share = table.take(order)
    ends = np.searchsorted(share[order], np.arange(shares + 1))
    for number in range(shares):
        if ends[number] < ends[number + 1]:
            yield number, sorted_by_share.slice(int(ends[number]), int(ends[number + 1] - ends[number]))


def packed(table: pa.Table) -> bytes:
    """A table as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def unpacked(body: bytes) -> pa.Table:
    """The table that was packed."""
    return pa.ipc.open_stream(body).read_all()


def _hashed(column: Any) -> "npt.NDArray[np.uint64]":  # noqa: ANN401  (a column of texts)
    """A number for each text, from its length and its last bytes: cheap, and good enough to spread."""
    wide = column.cast(pa.large_string())
    _, starts, text = wide.buffers()
    offsets = np.frombuffer(starts, np.int64)[wide.offset : wide.offset + len(wide) + 1]
    raw = np.frombuffer(text, np.uint8) if text is not None and text.size else np.zeros(1, np.uint8)
    lengths, lasts = np.diff(offsets), offsets[1:] - 1
    total = lengths.astype(np.uint64) * _GOLDEN
    for back in range(_HASHED_BYTES):
        byte = np.where(lengths > back, raw[np.clip(lasts - back, 0, len(raw) - 1)], 0).astype(np.uint64)
        total = (total ^ byte) * _PRIME
    return total ^ (total >> np.uint64(29))
