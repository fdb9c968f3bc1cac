"""Work of Spark's Python workers in a load: parse a piece, write its rows, and read back the columns to validate.

A task has everything it needs in plain values, and its rows follow from them alone: a task that runs twice makes the
same rows with the same ids in other files, and only the files of the attempt that Spark accepts are ever named.
"""

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from omnigraph import limits
from omnigraph.errors import GraphError
from omnigraph.model.commit import Pin
from omnigraph.model.schema import DST, ID, SRC
from omnigraph.pipeline.distribute import scan
from omnigraph.pipeline.load.blocks import Piece
from omnigraph.pipeline.load.problems import Problem
from omnigraph.pipeline.load.reading import Reading, frame_rows, line_rows, rows_of
from omnigraph.pipeline.load.tabular import Columns
from omnigraph.pipeline.load.typed import TypedRows
from omnigraph.storage.tables.distributed_write import WrittenFile, read_file, write_files
from omnigraph.storage.tables.fragments import rows_of_fragments
from omnigraph.storage.tables.location import TablesLocation, tables_at
from omnigraph.transaction.constraint_rules.checks import tuple_texts
from omnigraph.transaction.constraint_rules.rules import TypeRules

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

PLACE = "place"
RESULTS = "piece bigint, result binary"
_ROW_BITS = 40
_ADDRESS = "_rowaddr"

Places = npt.NDArray[np.int64]
Blocks = Iterable[Sequence[TypedRows | Problem]]


def place(piece: int, row: int) -> int:
    """Return the position of a row in the load: its piece, and its number among the rows of its type there."""
    return piece << _ROW_BITS | row


def piece_and_row(at: int) -> tuple[int, int]:
    """Split a position into the piece and the number of the row."""
    return at >> _ROW_BITS, at & (1 << _ROW_BITS) - 1


@dataclass(frozen=True, slots=True)
class Work:
    """How to read any piece of a load.

    Attributes:
        pins: by type key, the version that rows are written for; empty in a dry run.
        keeps_rejects: read on after a bad record.
    """

    reading: Reading
    place: TablesLocation
    pins: Mapping[str, Pin]
    keeps_rejects: bool


@dataclass(slots=True)
class PieceResult:
    """What a task made of a piece.

    Attributes:
        files: by type key, the files written.
        rows: by type key, the number of rows.
        has_own_ids: type keys of which a record has an id of its own, or a key.
        problems: records that cannot be loaded.
        fault: why the piece cannot be read.
        positions: by type key, for lines of a frame, the line number of each row.
    """

    piece: int
    files: dict[str, list[WrittenFile]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    has_own_ids: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)
    fault: GraphError | None = None
    positions: dict[str, Any] = field(default_factory=dict)


# -- reading ----------------------------------------------------------------------------------------------------------


def read_pieces(session: SparkSession, pieces: Sequence[Piece], work: Work) -> DataFrame:
    """Return a frame that reads files, one task for each piece."""

    def run(piece: Piece) -> Iterator[pa.RecordBatch]:
        yield _result_batch(_read(rows_of(piece, work.reading), PieceResult(piece.index), work))

    return scan(session, pieces, run, RESULTS)


def read_frame(
    frame: DataFrame, number: int, columns: Columns, work: Work, *, types: pa.Schema, name: str
) -> DataFrame:
    """Return a frame that writes the rows of a frame of the caller, one piece for each partition."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        part = _partition()
        blocks = frame_rows(batches, columns, work.reading, f"{number}.{part}", types=types, name=name)
        yield _result_batch(_read(blocks, PieceResult(part), work))

    return frame.mapInArrow(run, RESULTS)


def read_lines(frame: DataFrame, work: Work) -> DataFrame:
    """Return a frame that writes the records in the lines of a frame of the caller, one piece for each partition."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        part = _partition()
        result = PieceResult(part)
        blocks = line_rows(batches, work.reading, f"lines.{part}")
        yield _result_batch(_read(_with_positions(blocks, result), result, work))

    return frame.mapInArrow(run, RESULTS)


