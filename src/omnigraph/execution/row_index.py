"""Row index in memory, used by small writes instead of searching tables.

For each table it keeps chains of versions: an anchor, whose columns are cached as for queries, and the changes that
writes of this process have made since, step by step. A version made by such a write is answered from both without
reading anything. A version made elsewhere starts a new chain: the first lookup in it is left to the table, so that a
single lookup never reads whole columns.
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
from omnigraph.execution.arrays import Ordinals, Values, take_fast
from omnigraph.execution.columns import Columns
from omnigraph.execution.versions import Versions
from omnigraph.model.commit import Pin
from omnigraph.model.schema import DST, ID, SRC
from omnigraph.storage.tables.tables import StagedVersion, Written
from omnigraph.transaction.write_set.committed import FoundEdge

_Answer = TypeVar("_Answer")

_ENDS = (SRC, DST)
_OTHER_END = {SRC: DST, DST: SRC}
# A text of average length, its offset, its hash and its ordinal in the index.
_BYTES_PER_TEXT = 40


@dataclass(slots=True)
class _VersionChain:
    """An anchor version and the versions made from it, each from the one before.

    Attributes:
        anchor: the version whose columns are cached.
        steps: number of steps from the anchor, by version.
        ids: by id, at which steps its row moved to which address; None where it was deleted.
        gone: by address, at which step the row there was deleted.
        ends: by column and node, the addresses of added edges.
        edges: by address, the added edges, and at which step.
        changes: number of rows added and deleted.
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
        """The latest version."""
        return next(reversed(self.steps))

    def forked(self, version: int) -> "_VersionChain":
        """Copy the chain up to one of its versions, for another version made from that one."""
        last = self.steps[version]
        kept = {address: edge for address, edge in self.edges.items() if edge[0] <= last}
        return _VersionChain(
            self.anchor,
            dict(islice(self.steps.items(), last + 1)),
            {id_: [move for move in moves if move[0] <= last] for id_, moves in self.ids.items()},
            {address: step for address, step in self.gone.items() if step <= last},
            {node: [address for address in addresses if address in kept] for node, addresses in self.ends.items()},
            kept,
            self.changes,
        )

    def add(self, version: int, written: Written) -> None:
        """Append a step."""
        step = len(self.steps)
        for id_, address in zip(written.gone_ids, written.gone.tolist(), strict=True):
            self.gone[address] = step
            self.ids.setdefault(id_, []).append((step, None))
        if written.rows is not None:
            self._add_rows(step, written.rows, written.addresses.tolist())
        self.steps[version] = step
        self.changes += written.changes

    def _add_rows(self, step: int, rows: pa.Table, addresses: list[int]) -> None:
        ids = [str(id_) for id_ in rows.column(ID).to_pylist()]
        for id_, address in zip(ids, addresses, strict=True):
            self.ids.setdefault(id_, []).append((step, address))
        if rows.num_rows and all(end in rows.column_names for end in _ENDS):
            sources, targets = (map(str, rows.column(end).to_pylist()) for end in _ENDS)
            for edge in map(FoundEdge, ids, sources, targets, addresses):
                self.edges[edge.address] = (step, edge)
                self.ends.setdefault((SRC, edge.src), []).append(edge.address)
                self.ends.setdefault((DST, edge.dst), []).append(edge.address)

    def address_at(self, id_: str, step: int) -> tuple[bool, int | None]:
        """Return whether a row changed up to a step, and its address then."""
        for when, address in reversed(self.ids.get(id_, ())):
            if when <= step:
                return True, address
        return False, None


