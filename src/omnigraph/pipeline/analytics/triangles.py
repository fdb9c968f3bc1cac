"""Triangles: three vertices, each a neighbour of the other two."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (as Spark's own documentation calls it)

from omnigraph.pipeline.analytics.network import DST, SRC, VALUE, VERTEX, Network, kept


def triangle_count(network: Network) -> DataFrame:
    """How many triangles each vertex is a corner of.

    Every pair of neighbours points to the one with more neighbours, so that even a vertex with millions of them has
    few that it points to, and few pairs must be looked at.

    Args:
        network: the graph; directions, parallel edges and loops do not matter.

    Returns:
        DataFrame: `vertex` and `value`.
    """
    neighbours = kept(network.undirected().edges)
    sizes = neighbours.groupBy(SRC).agg(F.count("*").alias("size"))
    sized = neighbours.join(sizes, SRC).join(
        sizes.select(F.col(SRC).alias(DST), F.col("size").alias("other_size")), DST
    )
    pointing = kept(sized.where(f"(size, {SRC}) < (other_size, {DST})").select(SRC, DST))
    one = pointing.select(SRC, F.col(DST).alias("one"))
    other = pointing.select(SRC, F.col(DST).alias("other"))
    closing = pointing.select(F.col(SRC).alias("one"), F.col(DST).alias("other"))
    triangles = one.join(other, SRC).join(closing, ["one", "other"])
    corners = triangles.select(F.explode(F.array(SRC, "one", "other")).alias(VERTEX))
    counted = corners.groupBy(VERTEX).agg(F.count("*").alias("corners"))
    return network.vertices.join(counted, VERTEX, "left").select(
        VERTEX, F.coalesce(F.col("corners"), F.lit(0)).cast("bigint").alias(VALUE)
    )
