"""Upkeep of a graph: what `Graph.optimize` reports."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from omnigraph import limits
from omnigraph.api.engines import Engine, session_for, spark_module
from omnigraph.errors import GraphError, NotFoundError
from omnigraph.execution.engine import QueryEngine
from omnigraph.model.commit import Pin
from omnigraph.model.schema import Schema
from omnigraph.storage.tables.compact import Groups
from omnigraph.storage.tables.declared import searched_texts
from omnigraph.storage.tables.upkeep import PendingIndex
from omnigraph.transaction.optimize import Optimized, OptimizedTable
from omnigraph.transaction.parts import Parts
from omnigraph.transaction.said import texts

LOG = "__manifest"
"""What a report calls the branch's own log."""

__all__ = [
    "LOG",
    "OptimizeReport",
    "OptimizedTable",
    "PendingIndex",
    "report_of",
    "rewritten",
    "type_keys_of",
    "with_words",
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
                "pending_indexes": [{"property": each.property, "reason": each.reason} for each in table.pending],
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


def report_of(done: Optimized, *, uri: str, branch: str) -> OptimizeReport:
    """The report of a call."""
    commit = None if done.entry is None else done.entry.commit
    return OptimizeReport(uri, branch, commit, done.tables, done.checkpoints, done.attempts)


def with_words(done: Optimized, engine: QueryEngine, schema: Schema) -> Optimized:
    """Index the words of the texts that are declared to be searched, of types with many of them.

    What was done to tables is published by then, so nothing that goes wrong here is an error: a search makes the index
    itself where it finds none.

    Args:
        done (Optimized): what was done to the tables.
        engine (QueryEngine): what searches them.
        schema (Schema): of the branch afterwards.

    Returns:
        Optimized: the same, with what was done here.
    """
    tables = []
    for table in done.tables:
        entity = schema.entity(table.type_key)
        made, pending = [], []
        for text in () if entity is None else searched_texts(entity):
            name = text.name
            try:
                if engine.keep_words(done.head.tables[table.type_key], name, text.analyzer, is_new=table.changed):
                    made.append(f"{name}_words")
            except GraphError as fault:
                pending.append(PendingIndex(name, f"its words cannot be indexed: {fault.message}"))
        tables.append(replace(table, indexes=(*table.indexes, *made), pending=(*table.pending, *pending)))
    return replace(done, tables=tuple(tables))


def type_keys_of(schema: Schema, names: Sequence[str]) -> list[str]:
    """The type keys behind names of types.

    Raises:
        NotFoundError: there is no such type.
        InvalidRequestError: the names are no list of texts.
    """
    found = []
    for name in texts(names, "the types"):
        entity = schema.entity(name) if ":" in name else schema.node(name) or schema.edge(name)
        if entity is None:
            raise NotFoundError(f"there is no type '{name}'", code="type_not_found", type=name)
        found.append(entity.type_key)
    return found


def rewritten(parts: Parts, engine: Engine, pin: Pin, groups: Groups, size: int) -> list[str] | None:
    """Fragments of a version, rewritten on Spark; None where this process is to do it."""
    is_large = engine is Engine.AUTO and size > limits.COMPACT_LOCAL_BYTES_MAX
    session = session_for(engine) if is_large or engine is Engine.SPARK else None
    if session is None:
        return None
    found: list[str] = spark_module("compact.spark").rewritten_on_spark(session, parts.tables, parts.ids, pin, groups)
    return found
