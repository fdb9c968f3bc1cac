"""What can be exported, in which formats, and what came of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO

from omnigraph.errors import InvalidRequestError
from omnigraph.model.schema import EntityType, Schema
from omnigraph.model.suggest import explain_unknown


class ExportFormat(StrEnum):
    """What can be written."""

    JSONL = "jsonl"
    PARQUET = "parquet"
    CSV = "csv"
    GRAPHML = "graphml"


# These hold the rows of one type in a file; the others hold all types.
PER_TYPE = frozenset({ExportFormat.PARQUET, ExportFormat.CSV})


Destination = str | Path | IO[bytes]


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written.

    Attributes:
        commit: the commit it shows.
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
        schema: the types there are.
        types: names; one means the node type and the edge type of that name. All by default.

    Returns:
        tuple[EntityType, ...]: the types.

    Raises:
        InvalidRequestError: there is none of a name.
    """
    everything = sorted(schema.entities, key=lambda entity: entity.type_key)
    if types is None:
        return tuple(everything)
    if not isinstance(types, Iterable):
        raise InvalidRequestError(f"the types to export are names, not {types!r}", code="unknown_export_type")
    wanted = [types] if isinstance(types, str) else list(types)
    for name in wanted:
        if not any(name in (entity.name, entity.type_key) for entity in everything):
            message = explain_unknown("unknown export type", str(name), (entity.name for entity in everything))
            raise InvalidRequestError(message, code="unknown_export_type")
    return tuple(entity for entity in everything if entity.name in wanted or entity.type_key in wanted)


def as_format(name: str) -> ExportFormat:
    """The format of a name.

    Args:
        name: as a caller spells it.

    Raises:
        InvalidRequestError: there is none of this name.
    """
    try:
        return ExportFormat(name)
    except ValueError:
        listed = ", ".join(ExportFormat)
        raise InvalidRequestError(f"there is no export format '{name}'; the formats are {listed}") from None
