"""Export: entities of one commit out to files or a stream."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from omnigraph.api.snapshot import Snapshot
from omnigraph.pipeline.export import run
from omnigraph.pipeline.export.run import Destination, Exported
from omnigraph.transaction.parts import Parts


def export(parts: Parts, at: Snapshot, to: Destination, *, format: str, types: Iterable[str] | None) -> Exported:
    """Write entities of a commit; see `Graph.export`."""
    entities = run.chosen_entities(at.schema, types)
    return run.export(parts.snapshot(at.record), entities, to, format=run.as_format(format))


def lines(parts: Parts, at: Snapshot, *, types: Iterable[str] | None) -> Iterator[pa.Buffer]:
    """Entities of a commit as JSON lines; see `Graph.export_lines`."""
    return run.stream_lines(parts.snapshot(at.record), run.chosen_entities(at.schema, types))
