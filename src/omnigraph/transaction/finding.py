"""Port of an in-memory row index, so that a small write need not scan tables.

A port: the layer above implements it from what it has in memory. Whoever has none searches the tables, and so does
everybody where the answer is None. An answer is about exactly the version asked for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from omnigraph.model.commit import Pin
from omnigraph.storage.tables.tables import StagedVersion


@dataclass(frozen=True, slots=True)
class FoundEdge:
    """An edge of one version.

    Attributes:
        id: unique within its type.
        src: the node it leaves.
        dst: the node it reaches.
        address: where it lies in that version.
    """

    id: str
    src: str
    dst: str
    address: int


class RowIndex(Protocol):
    """Knows where rows are. Safe to use from several threads."""

    def places(self, pin: Pin, ids: Sequence[str]) -> Mapping[str, int] | None:
        """Where the rows with these ids lie in a version.

        Args:
            pin: the version.
            ids: few, each once.

        Returns:
            Mapping[str, int] | None: the address of each id that the version has; None where that is not known.
        """
        ...

    def edges(self, pin: Pin, column: str, nodes: Sequence[str]) -> Sequence[FoundEdge] | None:
        """The edges of a version with one end at one of these nodes.

        Args:
            pin: the version.
            column: which end: `src` or `dst`.
            nodes: few, each once.

        Returns:
            Sequence[FoundEdge] | None: all of them; None where they are not known.
        """
        ...

    def learn(self, staged: StagedVersion) -> None:
        """Take note of what a version has that was just made, be it ever published or not."""
        ...
