"""What of one snapshot is in memory already; asking never reads anything."""

from omnigraph.execution.adjacencies import Adjacencies
from omnigraph.execution.column import Column, RowLookup
from omnigraph.execution.columns import Columns, Versions
from omnigraph.execution.csr import Csr
from omnigraph.language.plan.pattern import Direction
from omnigraph.model.commit import Record
from omnigraph.model.schema import ID


class Resident:
    """A snapshot as far as it is in memory. Used by one thread."""

    def __init__(self, record: Record, versions: Versions, adjacencies: Adjacencies) -> None:
        self._record = record
        self._versions = versions
        self._adjacencies = adjacencies

    def nodes(self, type_name: str) -> Columns | None:
        """The nodes of a type."""
        return self._at(f"node:{type_name}")

    def ids(self, nodes: Columns) -> RowLookup | None:
        """What finds nodes by their ids."""
        return self._versions.lookup_in_memory(nodes, ID)

    def column(self, nodes: Columns, name: str) -> Column | None:
        """A column of some nodes."""
        return self._versions.column_in_memory(nodes, name)

    def rows(self, edge: str, from_type: str, to_type: str, direction: Direction) -> Csr | None:
        """The rows for one way of following edges."""
        edges, sources, targets = self._at(f"edge:{edge}"), self.nodes(from_type), self.nodes(to_type)
        if edges is None or sources is None or targets is None:
            return None
        return self._adjacencies.rows_in_memory(edges, sources, targets, direction)

    def _at(self, type_key: str) -> Columns | None:
        pin = self._record.tables.get(type_key)
        return None if pin is None else self._versions.in_memory(pin)
