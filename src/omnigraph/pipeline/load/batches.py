"""Records of one type on their way to its table: not yet in the table's types, each with its place in the file."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.model.schema import EntityType

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Batch:
    """Some records of one type.

    Attributes:
        rows: columns by name, or a dictionary per record; the ends of edges are `src` and `dst`.
        positions: where each record is.
    """

    entity: EntityType
    rows: "pa.Table | list[dict[str, Any]]"
    positions: Positions

    def __len__(self) -> int:
        return len(self.positions)

    def part(self, start: int, stop: int) -> "Batch":
        """The records from one place to another."""
        rows = self.rows[start:stop] if isinstance(self.rows, list) else self.rows.slice(start, stop - start)
        return Batch(self.entity, rows, self.positions[start:stop])
