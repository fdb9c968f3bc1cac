"""The lines of an open graph's history: compared, brought together, undone."""

from omnigraph.api import diffing, lineage, merging, reverting
from omnigraph.api.diffing import State
from omnigraph.api.graph_reads import GraphReads
from omnigraph.api.lines import Lines, MergeWanted
from omnigraph.api.receipts import MergeResult, RevertResult
from omnigraph.api.snapshot import Snapshot
from omnigraph.branch.diff import Diff
from omnigraph.branch.entity_change import ChangeFilter
from omnigraph.branch.told import Blame, EntityEvent
from omnigraph.transaction.options import WriteOptions


class GraphLines(GraphReads, Lines[Snapshot, Diff]):
    """How the lines of an open graph are compared, brought together and undone."""

    def _diff(self, older: State, newer: State, wanted: ChangeFilter, engine: str, *, merge_base: bool) -> Diff:
        return diffing.diff(self._open(), older, newer, wanted, engine=engine, merge_base=merge_base)

    def _merge(self, wanted: MergeWanted, options: WriteOptions) -> MergeResult:
        return merging.merge(self._open(), self._schemas, wanted, options)

    def _revert(self, first: str, last: str | None, branch: str, options: WriteOptions) -> RevertResult:
        return reverting.revert(self._open(), self._schemas, first, last, branch=branch, options=options)

    def _log_of(self, type_name: str, entity_id: str, branch: str, limit: int | None) -> list[EntityEvent]:
        return lineage.log_of(
            self.snapshot(branch=branch), self._open(), self._schemas, type_name, entity_id, limit=limit
        )

    def _blame(self, type_name: str, entity_id: str, branch: str) -> Blame:
        return lineage.blame(self.snapshot(branch=branch), self._open(), self._schemas, type_name, entity_id)