def results_in(rows: pa.Table) -> list[PieceResult]:
    """Return the results of pieces, in order."""
    found = [pickle.loads(row["result"]) for row in rows.to_pylist()]
    return sorted(found, key=lambda result: result.piece)


def _partition() -> int:
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def _result_batch(result: PieceResult) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"piece": [result.piece], "result": [pickle.dumps(result)]})


def _with_positions(blocks: Blocks, result: PieceResult) -> Blocks:
    for block in blocks:
        for found in block:
            if isinstance(found, TypedRows):
                key = found.entity.type_key
                known = result.positions.get(key, np.empty(0, np.int64))
                result.positions[key] = np.concatenate([known, found.positions])
        yield block


def _read(blocks: Blocks, result: PieceResult, work: Work) -> PieceResult:
    """Write the rows of blocks, until a record is bad and that ends the load."""
    writer = _Writer(work, result)
    try:
        for block in blocks:
            for found in block:
                if isinstance(found, Problem):
                    result.problems.append(found)
                else:
                    writer.add(found)
            if result.problems and not work.keeps_rejects:
                break
        writer.flush()
    except GraphError as fault:
        result.fault = fault
    return result


class _Writer:
    """Write the rows of a piece when there are enough of them."""

    def __init__(self, work: Work, result: PieceResult) -> None:
        self._work = work
        self._result = result
        self._waiting: dict[str, list[pa.Table]] = {}
        self._bytes: dict[str, int] = {}

    def add(self, rows: TypedRows) -> None:
        key = rows.entity.type_key
        self._result.rows[key] = self._result.rows.get(key, 0) + rows.rows.num_rows
        if not rows.ids_are_fresh:
            self._result.has_own_ids.add(key)
        if key not in self._work.pins:
            return
        self._waiting.setdefault(key, []).append(rows.rows)
        self._bytes[key] = self._bytes.get(key, 0) + rows.rows.nbytes
        if self._bytes[key] >= limits.LOAD_FLUSH_BYTES:
            self._write(key)

    def flush(self) -> None:
        for key in sorted(self._waiting):
            self._write(key)

    def _write(self, key: str) -> None:
        rows = pa.concat_tables(self._waiting.pop(key))
        self._bytes.pop(key)
        written = write_files(tables_at(self._work.place), self._work.pins[key], rows)
        self._result.files.setdefault(key, []).extend(written)


# -- columns to validate ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowsToScan:
    """Rows that one task reads: files of the load, or fragments of a version.

    Attributes:
        files: paths of files, each with the position of its first row.
        fragments: numbers of fragments.
    """

    pin: Pin
    files: tuple[tuple[str, int], ...] = ()
    fragments: tuple[int, ...] = ()


def tuple_column(rule: int) -> str:
    """Return the name of the column with the tuples of a uniqueness rule."""
    return f"u{rule}"


def key_schema(columns: Sequence[str]) -> str:
    """Return the Spark schema of columns to validate."""
    return ", ".join(f"{name} {'bigint' if name == PLACE else 'string'}" for name in columns)


def scan_rows(
    session: SparkSession, tasks: Sequence[RowsToScan], rules: TypeRules, columns: Sequence[str], place: TablesLocation
) -> DataFrame:
    """Return a frame of the columns to validate, of files of the load or of a version.

    Args:
        columns: of `id`, `place`, `src`, `dst`, `u0`, `u1`, …; a place is a position in the load, or a row address.
    """

    def run(task: RowsToScan) -> Iterator[pa.RecordBatch]:
        tables = tables_at(place)
        wanted = _stored_columns(rules, columns)
        for path, start in task.files:
            first = start
            for batch in read_file(tables, task.pin, path, wanted):
                yield _key_batch(pa.Table.from_batches([batch]), rules, columns, first)
                first += batch.num_rows
        if task.fragments:
            opened = tables.open(task.pin)
            for batch in rows_of_fragments(opened, task.fragments, columns=wanted, with_addresses=PLACE in columns):
                yield _key_batch(pa.Table.from_batches([batch]), rules, columns, None)

    return scan(session, tasks, run, key_schema(columns))


