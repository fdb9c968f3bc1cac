"""The pieces of a load on Spark, once they are read: their rows, their files, and where records are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from omnigraph import limits
from omnigraph.model.commit import Pin
from omnigraph.pipeline.load.blocks import Piece
from omnigraph.pipeline.load.jobs import Jobs
from omnigraph.pipeline.load.problems import Problem
from omnigraph.pipeline.load.tasks import (
    PieceResult,
    Places,
    RowsToScan,
    SourcePosition,
    Work,
    locate_rows,
    located_in,
    piece_and_row,
    place,
)
from omnigraph.storage.tables.distributed_write import WrittenFile, read_file
from omnigraph.storage.tables.location import tables_at


@dataclass(slots=True)
class Pieces:
    """The pieces of a load.

    Attributes:
        pieces: what is read, if it is files.
        results: what came of each piece, in order.
        is_frames: the pieces are partitions of frames, which cannot be read again.
    """

    pieces: tuple[Piece, ...] = ()
    results: list[PieceResult] = field(default_factory=list)
    is_frames: bool = False

    @property
    def type_keys(self) -> frozenset[str]:
        """The types of which there are rows."""
        return frozenset(key for result in self.results for key in result.rows)

    @property
    def own_ids(self) -> frozenset[str]:
        """The types of which a record has an id of its own, or a key."""
        return frozenset(key for result in self.results for key in result.has_own_ids)

    @property
    def problems(self) -> list[Problem]:
        """Records that cannot be loaded, whatever else there is."""
        if not self.is_frames:
            return [problem for result in self.results for problem in result.problems]
        return [replace(problem, source=result.piece) for result in self.results for problem in result.problems]

    def rows(self, key: str) -> int:
        """Return the number of rows of a type."""
        return sum(result.rows.get(key, 0) for result in self.results)

    def files(self, key: str) -> Iterator[tuple[WrittenFile, int]]:
        """Yield the files of a type, each with the position of its first row."""
        for result in self.results:
            first = place(result.piece, 0)
            for file in result.files.get(key, ()):
                yield file, first
                first += file.rows

    def files_to_scan(self, key: str, pin: Pin) -> list[RowsToScan]:
        """Return the files of a type in groups, each for one task."""
        groups: list[list[tuple[str, int]]] = []
        filled = 0
        most = min(limits.LOAD_LOOK_ROWS, max(self.rows(key) // limits.LOAD_SCAN_TASKS, limits.LOAD_SCAN_ROWS_MIN))
        for file, first in self.files(key):
            if not groups or filled + file.rows > most:
                groups.append([])
                filled = 0
            groups[-1].append((file.path, first))
            filled += file.rows
        return [RowsToScan(pin, files=tuple(group)) for group in groups]

    def without(
        self, key: str, places: Places
    ) -> tuple[tuple[WrittenFile, ...], dict[int, "np.ndarray[tuple[int], np.dtype[np.uint64]]"]]:
        """Return the files of a type, and by the number of a file the rows in it that do not count."""
        added: list[WrittenFile] = []
        short: dict[int, np.ndarray[tuple[int], np.dtype[np.uint64]]] = {}
        ordered = np.unique(places)
        for file, first in self.files(key):
            start, stop = np.searchsorted(ordered, [first, first + file.rows])
            if start < stop:
                short[len(added)] = (ordered[start:stop] - first).astype(np.uint64)
            added.append(file)
        return tuple(added), short

    def locate(
        self, rows: Sequence[tuple[str, int]], jobs: Jobs, work: Work
    ) -> Mapping[tuple[str, int], SourcePosition]:
        """Find the records of rows, given by type key and position in the load."""
        if self.is_frames:
            return {(key, at): self._in_frame(key, at, work) for key, at in rows}
        wanted: dict[int, dict[str, set[int]]] = {}
        for key, at in rows:
            piece, row = piece_and_row(at)
            wanted.setdefault(piece, {}).setdefault(key, set()).add(row)
        tasks = [
            (self.pieces[piece], {key: frozenset(some) for key, some in by_type.items()})
            for piece, by_type in sorted(wanted.items())
        ]
        return located_in(jobs.run("finding", locate_rows(jobs.session, tasks, work)))

    def _in_frame(self, key: str, at: int, work: Work) -> SourcePosition:
        """Read a row of a partition from its file; the numbers of rows leave out rejected ones."""
        piece, row = piece_and_row(at)
        result = self.results[piece]
        if key in result.positions:
            position = int(result.positions[key][row])
        else:
            skipped = [problem.position for problem in result.problems]
            numbers = np.delete(np.arange(1, result.rows[key] + len(skipped) + 1), np.array(skipped, np.int64) - 1)
            position = int(numbers[row])
        tables, pin = tables_at(work.place), work.pins[key]
        before = 0
        for file in result.files[key]:
            if row < before + file.rows:
                columns = tables.open(pin).schema.names
                rows = pa.Table.from_batches(read_file(tables, pin, file.path, columns))
                return SourcePosition(piece, position, rows.slice(row - before, 1))
            before += file.rows
        raise IndexError(f"row {row} of piece {piece} is in no file")
