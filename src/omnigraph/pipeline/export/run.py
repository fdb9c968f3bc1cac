"""An export in this process: some types of one commit, in one format, to one place."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import IO

import pyarrow as pa

from omnigraph.errors import InvalidRequestError
from omnigraph.model.schema import EdgeType, EntityType, Schema
from omnigraph.pipeline.export.destination import file_or_stream, new_folder
from omnigraph.pipeline.export.graphml import GRAPHML_END, graphml_elements, graphml_head
from omnigraph.pipeline.export.json_lines import lines_of
from omnigraph.pipeline.export.ordered import rows_in_order
from omnigraph.pipeline.export.tabular import write_csv, write_parquet
from omnigraph.transaction.snapshot import Snapshot


class ExportFormat(StrEnum):
    """What can be written."""

    JSONL = "jsonl"
    PARQUET = "parquet"
    CSV = "csv"
    GRAPHML = "graphml"


# These hold the rows of one type in a file; the others hold all types.
PER_TYPE = frozenset({ExportFormat.PARQUET, ExportFormat.CSV})
WRITERS = {ExportFormat.PARQUET: write_parquet, ExportFormat.CSV: write_csv}

Destination = str | Path | IO[bytes]


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written.

    Attributes:
        commit: the commit it shows.
        format: in which format.
        rows: how many entities of each type key.
        files: paths of the files; none where it went to a stream.
    """

    commit: str
    format: str
    rows: Mapping[str, int]
    files: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """How many entities."""
        return sum(self.rows.values())


def chosen_entities(schema: Schema, types: Iterable[str] | None) -> tuple[EntityType, ...]:
    """The types to export, in the order of their keys: edges before nodes, each by name.

    Args:
        schema (Schema): the types there are.
        types (Iterable[str] | None): names; one means the node type and the edge type of that name. All by default.

    Returns:
        tuple[EntityType, ...]: the types.

    Raises:
        InvalidRequestError: there is none of a name.
    """
    everything = sorted(schema.entities, key=lambda entity: entity.type_key)
    if types is None:
        return tuple(everything)
    wanted = [types] if isinstance(types, str) else list(types)
    for name in wanted:
        if not any(name in (entity.name, entity.type_key) for entity in everything):
            raise InvalidRequestError(f"unknown export type '{name}'", code="unknown_export_type")
    return tuple(entity for entity in everything if entity.name in wanted or entity.type_key in wanted)


def as_format(name: str) -> ExportFormat:
    """The format of a name.

    Args:
        name (str): as a caller spells it.

    Returns:
        ExportFormat: the format.

    Raises:
        InvalidRequestError: there is none of this name.
    """
    try:
        return ExportFormat(name)
    except ValueError:
        listed = ", ".join(ExportFormat)
        raise InvalidRequestError(f"there is no export format '{name}'; the formats are {listed}") from None


def export(snapshot: Snapshot, entities: Sequence[EntityType], to: Destination, *, format: ExportFormat) -> Exported:
    """Write types of a commit, each in the order of its ids.

    Args:
        snapshot (Snapshot): the commit.
        entities (Sequence[EntityType]): the types, in order.
        to (Destination): a path or a stream of bytes. Parquet and CSV hold one type in a file: of several types, or
            where the path has no such ending, a folder is made with a file for each.
        format (ExportFormat): how.

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
        files = (str(to),) if isinstance(to, str | Path) else ()
    return Exported(snapshot.commit, format.value, rows, files)


def stream_lines(snapshot: Snapshot, entities: Sequence[EntityType]) -> Iterator[pa.Buffer]:
    """Entities as JSON lines, for whoever sends them on as they come.

    Args:
        snapshot (Snapshot): the commit.
        entities (Sequence[EntityType]): the types, in order.

    Yields:
        pa.Buffer: whole lines.
    """
    for entity in entities:
        yield from lines_of(entity, rows_in_order(snapshot.table(entity.type_key)))


def file_of(entity: EntityType, format: ExportFormat) -> str:
    """Where a type's rows lie in a folder of files: `nodes/Person.parquet`.

    Args:
        entity (EntityType): the type.
        format (ExportFormat): the format.

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
        return (str(to),) if is_path else ()
    if not isinstance(to, str | Path):
        raise InvalidRequestError(f"{format} holds one type in a file: name one type, or a folder to export to")
    with new_folder(Path(to)) as folder:
        for entity in entities:
            path = folder / file_of(entity, format)
            path.parent.mkdir(exist_ok=True)
            with path.open("wb") as stream:
                _write_table(snapshot, entity, stream, format)
    return tuple(str(Path(to) / file_of(entity, format)) for entity in entities)


def _write_table(snapshot: Snapshot, entity: EntityType, to: IO[bytes], format: ExportFormat) -> None:
    table = snapshot.table(entity.type_key)
    WRITERS[format](rows_in_order(table), table.schema, to)
