"""Load options: what a caller may say about a load besides the data, as keywords and as one value."""

import os
from collections.abc import Callable
from dataclasses import dataclass, fields

from omnigraph.pipeline.load.how_far import LoadProgress
from omnigraph.pipeline.load.sources import OPTION
from omnigraph.transaction.mode import Mode, mode_named
from omnigraph.transaction.options import WriteKeywords, WriteOptions, write_options

SPARK, LOCAL = "spark", "local"


class LoadKeywords(WriteKeywords, total=False):
    """Keywords of a load, besides those of every write.

    Attributes:
        from_branch: create the branch from this one if it does not exist.
        type_name: the node type of CSV and Parquet files.
        edge: the edge type of CSV and Parquet files.
        from_column: of edges, the column with the id of the node they leave; by default `from`.
        to_column: of edges, the column with the id of the node they reach; by default `to`.
        format: `jsonl`, `csv` or `parquet`; by default what the file names say.
        strict: by default True. False reads a stream of JSON values and forgives errors, for older scripts.
        engine: `spark`, the default, or `local` for data that fits into the memory of this process.
        rejects: a folder; records that cannot be loaded are written there with reason and place, the others loaded.
        max_rejects: how many bad records are allowed at most.
        dry_run: check everything and write nothing.
        spark: a Spark session, or `SparkSettings` to make one with.
        progress: called with the progress of the load.
    """

    from_branch: str | None
    type_name: str | None
    edge: str | None
    from_column: str | None
    to_column: str | None
    format: str | None
    strict: bool
    engine: str
    rejects: "str | os.PathLike[str] | None"
    max_rejects: int | None
    dry_run: bool
    spark: object
    progress: Callable[[LoadProgress], None] | None


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """The options of a load; see `LoadKeywords`."""

    mode: Mode
    branch: str
    from_branch: str | None = None
    type_name: str | None = None
    edge: str | None = None
    from_column: str | None = None
    to_column: str | None = None
    format: str | None = None
    strict: bool = True
    engine: str = SPARK
    rejects: "str | os.PathLike[str] | None" = None
    max_rejects: int | None = None
    dry_run: bool = False
    spark: object = None
    progress: Callable[[LoadProgress], None] | None = None


_NAMES = frozenset(field.name for field in fields(LoadOptions)) - {"mode", "branch"}


def load_options(mode: Mode | str, branch: str, keywords: LoadKeywords) -> tuple[LoadOptions, WriteOptions]:
    """Separate the keywords of a load from those of every write.

    Raises:
        InvalidRequestError: the mode is unknown, or a write option is of the wrong type.
        TypeError: there is no such keyword.
    """
    own = {name: value for name, value in keywords.items() if name in _NAMES}
    others = {name: value for name, value in keywords.items() if name not in _NAMES}
    chosen = LoadOptions(mode_named(mode, code=OPTION), branch, **own)  # type: ignore[arg-type]  # its own names
    return chosen, write_options(others)  # type: ignore[arg-type]  # whatever is none is refused there
