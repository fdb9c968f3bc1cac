"""How many edges leave and reach each vertex."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (as Spark's own documentation calls it)

from omnigraph.pipeline.analytics.network import DST, SRC, VERTEX, Network

OUT_DEGREE = "out_degree"
IN_DEGREE = "in_degree"
DEGREE = "degree"


def degrees(network: Network) -> DataFrame:
    """The degrees of every vertex.

    Args:
        network: the graph; parallel edges count each, a loop counts once at either end.

    Returns:
        DataFrame: `vertex`, `out_degree`, `in_degree` and their sum `degree`.
    """
    ends = network.edges.select(
        F.explode(
            F.array(
                F.struct(F.col(SRC).alias(VERTEX), F.lit(1).alias("out"), F.lit(0).alias("into")),
                F.struct(F.col(DST).alias(VERTEX), F.lit(0).alias("out"), F.lit(1).alias("into")),
            )
        ).alias("end")
    )
    counted = ends.groupBy(F.col("end.vertex").alias(VERTEX)).agg(
        F.sum("end.out").alias("out"), F.sum("end.into").alias("into")
    )
    leaving = F.coalesce(F.col("out"), F.lit(0)).cast("bigint")
    reaching = F.coalesce(F.col("into"), F.lit(0)).cast("bigint")
    return network.vertices.join(counted, VERTEX, "left").select(
        VERTEX,
        leaving.alias(OUT_DEGREE),
        reaching.alias(IN_DEGREE),
        (leaving + reaching).alias(DEGREE),
    )
