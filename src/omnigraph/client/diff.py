"""What lies between two states of a graph on a server."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph import limits
from omnigraph.branch.entity_change import ChangeFilter, EntityChange
from omnigraph.branch.told import DiffStats
from omnigraph.client.values import changes_wanted, entity_change
from omnigraph.client.wire import Wire


@dataclass(frozen=True, slots=True)
class RemoteDiff:
    """What lies between two states; see `omnigraph.Diff`. Changes are fetched while they are asked for.

    Attributes:
        from_commit: the commit of the older state.
        to_commit: the commit of the newer state.
        stats: by type key, how many entities differ; types without change are absent.
    """

    from_commit: str
    to_commit: str
    stats: Mapping[str, DiffStats]
    _wire: Wire
    _wanted: Mapping[str, tuple[str, ...]]

    @property
    def types(self) -> tuple[str, ...]:
        """The type keys that have changes."""
        return tuple(self.stats)

    def __iter__(self) -> Iterator[EntityChange]:
        offset, size = 0, limits.CLIENT_PAGE_CHANGES
        while offset < len(self):
            page = self._wire.get(
                "diff", **{"from": self.from_commit, "to": self.to_commit}, limit=size, offset=offset, **self._wanted
            )
            yield from (entity_change(each) for each in page["changes"])
            offset += size

    def __bool__(self) -> bool:
        return bool(self.stats)

    def __len__(self) -> int:
        return sum(each.total for each in self.stats.values())

    def to_pylist(self) -> list[dict[str, Any]]:
        """Every change as a plain dictionary, as JSON shows it."""
        return [each.to_dict() for each in self]


def diff_of(wire: Wire, older: str, newer: str, wanted: ChangeFilter, *, merge_base: bool) -> RemoteDiff:
    """What lies between two states; see `omnigraph.Graph.diff`."""
    chosen = changes_wanted(wanted)
    compared = {"merge_base": True} if merge_base else {}
    found = wire.get("diff", **{"from": older, "to": newer}, stat=True, **compared, **chosen)
    stats = {key: DiffStats(**counts) for key, counts in found["stats"].items()}
    return RemoteDiff(found["from_commit_id"], found["to_commit_id"], stats, wire, chosen)
