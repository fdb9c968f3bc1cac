"""What every algorithm works on: the vertices and the edges between them, whatever types they are of.

A vertex is named `Type:id`, since ids are distinct only within a type; names of types have no colon.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (as everybody calls it)

VERTEX = "vertex"
SRC = "src"
DST = "dst"
WEIGHT = "weight"
VALUE = "value"


@dataclass(frozen=True, slots=True)
class Network:
    """Vertices and edges.

    Attributes:
        vertices: the column `vertex`, each vertex once.
        edges: the columns `src` and `dst`, which name vertices; parallel edges and loops are allowed. `weight` where
            paths are weighed.
    """

    vertices: DataFrame
    edges: DataFrame

    def undirected(self) -> "Network":
        """Each pair of neighbours in both directions, once; no loops, no weights."""
        joined = self.edges.where(F.col(SRC) != F.col(DST)).select(SRC, DST)
        both = joined.union(joined.select(F.col(DST).alias(SRC), F.col(SRC).alias(DST)))
        return Network(self.vertices, both.distinct())


def kept(rows: DataFrame) -> DataFrame:
    """Rows computed now and kept on the executors, without the way they came about.

    Args:
        rows: any rows.

    Returns:
        DataFrame: the same rows, in the same partitions every time.
    """
    return rows.localCheckpoint(eager=True)


def name_of(type_name: str, id_column: Column) -> Column:
    """The name of a vertex.

    Returns:
        Column: `Type:id`.
    """
    return F.concat(F.lit(f"{type_name}:"), id_column)


def type_of(vertex: Column) -> Column:
    """The type in the name of a vertex."""
    return F.substring_index(vertex, ":", 1)


def id_of(vertex: Column) -> Column:
    """The id in the name of a vertex, which may have colons of its own."""
    return F.substring(vertex, F.locate(":", vertex) + F.lit(1), F.length(vertex))
