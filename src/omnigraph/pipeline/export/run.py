"""An export in this process: some types of one commit, in one format, to one place."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO

import pyarrow as pa

from omnigraph.errors import InvalidRequestError
from omnigraph.model.schema import EdgeType, EntityType
from omnigraph.pipeline.export.destination import file_or_stream, local_destination, new_folder
from omnigraph.pipeline.export.formats import PER_TYPE, Destination, Exported, ExportFormat
from omnigraph.pipeline.export.graphml import GRAPHML_END, graphml_elements, graphml_head
from omnigraph.pipeline.export.json_lines import lines_of
from omnigraph.pipeline.export.ordered import rows_in_order
from omnigraph.pipeline.export.tabular import write_csv, write_parquet
from omnigraph.transaction.snapshot import Snapshot

WRITERS = {ExportFormat.PARQUET: write_parquet, ExportFormat.CSV: write_csv}


def export(snapshot: Snapshot, entities: Sequence[EntityType], to: Destination, *, format: ExportFormat) -> Exported:
    """Write types of a commit, each in the order of its ids.

    Args:
        snapshot: the commit.
        entities: the types, in order.
        to: a path or a stream of bytes. Parquet and CSV hold one type in a file: of several types, or
            where the path has no such ending, a folder is made with a file for each.
        format: how.

    Returns:
        Exported: what was written.

    Raises:
        InvalidRequestError: several types to one stream in a format that has one per file.
        AlreadyExistsError: the folder is there already.
    """
    rows = {entity.type_key: snapshot.count(entity.type_key) for entity in entities}
    files: tuple[str, ...]
    if format in PER_TYPE:
        files = _write_tables(snapshot, entities, to, format)
    else:
        with file_or_stream(to) as stream:
            for piece in _pieces(snapshot, entities, format):
                stream.write(piece)
        files = _named(to)
    return Exported(snapshot.commit, format.value, rows, files)


def stream_lines(snapshot: Snapshot, entities: Sequence[EntityType]) -> Iterator[pa.Buffer]:
    """Yield entities as JSON lines, as they are read.

    Args:
        snapshot: the commit.
        entities: the types, in order.

    Yields:
        pa.Buffer: whole lines.
    """
    for entity in entities:
        yield from lines_of(entity, rows_in_order(snapshot.table(entity.type_key)))


def file_of(entity: EntityType, format: ExportFormat) -> str:
    """Where a type's rows lie in a folder of files: `nodes/Person.parquet`.

    Returns:
        str: the path in the folder.
    """
    return f"{entity.kind}s/{entity.name}.{format}"


def _pieces(snapshot: Snapshot, entities: Sequence[EntityType], format: ExportFormat) -> Iterator[pa.Buffer | bytes]:
    if format is ExportFormat.JSONL:
        return stream_lines(snapshot, entities)
    # Readers of GraphML expect nodes before the edges between them.
    nodes_first = sorted(entities, key=lambda entity: isinstance(entity, EdgeType))
    elements = (graphml_elements(entity, rows_in_order(snapshot.table(entity.type_key))) for entity in nodes_first)
    return chain([graphml_head(nodes_first)], chain.from_iterable(elements), [GRAPHML_END])


def _write_tables(
    snapshot: Snapshot, entities: Sequence[EntityType], to: Destination, format: ExportFormat
) -> tuple[str, ...]:
    is_path = isinstance(to, str | Path)
    if len(entities) == 1 and (not is_path or Path(str(to)).suffix == f".{format}"):
        with file_or_stream(to) as stream:
            _write_table(snapshot, entities[0], stream, format)
        return _named(to)
    if not isinstance(to, str | Path):
        raise InvalidRequestError(f"{format} holds one type in a file: name one type, or a folder to export to")
    target = local_destination(to)
    with new_folder(target) as folder:
        for entity in entities:
            path = folder / file_of(entity, format)
            path.parent.mkdir(exist_ok=True)
            with path.open("wb") as stream:
                _write_table(snapshot, entity, stream, format)
    return tuple(str(target / file_of(entity, format)) for entity in entities)


def _named(to: Destination) -> tuple[str, ...]:
    return (str(local_destination(to)),) if isinstance(to, str | Path) else ()


def _write_table(snapshot: Snapshot, entity: EntityType, to: IO[bytes], format: ExportFormat) -> None:
    table = snapshot.table(entity.type_key)
    WRITERS[format](rows_in_order(table), table.schema, to)