def parse_rows(
    session: SparkSession, pieces: Sequence[Piece], work: Work, rules: TypeRules, columns: Sequence[str]
) -> DataFrame:
    """Return a frame of the columns to validate, of files that are parsed again because a dry run wrote nothing."""

    def run(piece: Piece) -> Iterator[pa.RecordBatch]:
        first = place(piece.index, 0)
        for block in rows_of(piece, work.reading):
            for found in block:
                if isinstance(found, TypedRows) and found.entity.type_key == rules.type_key:
                    yield _key_batch(found.rows, rules, columns, first)
                    first += found.rows.num_rows

    return scan(session, pieces, run, key_schema(columns))


def _stored_columns(rules: TypeRules, columns: Sequence[str]) -> list[str]:
    wanted = {name for name in columns if name in (ID, SRC, DST)}
    for number, rule in enumerate(rules.distinct):
        if tuple_column(number) in columns:
            wanted |= set(rule.columns)
    return sorted(wanted or {ID})


def _key_batch(rows: pa.Table, rules: TypeRules, columns: Sequence[str], first: int | None) -> pa.RecordBatch:
    made: dict[str, Any] = {}
    for name in columns:
        if name == PLACE and first is not None:
            made[name] = pa.array(np.arange(first, first + rows.num_rows, dtype=np.int64))
        elif name == PLACE:
            made[name] = rows.column(_ADDRESS).combine_chunks().cast(pa.int64())
        elif name in (ID, SRC, DST):
            made[name] = rows.column(name).combine_chunks().cast(pa.string())
        else:
            made[name] = _tuples(rows, rules, int(name[1:]))
    return pa.RecordBatch.from_pydict(made)


def _tuples(rows: pa.Table, rules: TypeRules, number: int) -> Any:  # noqa: ANN401  (a column of texts)
    """Return a text for each tuple, null where a component is null."""
    rule = rules.distinct[number]
    texts: Any = tuple_texts(rule, rows)
    for name in rule.columns:
        if rows.column(name).null_count:
            texts = pc.if_else(pc.is_valid(rows.column(name).combine_chunks()), texts, pa.scalar(None, pa.string()))
    return texts.cast(pa.string())


# -- locating records -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """Where the record of a row is, and the row itself."""

    source: int
    position: int
    row: pa.Table


def locate_rows(
    session: SparkSession, wanted: Sequence[tuple[Piece, Mapping[str, frozenset[int]]]], work: Work
) -> DataFrame:
    """Return a frame that parses pieces again, to find the records of some rows by their numbers."""

    def run(task: tuple[Piece, Mapping[str, frozenset[int]]]) -> Iterator[pa.RecordBatch]:
        piece, rows = task
        yield pa.RecordBatch.from_pydict(
            {"piece": [piece.index], "result": [pickle.dumps(_located(piece, rows, work))]}
        )

    return scan(session, wanted, run, RESULTS)


def _located(piece: Piece, wanted: Mapping[str, frozenset[int]], work: Work) -> dict[tuple[str, int], SourcePosition]:
    found: dict[tuple[str, int], SourcePosition] = {}
    before: dict[str, int] = {}
    for block in rows_of(piece, work.reading):
        for some in block:
            if isinstance(some, Problem):
                continue
            key = some.entity.type_key
            first = before.get(key, 0)
            before[key] = first + len(some.positions)
            for row in wanted.get(key, frozenset()):
                if first <= row < before[key]:
                    here = row - first
                    position = int(some.positions[here])
                    found[key, place(piece.index, row)] = SourcePosition(
                        piece.source.index, position, some.rows.slice(here, 1)
                    )
    return found


def located_in(rows: pa.Table) -> dict[tuple[str, int], SourcePosition]:
    """Return what `locate_rows` found, by type key and position in the load."""
    found: dict[tuple[str, int], SourcePosition] = {}
    for row in rows.to_pylist():
        found |= pickle.loads(row["result"])
    return found
