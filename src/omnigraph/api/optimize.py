"""Optimize a branch: compact tables and build indexes, here or on Spark, and report what was done."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from omnigraph import limits
from omnigraph.api.engines import Engine, engine_of, session_for, spark_module
from omnigraph.api.snapshot import GraphReader
from omnigraph.errors import GraphError, NotFoundError
from omnigraph.execution.engine import QueryEngine
from omnigraph.model.commit import Pin
from omnigraph.model.schema import Schema
from omnigraph.storage import paths
from omnigraph.storage.tables.compact import Groups
from omnigraph.storage.tables.declared import searched_texts
from omnigraph.storage.tables.upkeep import PendingIndex
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.optimize import Optimized, OptimizedTable, optimize
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.validation import require_texts

LOG = "__manifest"
"""What a report calls the branch's own log."""

__all__ = [
    "LOG",
    "OptimizeReport",
    "OptimizedTable",
    "PendingIndex",
    "optimize_branch",
]


@dataclass(frozen=True, slots=True)
class OptimizeReport:
    """What one call of `Graph.optimize` did.

    Attributes:
        uri: of the graph.
        branch: whose tables.
        commit: the commit it made; None where nothing was due.
        tables: every table looked at.
        checkpoints: how many blocks of old log entries were folded into one file each.
        attempts: how often it was planned.
    """

    uri: str
    branch: str
    commit: str | None
    tables: tuple[OptimizedTable, ...]
    checkpoints: int = 0
    attempts: int = 1

    @property
    def pending(self) -> dict[str, tuple[PendingIndex, ...]]:
        """The indexes that are declared and cannot be built yet, by type key."""
        return {table.type_key: table.pending for table in self.tables if table.pending}

    def to_dict(self) -> dict[str, Any]:
        """The report as the document that scripts read.

        Returns:
            dict[str, Any]: plain JSON values. No table moves on by itself, so none is ever skipped, and the newest
                version of each is the published one.
        """
        datasets: list[dict[str, Any]] = [
            {
                "type_key": table.type_key,
                "fragments_removed": table.fragments_removed,
                "fragments_added": table.fragments_added,
                "committed": table.changed,
                "skipped": None,
                "published_dataset_version": table.version,
                "lance_head_version": table.version,
                "pending_indexes": [{"property": index.property, "reason": index.reason} for index in table.pending],
            }
            for table in self.tables
        ]
        log = {
            "type_key": LOG,
            "fragments_removed": 0,
            "fragments_added": self.checkpoints,
            "committed": False,
            "skipped": None,
            "published_dataset_version": None,
            "lance_head_version": None,
            "pending_indexes": [],
        }
        return {"uri": self.uri, "datasets": [*datasets, log]}


def optimize_branch(
    reader: GraphReader,
    branch: str,
    *,
    types: Sequence[str] | None,
    purge: bool,
    options: WriteOptions,
    engine: str,
) -> OptimizeReport:
    """Optimize the tables of a branch as one commit; see `Graph.optimize`."""
    parts, schemas = reader.parts, reader.schemas
    name = paths.branch_name(branch)
    done = optimize(
        parts,
        name,
        lambda digest: schemas.of(digest).schema,
        type_keys=None if types is None else _type_keys(schemas.at_head(name).schema, types),
        options=options,
        rewriter=partial(_rewrite_on_spark, parts, engine_of(engine)),
        purge=purge,
    )
    done = _with_text_indexes(done, reader.engine, schemas.of(done.head.schema).schema)
    commit = None if done.entry is None else done.entry.commit
    return OptimizeReport(parts.store.uri, name, commit, done.tables, done.checkpoints, done.attempts)


def _with_text_indexes(done: Optimized, engine: QueryEngine, schema: Schema) -> Optimized:
    """Build the inverted indexes of text properties that are declared to be searched, for types with many rows.

    The tables are published by then, so a failure here is no error: a search builds the index itself if it is missing.
    """
    tables = []
    for table in done.tables:
        entity = schema.entity(table.type_key)
        made, pending = [], []
        for text in () if entity is None else searched_texts(entity):
            name = text.name
            try:
                if engine.keep_text_index(done.head.tables[table.type_key], name, text.analyzer, is_new=table.changed):
                    made.append(f"{name}_words")
            except GraphError as fault:
                pending.append(PendingIndex(name, f"its words cannot be indexed: {fault.message}"))
        tables.append(replace(table, indexes=(*table.indexes, *made), pending=(*table.pending, *pending)))
    return replace(done, tables=tuple(tables))


def _type_keys(schema: Schema, names: Sequence[str]) -> list[str]:
    """Look up the type keys of type names.

    Raises:
        NotFoundError: there is no such type.
        InvalidRequestError: the names are not a list of texts.
    """
    found = []
    for name in require_texts(names, "the types"):
        entity = schema.entity(name) if ":" in name else schema.node(name) or schema.edge(name)
        if entity is None:
            raise NotFoundError(f"there is no type '{name}'", code="type_not_found", type=name)
        found.append(entity.type_key)
    return found


def _rewrite_on_spark(parts: GraphContext, engine: Engine, pin: Pin, groups: Groups, size: int) -> list[str] | None:
    """Rewrite fragments of a table version on Spark; None if this process is to do it."""
    is_large = engine is Engine.AUTO and size > limits.COMPACT_LOCAL_BYTES_MAX
    session = session_for(engine) if is_large or engine is Engine.SPARK else None
    if session is None:
        return None
    found: list[str] = spark_module("compact.spark").rewritten_on_spark(session, parts.tables, parts.ids, pin, groups)
    return found
