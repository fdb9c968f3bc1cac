"""Where rows are, from memory: what small writes ask instead of searching tables.

Of each table, a *line*: one version whose columns are in memory as queries have them, the anchor, and what writes of
this process have done since, step by step. A version made by such a write is answered from both; nothing is read for
it. A version made elsewhere starts a line of its own: the first question about it is left to the table, so that who
asks only once makes nobody read whole columns.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

import numpy as np
import pyarrow as pa

from omnigraph import limits
from omnigraph.errors import GraphError
from omnigraph.execution.arrays import Ordinals, Values, taken
from omnigraph.execution.columns import Columns, Versions
from omnigraph.model.commit import Pin
from omnigraph.model.schema import DST, ID, SRC
from omnigraph.storage.tables.tables import StagedTable, Written
from omnigraph.transaction.finding import FoundEdge

_Answer = TypeVar("_Answer")

_ENDS = (SRC, DST)
_OTHER_END = {SRC: DST, DST: SRC}
# A text of usual length, where it begins, its hash and its place in the order of hashes.
_BYTES_PER_TEXT = 40


@dataclass(slots=True)
class _Line:
    """An anchor and the versions that were made from it, one from the other.

    Attributes:
        anchor: the version that is in memory.
        steps: the versions, by how many steps they are from the anchor.
        ids: by id, at which steps its row came to lie where; None where it went.
        gone: by address, at which step the row there went.
        ends: by column and node, the addresses of edges that came.
        edges: by address, the edges that came, and at which step.
        changes: how many rows came and went.
    """

    anchor: Pin
    steps: dict[int, int]
    ids: dict[str, list[tuple[int, int | None]]] = field(default_factory=dict)
    gone: dict[int, int] = field(default_factory=dict)
    ends: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    edges: dict[int, tuple[int, FoundEdge]] = field(default_factory=dict)
    changes: int = 0

    @property
    def tip(self) -> int:
        """The version made last."""
        return next(reversed(self.steps))

    def forked(self, version: int) -> "_Line":
        """The same up to one of its versions, for another one that was made from that."""
        last = self.steps[version]
        kept = {address: each for address, each in self.edges.items() if each[0] <= last}
        return _Line(
            self.anchor,
            dict(islice(self.steps.items(), last + 1)),
            {each: [one for one in places if one[0] <= last] for each, places in self.ids.items()},
            {address: step for address, step in self.gone.items() if step <= last},
            {node: [each for each in addresses if each in kept] for node, addresses in self.ends.items()},
            kept,
            self.changes,
        )

    def add(self, version: int, written: Written) -> None:
        """One more step."""
        step = len(self.steps)
        for each, address in zip(written.gone_ids, written.gone.tolist(), strict=True):
            self.gone[address] = step
            self.ids.setdefault(each, []).append((step, None))
        if written.rows is not None:
            self._came(step, written.rows, written.addresses.tolist())
        self.steps[version] = step
        self.changes += written.changes

    def _came(self, step: int, rows: pa.Table, addresses: list[int]) -> None:
        ids = [str(each) for each in rows.column(ID).to_pylist()]
        for each, address in zip(ids, addresses, strict=True):
            self.ids.setdefault(each, []).append((step, address))
        if rows.num_rows and all(end in rows.column_names for end in _ENDS):
            sources, targets = (map(str, rows.column(end).to_pylist()) for end in _ENDS)
            for edge in map(FoundEdge, ids, sources, targets, addresses):
                self.edges[edge.address] = (step, edge)
                self.ends.setdefault((SRC, edge.src), []).append(edge.address)
                self.ends.setdefault((DST, edge.dst), []).append(edge.address)

    def place(self, each: str, step: int) -> tuple[bool, int | None]:
        """Whether a row has come or gone up to a step, and where it lies then."""
        for when, address in reversed(self.ids.get(each, ())):
            if when <= step:
                return True, address
        return False, None


class RowFinder:
    """Answers from the columns that queries have in memory. Safe to use from several threads."""

    def __init__(self, versions: Versions, *, bytes_max: int) -> None:
        """A finder that knows nothing yet.

        Args:
            versions (Versions): where columns come from.
            bytes_max (int): a column that takes more is not read for the sake of writes.
        """
        self._versions = versions
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._lines: OrderedDict[str, list[_Line]] = OrderedDict()

    def places(self, pin: Pin, ids: Sequence[str]) -> Mapping[str, int] | None:
        """Where the rows with these ids lie in a version; see the port."""
        with self._lock:
            line = self._line_of(pin)
            if line is None:
                return None
            step = line.steps[pin.version]
            known = {each: line.place(each, step) for each in ids}
        found = {each: address for each, (_, address) in known.items() if address is not None}
        left = [each for each, (is_known, _) in known.items() if not is_known]
        if left:
            older = self._from_anchor(line, ID, lambda anchor: self._places_in(anchor, left))
            if older is None:
                return None
            found |= older
        return found

    def edges(self, pin: Pin, column: str, nodes: Sequence[str]) -> Sequence[FoundEdge] | None:
        """The edges of a version with one end at one of these nodes; see the port."""
        with self._lock:
            line = self._line_of(pin)
        if line is None:
            return None
        older = self._from_anchor(line, column, lambda anchor: self._edges_in(anchor, column, nodes))
        if older is None:
            return None
        with self._lock:
            step = line.steps[pin.version]
            came = [line.edges[address] for node in nodes for address in line.ends.get((column, node), ())]
            found = [*older, *(edge for when, edge in came if when <= step)]
            return [edge for edge in found if line.gone.get(edge.address, step + 1) > step]

    def learn(self, staged: StagedTable) -> None:
        """Take note of what a version has that was just made; see the port."""
        table = staged.pin.table
        if staged.written is None or staged.is_unchanged:
            return
        with self._lock:
            lines = self._lines.get(table, [])
            line = next((each for each in lines if staged.base.version in each.steps), None)
            written = None if line is None or staged.pin.version in line.steps else staged.written()
            if line is None or written is None:
                return
            if line.changes + written.changes > limits.FINDER_CHANGES_MAX:
                # Too much to keep beside this anchor: the new version is the next one.
                lines.remove(line)
                self._keep(table, _Line(staged.pin, {staged.pin.version: 0}))
                return
            if line.tip != staged.base.version:
                line = line.forked(staged.base.version)
                self._keep(table, line)
            line.add(staged.pin.version, written)

    def _line_of(self, pin: Pin) -> _Line | None:
        """The line a version is on; None if it was on none, which the next question will find begun."""
        for line in self._lines.get(pin.table, ()):
            if pin.version in line.steps:
                return line
        self._keep(pin.table, _Line(pin, {pin.version: 0}))
        return None

    def _keep(self, table: str, line: _Line) -> None:
        lines = self._lines.setdefault(table, [])
        self._lines.move_to_end(table)
        lines.insert(0, line)
        del lines[limits.FINDER_LINES_MAX :]
        while len(self._lines) > limits.FINDER_TABLES_MAX:
            self._lines.popitem(last=False)

    def _from_anchor(self, line: _Line, column: str, read: Callable[[Columns], _Answer]) -> _Answer | None:
        """An answer from the columns of a line's anchor; None where they are not worth reading, or cannot be."""
        try:
            anchor = self._versions.at(line.anchor)
            return read(anchor) if self._is_worth_reading(anchor, column) else None
        except GraphError:
            # Perhaps a sweep has taken that version. Who asked searches the table and meets what there is to meet.
            with self._lock:
                lines = self._lines.get(line.anchor.table, [])
                if line in lines:
                    lines.remove(line)
            return None

    def _is_worth_reading(self, anchor: Columns, column: str) -> bool:
        if self._versions.column_in_memory(anchor, column) is not None:
            return True
        if anchor.numbering.size * _BYTES_PER_TEXT > self._bytes_max:
            return False
        # Without an index a search reads the whole column as well, and keeps nothing of it.
        return not anchor.table.is_indexed(column) or self._versions.is_worth_reading(anchor, column, 1)

    def _places_in(self, anchor: Columns, ids: Sequence[str]) -> dict[str, int]:
        found = {}
        for each in ids:
            few = self._few_with(anchor, ID, each)
            ordinals = self._rows_with(anchor, ID, each).tolist() if few is None else few
            if ordinals:
                found[each] = anchor.numbering.address(ordinals[0])
        return found

    def _edges_in(self, anchor: Columns, column: str, nodes: Sequence[str]) -> list[FoundEdge]:
        found: list[FoundEdge] = []
        for node in nodes:
            few = self._few_with(anchor, column, node)
            found += self._many_at(anchor, column, node) if few is None else self._few_at(anchor, column, node, few)
        return found

    def _few_at(self, anchor: Columns, column: str, node: str, ordinals: list[int]) -> Iterator[FoundEdge]:
        """The edges of these numbers, all with this node at this end; one by one."""
        if not ordinals:
            return
        there = _OTHER_END[column]
        if not (self._is_worth_reading(anchor, ID) and self._is_worth_reading(anchor, there)):
            yield from self._at(anchor, column, node, np.array(ordinals, np.int32))
            return
        ids, others, numbering = anchor.column(ID).array, anchor.column(there).array, anchor.numbering
        for each in ordinals:
            edge, other = str(ids[each].as_py()), str(others[each].as_py())
            source, target = (node, other) if column == SRC else (other, node)
            yield FoundEdge(edge, source, target, numbering.address(each))

    def _many_at(self, anchor: Columns, column: str, node: str) -> Iterator[FoundEdge]:
        return self._at(anchor, column, node, self._rows_with(anchor, column, node))

    def _at(self, anchor: Columns, column: str, node: str, ordinals: Ordinals) -> Iterator[FoundEdge]:
        ids, others = (self._taken(anchor, name, ordinals).to_pylist() for name in (ID, _OTHER_END[column]))
        for edge, other, place in zip(ids, others, anchor.numbering.addresses(ordinals).tolist(), strict=True):
            source, target = (node, str(other)) if column == SRC else (str(other), node)
            yield FoundEdge(str(edge), source, target, place)

    def _taken(self, anchor: Columns, name: str, ordinals: Ordinals) -> Values:
        # As the ends are read whole, the ids are: looking them up costs more than all else of a small delete.
        if self._is_worth_reading(anchor, name):
            return taken(anchor.column(name).array, ordinals)
        return anchor.take(name, ordinals)

    def _few_with(self, anchor: Columns, column: str, text: str) -> list[int] | None:
        """The rows of an anchor that have a text in a column, in numbers of Python; None if there may be many."""
        return self._versions.lookup(anchor, column).find_few(text, limits.FOUND_ONE_BY_ONE_MAX)

    def _rows_with(self, anchor: Columns, column: str, text: str) -> Ordinals:
        """The rows of an anchor that have a text in a column."""
        return self._versions.lookup(anchor, column).find_all(text)
