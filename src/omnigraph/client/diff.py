"""The differences between two states of a graph on a server."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph import limits
from omnigraph.branch.entity_change import ChangeFilter, EntityChange
from omnigraph.branch.history_values import DiffStats
from omnigraph.client.values import filter_fields, parse_entity_change
from omnigraph.client.wire import Wire


@dataclass(frozen=True, slots=True)
class RemoteDiff:
    """The differences between two states; see `omnigraph.Diff`. Iterating fetches changes page by page.

    Attributes:
        from_commit: the commit of the older state.
        to_commit: the commit of the newer state.
        stats: counts of changed entities by type key; types without changes are absent.
    """

    from_commit: str
    to_commit: str
    stats: Mapping[str, DiffStats]
    _wire: Wire
    _filter: Mapping[str, tuple[str, ...]]

    @property
    def types(self) -> tuple[str, ...]:
        """The keys of the types that have changes."""
        return tuple(self.stats)

    def __iter__(self) -> Iterator[EntityChange]:
        offset, size = 0, limits.CLIENT_PAGE_CHANGES
        while offset < len(self):
            page = self._wire.get(
                "diff", **{"from": self.from_commit, "to": self.to_commit}, limit=size, offset=offset, **self._filter
            )
            yield from (parse_entity_change(change) for change in page["changes"])
            offset += size

    def __bool__(self) -> bool:
        return bool(self.stats)

    def __len__(self) -> int:
        return sum(stats.total for stats in self.stats.values())

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return every change as a dictionary of JSON values."""
        return [change.to_dict() for change in self]


def fetch_diff(wire: Wire, older: str, newer: str, filter: ChangeFilter, *, merge_base: bool) -> RemoteDiff:
    """Compare two states; see `omnigraph.Graph.diff`."""
    chosen = filter_fields(filter)
    compared = {"merge_base": True} if merge_base else {}
    found = wire.get("diff", **{"from": older, "to": newer}, stat=True, **compared, **chosen)
    stats = {key: DiffStats(**counts) for key, counts in found["stats"].items()}
    return RemoteDiff(found["from_commit_id"], found["to_commit_id"], stats, wire, chosen)
