"""What of the rows must be compared with other rows, on its way to who compares: a few columns, spread by hash.

A channel carries one sort of key of one type. Equal keys of channels that are compared meet in one share; so a share
can be judged by itself, and its size follows the number of shares, not that of the load.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from omnigraph.model.schema import ID, SRC
from omnigraph.pipeline.shares import in_shares, packed, unpacked
from omnigraph.transaction.constraint_rules.checks import tuple_texts, whole
from omnigraph.transaction.constraint_rules.rules import TypeRules

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

KEY, PLACE, COUNT, HOLDER, ADDRESS = "key", "place", "count", "holder", "_rowaddr"
_ROW_BITS = 40

Places = npt.NDArray[np.uint64]


class Sort(StrEnum):
    """What the keys of a channel are."""

    ID = "id"  # ids of new rows
    END = "end"  # nodes that new edges name
    TUPLE = "tuple"  # tuples of new rows that must occur once
    FROM = "from"  # nodes that new edges leave, counted
    BASE = "base"  # ids that are there, with their addresses
    HELD = "held"  # tuples of rows that stay
    KEPT = "kept"  # nodes that edges which stay leave, counted
    LOST = "lost"  # nodes that edges which go leave
    LEFT = "left"  # nodes that edges which stay name


@dataclass(frozen=True, slots=True, order=True)
class Channel:
    """One sort of key of one type; where a type has several rules of the sort, of one of them."""

    sort: Sort
    type_key: str
    rule: int = 0


Keys = Mapping[Channel, pa.Table]


def place(piece: int, row: int) -> int:
    """Where a row is: its piece, and how many rows of its type come before it there."""
    return piece << _ROW_BITS | row


def piece_and_row(at: int) -> tuple[int, int]:
    """The piece, and the row of its type there."""
    return at >> _ROW_BITS, at & (1 << _ROW_BITS) - 1


def places(piece: int, first: int, count: int) -> Places:
    """The places of rows that follow each other."""
    return np.arange(place(piece, first), place(piece, first) + count, dtype=np.uint64)


def keys_of(rows: pa.Table, rules: TypeRules, at: Places, *, fresh: bool, each: bool) -> dict[Channel, pa.Table]:
    """What of new rows must be compared.

    Args:
        rows (pa.Table): of one type.
        rules (TypeRules): those of the type.
        at (Places): where they are.
        fresh (bool): whether every id was just made, so that nobody has it.
        each (bool): tell every row of a key, not only the first.

    Returns:
        dict[Channel, pa.Table]: by channel; the first column is the key.
    """
    found: dict[Channel, pa.Table] = {}
    own = rules.type_key
    if not fresh:
        found[Channel(Sort.ID, own)] = _table({KEY: rows.column(ID), PLACE: at})
    for number, end in enumerate(rules.ends):
        counted = _counted(rows.column(end.column), at, each=each)
        found[Channel(Sort.END, own, number)] = counted.select([KEY, PLACE])
        if end.column == SRC and rules.degree is not None:
            found[Channel(Sort.FROM, own)] = counted
    for number, rule in enumerate(rules.distinct):
        placed = whole(rule, rows.append_column(PLACE, pa.array(at)))
        found[Channel(Sort.TUPLE, own, number)] = _table(
            {KEY: tuple_texts(rule, placed), PLACE: placed.column(PLACE), HOLDER: placed.column(ID)}
        )
    return found


def counts_of(column: Any) -> pa.Table:  # noqa: ANN401  (a column in one piece or several)
    """Keys of a column, each once, with how often they occur."""
    counted = pc.value_counts(column)
    return _table({KEY: counted.field(0), COUNT: counted.field(1)})


def spread(keys: Keys, shares: int) -> Iterator[tuple[int, Channel, bytes]]:
    """Keys, each sent where all that are equal to it are sent.

    Args:
        keys (Keys): by channel.
        shares (int): how many places there are to be sent to.

    Yields:
        tuple[int, Channel, bytes]: share, channel, and the keys as bytes.
    """
    for channel, table in keys.items():
        for number, part in in_shares(table, KEY, shares):
            yield number, channel, packed(part)


def unpacked_tables(parts: Sequence[tuple[Channel, bytes]]) -> dict[Channel, pa.Table]:
    """What arrived of each channel, together."""
    found: dict[Channel, list[pa.Table]] = {}
    for channel, body in parts:
        found.setdefault(channel, []).append(unpacked(body))
    return {channel: pa.concat_tables(some) for channel, some in found.items()}


def _table(columns: Mapping[str, Any]) -> pa.Table:
    return pa.table({name: pa.array(each) if isinstance(each, np.ndarray) else each for name, each in columns.items()})


def _counted(column: Any, at: Places, *, each: bool) -> pa.Table:  # noqa: ANN401  (a column in one piece or several)
    """Keys with the place of their first row and how often they occur; with `each`, every row by itself."""
    if each:
        return _table({KEY: column, PLACE: at, COUNT: np.ones(len(at), np.int64)})
    encoded = pc.dictionary_encode(column).combine_chunks()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    first = np.empty(len(encoded.dictionary), np.uint64)
    # Backwards, so that the first row of a key is the last to be put down.
    first[codes[::-1]] = at[::-1]
    return _table({KEY: encoded.dictionary, PLACE: first, COUNT: np.bincount(codes, minlength=len(first))})
