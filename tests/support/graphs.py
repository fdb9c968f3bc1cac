"""Graphs for tests and benchmarks: small typed ones as plain Python rows, and a large power-law one as Arrow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.execution.arrays import Values, take, to_arrow
from omnigraph.language.schema import accept
from omnigraph.model.commit import MAIN, CommitKind
from omnigraph.model.schema import Schema
from omnigraph.model.schema_document import digest
from omnigraph.storage.layout import table_schema, table_schemas
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.tables.tables import IndexKind, IndexSpec
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.root import init
from omnigraph.transaction.snapshot import Snapshot
from omnigraph.transaction.write import Operation, write
from omnigraph.transaction.write_set import WriteSet

Row = dict[str, Any]
Rows = dict[str, list[Row]]

# A type with every kind of property, one to be reached from it, and edges that can be parallel and loops.
SMALL_SCHEMA = """
node Person {
  name: String @key
  age: I32?
  score: F64?
  city: String?
  tags: [String]?
  born: Date?
  seen: DateTime?
  active: Bool?
  big: U64?
  ratio: F32?
}
node Place { code: I64 @key  title: String?  size: I64? }
node Note { text: String }
edge Knows: Person -> Person { since: I32?  weight: F64? }
edge LivesIn: Person -> Place { since: I32? }
edge Wrote: Person -> Note
"""

POWER_LAW_SCHEMA = """
node Person { name: String @key  age: I32  city: String  score: F64 }
edge Knows: Person -> Person { since: I32 }
"""


@dataclass(frozen=True, slots=True)
class PlainGraph:
    """A graph as Python rows.

    Attributes:
        schema: its types.
        nodes: by type name, rows with `id` and properties.
        edges: by type name, rows with `id`, `src`, `dst` and properties.
    """

    schema: Schema
    nodes: Rows = field(default_factory=dict)
    edges: Rows = field(default_factory=dict)

    def tables(self) -> dict[str, pa.Table]:
        """The rows of every type, by type key."""
        found = {}
        for entity in self.schema.entities:
            rows = (self.nodes if entity in self.schema.nodes else self.edges).get(entity.name, [])
            found[entity.type_key] = pa.Table.from_pylist(rows, schema=table_schema(entity))
        return found


@dataclass(frozen=True, slots=True)
class StoredGraph:
    """A graph in a store.

    Attributes:
        parts: its opened parts.
        schema: its types.
    """

    parts: GraphContext
    schema: Schema

    def snapshot(self, branch: str = MAIN) -> Snapshot:
        """The head of a branch."""
        return self.parts.snapshot(self.parts.log.live_head(branch))

    def add(self, tables: Mapping[str, pa.Table]) -> None:
        """Add rows under new ids."""

        def run(staging: WriteSet) -> None:
            for type_key, rows in tables.items():
                if rows.num_rows:
                    staging.insert(type_key, rows, fresh_ids=True)

        self._write(run, tables)

    def change(self, put: Mapping[str, pa.Table], gone: Mapping[str, Sequence[str]]) -> None:
        """Insert or replace rows, and delete others by id, in one commit."""

        def run(staging: WriteSet) -> None:
            for type_key, rows in put.items():
                staging.upsert(type_key, rows)
            for type_key, ids in gone.items():
                staging.delete(type_key, ids)

        self._write(run, {**put, **gone})

    def compact(self, type_key: str) -> None:
        """Put the fragments of a table together."""
        tables = self.parts.tables
        self._write(
            lambda staging: staging.change_table(type_key, tables.stage_compaction, keeps_content=True),
            {type_key: None},
        )

    def index(self, type_key: str, *columns: str) -> None:
        """Build indexes over columns of a table."""
        tables, specs = self.parts.tables, [IndexSpec(f"{column}_index", column, IndexKind.BTREE) for column in columns]
        self._write(
            lambda staging: staging.change_table(
                type_key, lambda base: tables.stage_index_delta(base, *specs), keeps_content=True
            ),
            {type_key: None},
        )

    def rows(self, type_key: str, rows: Sequence[Row]) -> pa.Table:
        """Python rows as a table of a type; properties left out are null."""
        entity = self.schema.entity(type_key)
        assert entity is not None
        return pa.Table.from_pylist(list(rows), schema=table_schema(entity))

    def _write(self, run: Any, type_keys: Mapping[str, object]) -> None:  # noqa: ANN401  (a function of a staging)
        operation = Operation(CommitKind.LOAD, frozenset(type_keys), run, redoable=True)
        write(self.parts, MAIN, operation)


def store_graph(where: str | ObjectStore, schema: Schema, tables: Mapping[str, pa.Table] | None = None) -> StoredGraph:
    """A graph in a store, with these rows.

    Args:
        where (str | ObjectStore): a place for it.
        schema (Schema): its types.
        tables (Mapping[str, pa.Table] | None): rows by type key.

    Returns:
        StoredGraph: with one commit for all of them.
    """
    parts = init(where, table_schemas(schema), schema=digest(schema), settings=Settings(durability="process"))
    graph = StoredGraph(parts, schema)
    if tables:
        graph.add(tables)
    return graph


def small_schema() -> Schema:
    """The schema of small graphs."""
    return accept(SMALL_SCHEMA)


@dataclass(frozen=True, slots=True)
class PowerLaw:
    """A power-law graph of people who know each other.

    Attributes:
        schema: its types.
        tables: rows by type key.
        sources: for each edge the position of the person it leaves.
        targets: and of the person it reaches.
    """

    schema: Schema
    tables: dict[str, pa.Table]
    sources: "np.typing.NDArray[np.int64]"
    targets: "np.typing.NDArray[np.int64]"


def power_law(persons: int, knows: int, *, seed: int = 1) -> PowerLaw:
    """A graph in which few people know, and are known by, very many; the same for the same numbers.

    Args:
        persons (int): how many people.
        knows (int): how many edges between them; some are parallel.
        seed (int): another one gives another graph.

    Returns:
        PowerLaw: made without a loop.
    """
    chance = np.random.default_rng(seed)
    names = numbered("person-", persons, 7)
    cities = numbered("city-", 200, 3)
    people = pa.table(
        {
            "id": names,
            "age": to_arrow(chance.integers(18, 90, persons).astype(np.int32)),
            "city": take(cities, chance.integers(0, len(cities), persons)),
            "name": names,
            "score": to_arrow(chance.random(persons)),
        }
    )
    order = chance.permutation(persons)
    sources = order[np.minimum((persons * chance.random(knows) ** 1.6).astype(np.int64), persons - 1)]
    targets = order[np.minimum((persons * chance.random(knows) ** 2.2).astype(np.int64), persons - 1)]
    edges = pa.table(
        {
            "id": numbered("01J0000000000000K", knows, 9),
            "src": take(names, sources),
            "dst": take(names, targets),
            "since": to_arrow(chance.integers(2000, 2025, knows).astype(np.int32)),
        }
    )
    schema = accept(POWER_LAW_SCHEMA)
    tables = {"node:Person": people, "edge:Knows": edges}
    made = {entity.type_key: tables[entity.type_key].cast(table_schema(entity)) for entity in schema.entities}
    return PowerLaw(schema, made, sources, targets)


def numbered(prefix: str, count: int, digits: int) -> Values:
    """`prefix-0001` and so on, without a loop."""
    numbers = np.char.zfill(np.arange(count).astype(str), digits)
    return pa.array(np.char.add(prefix, numbers), pa.string())
