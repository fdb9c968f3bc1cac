"""Export the entities of one commit to files or a stream."""

from collections.abc import Iterable, Iterator
from importlib import import_module

import pyarrow as pa

from omnigraph.api.snapshot import Snapshot
from omnigraph.pipeline.export import run
from omnigraph.pipeline.export.formats import Destination, Exported, as_format, chosen_entities
from omnigraph.storage.tables.location import location_of
from omnigraph.transaction.graph_context import GraphContext


def export(
    parts: GraphContext,
    at: Snapshot,
    to: Destination,
    *,
    format: str,
    types: Iterable[str] | None,
    files: int | None = None,
) -> Exported:
    """Write the entities of a commit; see `Graph.export`."""
    entities = chosen_entities(at.schema, types)
    chosen, pinned = as_format(format), parts.snapshot(at.record)
    if files is None:
        return run.export(pinned, entities, to, format=chosen)
    # Imported here: pyspark takes long to import, and one file does not need it.
    parallel, session = (import_module(f"omnigraph.pipeline.{name}") for name in ("export.parallel", "session"))
    made: Exported = parallel.export_parallel(
        session.spark_session(), location_of(parts.tables), pinned, entities, to, format=chosen, files=files
    )
    return made


def lines(parts: GraphContext, at: Snapshot, *, types: Iterable[str] | None) -> Iterator[pa.Buffer]:
    """Return the entities of a commit as JSON lines; see `Graph.export_lines`."""
    return run.stream_lines(parts.snapshot(at.record), chosen_entities(at.schema, types))
