"""What Spark's workers do: read a piece and write its rows; look through rows that are there; judge a share.

Everything a task needs comes with it in plain values, and everything it makes follows from that alone: a task that runs
twice, because the first run died or because Spark did not want to wait for it, gives the same rows with the same ids in
other files, and only the files of one run are ever named.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from omnigraph import limits
from omnigraph.errors import GraphError
from omnigraph.model.commit import Pin
from omnigraph.model.schema import ID, SRC
from omnigraph.pipeline.load.blocks import Piece
from omnigraph.pipeline.load.judging import Judging, Verdict, judge
from omnigraph.pipeline.load.keys import (
    ADDRESS,
    HOLDER,
    KEY,
    Channel,
    Places,
    Sort,
    counts_of,
    keys_of,
    places,
    spread,
    unpacked_tables,
)
from omnigraph.pipeline.load.problems import Phase, Problem
from omnigraph.pipeline.load.reading import Reading, rows_of
from omnigraph.pipeline.load.typed import TypedRows
from omnigraph.storage.tables.distributed_write import WrittenFile, write_files
from omnigraph.storage.tables.fragments import rows_of_fragments
from omnigraph.storage.tables.location import TablesLocation, tables_at
from omnigraph.transaction.constraint_rules.checks import tuple_texts, whole
from omnigraph.transaction.constraint_rules.rules import TypeRules

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

RESULT = -1
Sent = tuple[int, Any]


@dataclass(frozen=True, slots=True)
class Work:
    """What reading any piece needs.

    Attributes:
        reading: how it is read.
        place: where the tables are.
        pins: by type key, the version that rows are written for; empty where nothing is to be written.
        shares: over how many shares keys are spread.
        each: whether records in the way are put aside, so that every one of them must be known.
        merges: whether of records with one id the last wins, so that keys of the others must be told apart.
    """

    reading: Reading
    place: TablesLocation
    pins: Mapping[str, Pin]
    shares: int
    each: bool
    merges: bool = False


@dataclass(slots=True)
class PieceResult:
    """What came of a piece.

    Attributes:
        piece: its number.
        files: by type key, the files written.
        rows: by type key, how many.
        problems: records that are none.
        fault: why the piece could not be read at all.
    """

    piece: int
    files: dict[str, list[WrittenFile]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    fault: GraphError | None = None


def read_piece(piece: Piece, work: Work, told: Any = None) -> Iterator[Sent]:  # noqa: ANN401  (Spark's counter)
    """Read a piece, write its rows, and send off what must be compared.

    Args:
        piece (Piece): what to read.
        work (Work): how.
        told (Any): a counter of rows and bytes, where somebody watches.

    Yields:
        Sent: a share with keys for it; last, under `RESULT`, what came of the piece.
    """
    result = PieceResult(piece.index)
    writer = _Writer(work, result)
    keys: dict[Channel, list[pa.Table]] = {}
    try:
        for block in rows_of(piece, work.reading):
            for each in block:
                if isinstance(each, Problem):
                    result.problems.append(each)
                else:
                    for channel, table in _keys(each, piece, work, result).items():
                        keys.setdefault(channel, []).append(table)
                    writer.add(each)
            if told is not None:
                told.add(sum(len(each.positions) for each in block if isinstance(each, TypedRows)))
            if result.problems and not work.each:
                break
        writer.flush()
    except GraphError as fault:
        result.fault = fault
    if result.fault is None:
        for share, channel, body in spread(
            {channel: pa.concat_tables(some) for channel, some in keys.items()}, work.shares
        ):
            yield share, (channel, body)
    yield RESULT, result


def _keys(rows: TypedRows, piece: Piece, work: Work, result: PieceResult) -> dict[Channel, pa.Table]:
    key = rows.entity.type_key
    first = result.rows.get(key, 0)
    result.rows[key] = first + len(rows.positions)
    at = places(piece.index, first, len(rows.positions))
    rules = work.reading.accepted.rules.types[key]
    can_be_superseded = work.merges and not rows.ids_are_fresh
    return keys_of(rows.rows, rules, at, fresh=rows.ids_are_fresh, each=work.each or can_be_superseded)


class _Writer:
    """Rows of a piece, written when there are enough of them."""

    def __init__(self, work: Work, result: PieceResult) -> None:
        self._work = work
        self._result = result
        self._held: dict[str, list[pa.Table]] = {}
        self._bytes: dict[str, int] = {}

    def add(self, rows: TypedRows) -> None:
        """Hold rows, or write them."""
        key = rows.entity.type_key
        if key not in self._work.pins:
            return
        self._held.setdefault(key, []).append(rows.rows)
        self._bytes[key] = self._bytes.get(key, 0) + rows.rows.nbytes
        if self._bytes[key] >= limits.LOAD_FLUSH_BYTES:
            self._write(key)

    def flush(self) -> None:
        """Write what is left."""
        for key in sorted(self._held):
            self._write(key)

    def _write(self, key: str) -> None:
        rows = pa.concat_tables(self._held.pop(key))
        self._bytes.pop(key)
        written = write_files(tables_at(self._work.place), self._work.pins[key], rows)
        self._result.files.setdefault(key, []).extend(written)


@dataclass(frozen=True, slots=True)
class Look:
    """A part of a table that is there, to be looked through.

    Attributes:
        pin: the version.
        rows: how many rows the table has.
        fragments: which of its fragments.
        rules: those of the type.
        channels: what is wanted of its rows.
        gone: addresses of rows that the load replaces, ascending.
        all_gone: whether it replaces all of them.
    """

    pin: Pin
    rows: int
    fragments: tuple[int, ...]
    rules: TypeRules
    channels: tuple[Channel, ...]
    gone: Places
    all_gone: bool


def look_through(look: Look, place: TablesLocation, shares: int) -> Iterator[Sent]:
    """Send off what of rows that are there must be compared.

    Args:
        look (Look): which rows, and what of them.
        place (TablesLocation): where the tables are.
        shares (int): over how many shares keys are spread.

    Yields:
        Sent: a share with keys for it.
    """
    wanted = {ID}
    for channel in look.channels:
        wanted |= _columns(channel, look.rules)
    table = tables_at(place).open(look.pin)
    batches = list(rows_of_fragments(table, look.fragments, columns=sorted(wanted), with_addresses=True))
    if not batches:
        return
    rows = pa.Table.from_batches(batches)
    goes = np.full(len(rows), look.all_gone)
    if not look.all_gone and len(look.gone):
        goes = np.isin(rows.column(ADDRESS).to_numpy(), look.gone)
    stays, leaves = rows.filter(pa.array(~goes)), rows.filter(pa.array(goes))
    keys = {channel: _of_channel(channel, look.rules, rows, stays, leaves) for channel in look.channels}
    for share, channel, body in spread(keys, shares):
        yield share, (channel, body)


def _columns(channel: Channel, rules: TypeRules) -> set[str]:
    match channel.sort:
        case Sort.HELD:
            return set(rules.distinct[channel.rule].columns)
        case Sort.KEPT | Sort.LOST:
            return {SRC}
        case Sort.LEFT:
            return {rules.ends[channel.rule].column}
        case _:
            return set()


def _of_channel(channel: Channel, rules: TypeRules, rows: pa.Table, stays: pa.Table, leaves: pa.Table) -> pa.Table:
    match channel.sort:
        case Sort.HELD:
            rule = rules.distinct[channel.rule]
            there = whole(rule, stays)
            return pa.table({KEY: tuple_texts(rule, there), HOLDER: there.column(ID)})
        case Sort.KEPT:
            return counts_of(stays.column(SRC))
        case Sort.LOST:
            return pa.table({KEY: pc.unique(leaves.column(SRC))})
        case Sort.LEFT:
            return pa.table({KEY: pc.unique(stays.column(rules.ends[channel.rule].column))})
        case _:
            return pa.table({KEY: rows.column(ID), ADDRESS: rows.column(ADDRESS)})


def judge_share(sent: Iterable[Sent], judging: Judging, phases: frozenset[Phase]) -> Iterator[Verdict]:
    """Judge all that was sent to one share."""
    found = unpacked_tables([body for share, body in sent if share != RESULT])
    if found:
        yield judge(found, judging, phases)


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """A row of the load: where its record is, and what is in it."""

    source: int
    position: int
    row: pa.Table


def find_rows(piece: Piece, work: Work, wanted: Mapping[str, frozenset[int]]) -> dict[tuple[str, int], Whereabouts]:
    """Read a piece again to tell where the records of some rows are.

    Args:
        piece (Piece): the piece.
        work (Work): how it was read.
        wanted (Mapping[str, frozenset[int]]): by type key, which rows of the type in the piece.

    Returns:
        dict[tuple[str, int], Whereabouts]: by type key and row.
    """
    found: dict[tuple[str, int], Whereabouts] = {}
    before: dict[str, int] = {}
    for block in rows_of(piece, work.reading):
        for each in block:
            if isinstance(each, Problem):
                continue
            key = each.entity.type_key
            first = before.get(key, 0)
            before[key] = first + len(each.positions)
            for row in wanted.get(key, frozenset()):
                if first <= row < before[key]:
                    here = row - first
                    position = int(each.positions[here])
                    found[key, row] = Whereabouts(piece.source.index, position, each.rows.slice(here, 1))
    return found