class CachedRowIndex:
    """Thread-safe row index over cached columns."""

    def __init__(self, versions: Versions, *, bytes_max: int) -> None:
        """Create an empty index.

        Args:
            versions: where columns come from.
            bytes_max: a larger column is not read for the sake of writes.
        """
        self._versions = versions
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._chains: OrderedDict[str, list[_VersionChain]] = OrderedDict()

    def places(self, pin: Pin, ids: Sequence[str]) -> Mapping[str, int] | None:
        """Return the addresses of the rows with these ids in a version; see the port."""
        with self._lock:
            chain = self._find_chain(pin)
            if chain is None:
                return None
            step = chain.steps[pin.version]
            known = {id_: chain.address_at(id_, step) for id_ in ids}
        found = {id_: address for id_, (_, address) in known.items() if address is not None}
        left = [id_ for id_, (is_known, _) in known.items() if not is_known]
        if left:
            older = self._read_anchor(chain, ID, lambda anchor: self._find_in(anchor, left))
            if older is None:
                return None
            found |= older
        return found

    def edges(self, pin: Pin, column: str, nodes: Sequence[str]) -> Sequence[FoundEdge] | None:
        """Return the edges of a version with one end at one of these nodes; see the port."""
        with self._lock:
            chain = self._find_chain(pin)
        if chain is None:
            return None
        older = self._read_anchor(chain, column, lambda anchor: self._find_edges_in(anchor, column, nodes))
        if older is None:
            return None
        with self._lock:
            step = chain.steps[pin.version]
            added = [chain.edges[address] for node in nodes for address in chain.ends.get((column, node), ())]
            found = [*older, *(edge for when, edge in added if when <= step)]
            return [edge for edge in found if chain.gone.get(edge.address, step + 1) > step]

    def learn(self, staged: StagedVersion) -> None:
        """Record the changes of a version that was just made; see the port."""
        table = staged.pin.table
        if staged.written is None or staged.is_unchanged:
            return
        with self._lock:
            chains = self._chains.get(table, [])
            chain = next((candidate for candidate in chains if staged.base.version in candidate.steps), None)
            is_known = chain is not None and staged.pin.version in chain.steps
        if is_known or (chain is None and not self._versions.has_read(table)):
            return
        written = staged.written()
        if written is None:
            return
        self._versions.remember(staged.pin, written)
        if chain is not None:
            with self._lock:
                self._add_step(chain, staged, written)

    def _add_step(self, chain: _VersionChain, staged: StagedVersion, written: Written) -> None:
        table = staged.pin.table
        chains = self._chains.get(table, [])
        if chain not in chains or staged.pin.version in chain.steps:
            return
        if chain.changes + written.changes > limits.FINDER_CHANGES_MAX:
            # Too many changes to keep beside this anchor: the new version becomes the next anchor.
            chains.remove(chain)
            self._keep(table, _VersionChain(staged.pin, {staged.pin.version: 0}))
            return
        if chain.tip != staged.base.version:
            chain = chain.forked(staged.base.version)
            self._keep(table, chain)
        chain.add(staged.pin.version, written)

    def _find_chain(self, pin: Pin) -> _VersionChain | None:
        """Return the chain of a version; if there is none, start one for the next lookup and return None."""
        for chain in self._chains.get(pin.table, ()):
            if pin.version in chain.steps:
                return chain
        self._keep(pin.table, _VersionChain(pin, {pin.version: 0}))
        return None

    def _keep(self, table: str, chain: _VersionChain) -> None:
        chains = self._chains.setdefault(table, [])
        self._chains.move_to_end(table)
        chains.insert(0, chain)
        del chains[limits.FINDER_LINES_MAX :]
        while len(self._chains) > limits.FINDER_TABLES_MAX:
            self._chains.popitem(last=False)

    def _read_anchor(self, chain: _VersionChain, column: str, read: Callable[[Columns], _Answer]) -> _Answer | None:
        """Read from the anchor's columns; None where they are not worth reading, or cannot be read."""
        try:
            anchor = self._versions.at(chain.anchor)
            return read(anchor) if self._is_worth_reading(anchor, column) else None
        except GraphError:
            # Perhaps the anchor was swept. The caller searches the table and reports any error.
            with self._lock:
                chains = self._chains.get(chain.anchor.table, [])
                if chain in chains:
                    chains.remove(chain)
            return None

    def _is_worth_reading(self, anchor: Columns, column: str) -> bool:
        if self._versions.cached_column(anchor, column) is not None:
            return True
        if anchor.numbering.size * _BYTES_PER_TEXT > self._bytes_max:
            return False
        # Without a table index, a search would read the whole column too, and cache nothing.
        return not anchor.table.is_indexed(column) or self._versions.is_worth_reading(anchor, column, 1)

    def _find_in(self, anchor: Columns, ids: Sequence[str]) -> dict[str, int]:
        found = {}
        for id_ in ids:
            few = self._few_rows_with(anchor, ID, id_)
            ordinals = self._rows_with(anchor, ID, id_).tolist() if few is None else few
            if ordinals:
                found[id_] = anchor.numbering.address(ordinals[0])
        return found

    def _find_edges_in(self, anchor: Columns, column: str, nodes: Sequence[str]) -> list[FoundEdge]:
        found: list[FoundEdge] = []
        for node in nodes:
            few = self._few_rows_with(anchor, column, node)
            if few is None:
                found += self._edges_at(anchor, column, node, self._rows_with(anchor, column, node))
            else:
                found += self._few_edges_at(anchor, column, node, few)
        return found

    def _few_edges_at(self, anchor: Columns, column: str, node: str, ordinals: list[int]) -> Iterator[FoundEdge]:
        """Yield the edges with these ordinals, all with this node at this end, one by one."""
        if not ordinals:
            return
        there = _OTHER_END[column]
        if not (self._is_worth_reading(anchor, ID) and self._is_worth_reading(anchor, there)):
            yield from self._edges_at(anchor, column, node, np.array(ordinals, np.int32))
            return
        ids, others, numbering = anchor.column(ID).array, anchor.column(there).array, anchor.numbering
        for ordinal in ordinals:
            edge, other = str(ids[ordinal].as_py()), str(others[ordinal].as_py())
            source, target = (node, other) if column == SRC else (other, node)
            yield FoundEdge(edge, source, target, numbering.address(ordinal))

    def _edges_at(self, anchor: Columns, column: str, node: str, ordinals: Ordinals) -> Iterator[FoundEdge]:
        ids, others = (self._take(anchor, name, ordinals).to_pylist() for name in (ID, _OTHER_END[column]))
        for edge, other, address in zip(ids, others, anchor.numbering.addresses(ordinals).tolist(), strict=True):
            source, target = (node, str(other)) if column == SRC else (str(other), node)
            yield FoundEdge(str(edge), source, target, address)

    def _take(self, anchor: Columns, name: str, ordinals: Ordinals) -> Values:
        # Ids are read whole like the endpoints: looking them up would dominate the cost of a small delete.
        if self._is_worth_reading(anchor, name):
            return take_fast(anchor.column(name).array, ordinals)
        return anchor.take(name, ordinals)

    def _few_rows_with(self, anchor: Columns, column: str, text: str) -> list[int] | None:
        """Return the anchor's rows with a text in a column as Python ints; None if there may be many."""
        return self._versions.lookup(anchor, column).find_few(text, limits.FOUND_ONE_BY_ONE_MAX)

    def _rows_with(self, anchor: Columns, column: str, text: str) -> Ordinals:
        """Return the anchor's rows with a text in a column."""
        return self._versions.lookup(anchor, column).find_all(text)
