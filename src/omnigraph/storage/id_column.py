"""Very many ids, in a column instead of one by one; or only how many there are."""

from collections.abc import Iterator, Sequence
from typing import Any, overload

import pyarrow as pa


class IdColumn(Sequence[str]):
    """A sequence of ids that stays an Arrow column until an item is read."""

    __slots__ = ("_count", "column")

    def __init__(self, column: "pa.ChunkedArray[Any] | None", count: int | None = None) -> None:
        """Ids.

        Args:
            column: the ids; None where only their number is known.
            count: how many there are, where the ids are not known.
        """
        self.column = column
        self._count = len(column) if column is not None else count or 0

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> "Sequence[str]": ...

    def __getitem__(self, index: int | slice) -> "str | Sequence[str]":
        if self.column is None:
            raise IndexError("only the number of these ids is known")
        return IdColumn(self.column[index]) if isinstance(index, slice) else str(self.column[index].as_py())

    def __iter__(self) -> Iterator[str]:
        return iter(()) if self.column is None else iter(str(row_id) for row_id in self.column.to_pylist())


def id_array(ids: Sequence[str]) -> "pa.ChunkedArray[Any]":
    """Ids as a column, without touching one where they are one already."""
    if isinstance(ids, IdColumn):
        return pa.chunked_array([], pa.string()) if ids.column is None else ids.column
    return pa.chunked_array([pa.array(ids, pa.string())])


def is_known(ids: Sequence[str]) -> bool:
    """Whether the ids themselves are known, and not only how many there are."""
    return not isinstance(ids, IdColumn) or ids.column is not None
