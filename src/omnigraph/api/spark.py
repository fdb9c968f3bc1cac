"""Spark on a graph: types as frames, frames and streams into the graph, and graph algorithms.

Imports pyspark only when it is used, because it takes long to import. So Spark's objects are `Any` here, and the docs
of each method say what they are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Unpack

from omnigraph.api.load import load
from omnigraph.api.load_options import LoadOptions
from omnigraph.api.results import LoadResult
from omnigraph.api.schemas import Schemas
from omnigraph.api.spark_query import SparkQueries
from omnigraph.branch.find_entry import entry_at
from omnigraph.branch.point import PointKeywords, point_of
from omnigraph.errors import InvalidRequestError, NotFoundError
from omnigraph.model.commit import MAIN, Record
from omnigraph.model.schema import Schema
from omnigraph.model.suggest import explain_unknown
from omnigraph.pipeline.interruptible import interruptible
from omnigraph.pipeline.load.request import FrameToLoad
from omnigraph.pipeline.load.sources import OPTION
from omnigraph.storage.tables.location import location_of
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.mode import Mode, mode_named
from omnigraph.transaction.options import WriteKeywords, WriteOptions, write_options

# ruff: noqa: ANN401  (Spark's objects, see above)


class GraphSpark(SparkQueries):
    """Spark on a graph: `graph.spark`."""

    def __init__(self, parts: GraphContext, schemas: Schemas) -> None:
        self._parts = parts
        self._schemas = schemas

    def session(self, settings: Any = None) -> Any:
        """Return the Spark session of this process, created if there is none, with the format `omnigraph` registered.

        Args:
            settings: `SparkSettings`; by default sized to this machine.

        Returns:
            The caller's own SparkSession if there is one. A created one ends with the process.

        Raises:
            InvalidRequestError: there is a session already, with other settings.
            LimitError: the memory in the settings does not fit.
            UnavailableError: there is no suitable Java, or Spark does not start.
        """
        made = _module("session").spark_session(settings)
        _module("source.source").register(made)
        return made

    # -- reading ------------------------------------------------------------------------------------------------------

    def read(
        self,
        type_name: str,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        **point: Unpack[PointKeywords],
    ) -> Any:
        """Read a type as a DataFrame: `id`, for edges `src` and `dst`, and the properties, always at the same commit.

        Args:
            type_name: a node type, else an edge type; or a type key.
            columns: read only these columns; by default all.
            where: a SQL condition that the scan applies, so that other rows are not read.

        Raises:
            NotFoundError: there is no such type, branch, commit or tag.
        """
        record = entry_at(self._parts, point_of(point))
        key = _type_key(self._schemas.of(record.schema).schema, type_name)
        return self._reader(record)(key, columns, where)

    def views(
        self,
        *,
        prefix: str = "",
        **point: Unpack[PointKeywords],
    ) -> dict[str, str]:
        """Create a temporary view for every type, for SQL, all at the same commit.

        Args:
            prefix: goes before the names of types.

        Returns:
            View names by type key. An edge type with the name of a node type gets the suffix `_edge`.

        Raises:
            InvalidRequestError: no view name can start with the prefix.
            NotFoundError: there is no such branch, commit or tag.
        """
        record = entry_at(self._parts, point_of(point))
        names: dict[str, str] = _module("frames").view_names(self._schemas.of(record.schema).schema, prefix)
        read = self._reader(record)
        for key, name in names.items():
            read(key, None, None).createOrReplaceTempView(name)
        return names

    def sql(
        self,
        text: str,
        **point: Unpack[PointKeywords],
    ) -> Any:
        """Run a SQL query over types by name, at one commit, and return a DataFrame.

        Only the columns that the query needs are read, and the scan applies its conditions.

        Args:
            text: the query. An edge type with the name of a node type has the suffix `_edge`.

        Raises:
            NotFoundError: there is no such branch, commit or tag.
            InvalidRequestError: the text is not a query.
        """
        record = entry_at(self._parts, point_of(point))
        frames = _module("frames")
        names = frames.view_names(self._schemas.of(record.schema).schema)
        return frames.query_frame(self.session(), location_of(self._parts.tables), record, names, text)

    # -- writing ------------------------------------------------------------------------------------------------------

    def write(
        self,
        frames: Mapping[str, Any],
        *,
        mode: Mode | str = Mode.APPEND,
        branch: str = MAIN,
        **write: Unpack[WriteKeywords],
    ) -> LoadResult:
        """Write frames of any number of types as one commit, checked like any load.

        Args:
            frames: DataFrames by node type, else edge type, or type key. Columns are the properties, `id` for types
                without a key, and the ends of edges in `from` and `to` (or `src` and `dst`).
            mode: `append` refuses entities that exist; `merge` replaces them; `overwrite` makes the rows the whole
                content of the given types.
            branch: the branch it changes.

        Returns:
            Counts by type, and the commit.

        Raises:
            InvalidRequestError: a type or column is unknown, or a value does not fit.
            ConstraintError: a rule of the schema would be broken.
            ConflictError: an entity exists already, or others changed what the write had read.
            PreconditionError: the head is not `if_commit`.
        """
        self._parts.refuse_read_only()
        chosen = mode_named(mode, code=OPTION)
        schema = self._schemas.of(self._parts.log.live_head(branch).schema).schema
        return self._write(schema, frames, chosen, branch, write_options(write))

    @interruptible
    def _write(
        self, schema: Schema, frames: Mapping[str, Any], mode: Mode, branch: str, options: WriteOptions
    ) -> LoadResult:
        given = _module("frames").frames_to_load(schema, frames)
        session = given[0].frame.sparkSession
        return load(self._parts, self._schemas, given, LoadOptions(mode=mode, branch=branch, spark=session), options)

    def stream(
        self,
        rows: Any,
        *,
        stream_id: str,
        checkpoint: "str | Path",
        types: "str | Callable[[Any], Mapping[str, Any]] | None" = None,
        mode: Mode | str = Mode.MERGE,
        branch: str = MAIN,
        actor: str | None = None,
        available_now: bool = False,
        every: str | None = None,
        files_per_batch: int | None = None,
    ) -> Any:
        """Write a stream into a branch, one commit per batch, exactly once even if processes fail.

        Args:
            rows: a streaming DataFrame, or a folder in which files of JSON lines appear.
            stream_id: identifies the stream; use the same one after a restart.
            checkpoint: a folder for the Spark checkpoint; use the same one after a restart.
            types: the type of the rows, or a function from a batch to frames by type; None for a folder.
            mode: as in `write`.
            branch: the branch it changes.
            actor: recorded as the author of the commits.
            available_now: end when all data that is available now has been written.
            every: the interval between batches, like `10 seconds`.
            files_per_batch: the maximum number of files per batch, for a folder.

        Returns:
            A running StreamingQuery; `awaitTermination` waits for it, `stop` ends it between two batches.

        Raises:
            InvalidRequestError: `rows` is not a stream, or its type is missing.
        """
        self._parts.refuse_read_only()
        streams, frames = _module("streams"), _module("frames")
        chosen, options = mode_named(mode, code=OPTION), WriteOptions(actor=actor)

        def load_lines(batch: Any, key: str) -> None:
            load(
                self._parts,
                self._schemas,
                (FrameToLoad("the batch", batch, None),),
                LoadOptions(mode=chosen, branch=branch, spark=batch.sparkSession),
                WriteOptions(actor=options.actor, idempotency_key=key),
            )

        def write_frames(batch: Any, key: str) -> None:
            by_type = types(batch) if callable(types) else {str(types): batch}
            self.write(by_type, mode=chosen, branch=branch, actor=actor, idempotency_key=key)

        schema = self._schemas.of(self._parts.log.live_head(branch).schema).schema
        from_folder = isinstance(rows, str | Path)
        if not from_folder and types is None:
            raise InvalidRequestError("the type of the rows is missing; name it with types")
        if isinstance(types, str):
            frames.chosen_types(schema, [types])
        if from_folder and types is not None:
            raise InvalidRequestError("the lines of a folder's files name their types themselves: leave out the type")
        if not from_folder and files_per_batch is not None:
            raise InvalidRequestError("files are counted in a folder only: leave out files_per_batch")
        if from_folder:
            rows = streams.lines_of_folder(self.session(), rows, files_per_batch=files_per_batch)
        sink = load_lines if from_folder else write_frames
        return streams.run_stream(
            rows, sink, stream_id=stream_id, checkpoint=checkpoint, available_now=available_now, every=every
        )

    # -- algorithms ---------------------------------------------------------------------------------------------------

    def analytics(
        self,
        *,
        edges: Sequence[str] | None = None,
        **point: Unpack[PointKeywords],
    ) -> "Analytics":
        """Return graph algorithms over one commit.

        Args:
            edges: edge types to include; by default all. The nodes are those of the types that these edges connect.

        Returns:
            An object with one method for each algorithm.

        Raises:
            InvalidRequestError: there is no such edge type.
            NotFoundError: there is no such branch, commit or tag.
        """
        record = entry_at(self._parts, point_of(point))
        schema = self._schemas.of(record.schema).schema
        read = self._reader(record)
        subject = _module("analytics.run").subject(schema, lambda key, columns: read(key, columns, None), edges)
        return Analytics(self, subject, record)

    def _reader(self, record: Record) -> Callable[[str, Sequence[str] | None, str | None], Any]:
        session, place = self.session(), location_of(self._parts.tables)
        read_frame = _module("frames").read_frame
        return lambda key, columns, where: read_frame(session, place, record, key, columns=columns, where=where)


class Analytics:
    """Graph algorithms over one commit. Results are deterministic, on any number of machines."""

    def __init__(self, spark: GraphSpark, subject: Any, record: Record) -> None:
        self._spark = spark
        self._subject = subject
        self._record = record
        self._run = _module("analytics.run")

    def degrees(self) -> "Answers":
        """Count the edges of each node: `out_degree`, `in_degree` and `degree`."""
        return self._answers(self._run.degree_frame(self._subject))

    def pagerank(self, *, damping: float = 0.85, tolerance: float = 1e-9, rounds_max: int = 100) -> "Answers":
        """Compute the PageRank of each node.

        Args:
            damping: the probability of following an edge instead of a jump to a random node.
            tolerance: stop when no rank changes by more than this.
            rounds_max: stop after so many iterations.

        Returns:
            The rank in `value`; all ranks add up to one.
        """
        frame = self._run.pagerank_frame(self._subject, damping=damping, tolerance=tolerance, rounds_max=rounds_max)
        return self._answers(frame)

    def connected_components(self) -> "Answers":
        """Find weakly connected components: `value` is `Type:id` of the first node of the component."""
        return self._answers(self._run.component_frame(self._subject))

    def label_propagation(self, *, rounds_max: int = 10) -> "Answers":
        """Find communities: in each round every node takes the most frequent label of its neighbours.

        Args:
            rounds_max: stop after so many rounds, or when no label changes.

        Returns:
            The label in `value`: `Type:id` of a node.
        """
        return self._answers(self._run.community_frame(self._subject, rounds_max=rounds_max))

    def triangle_count(self) -> "Answers":
        """Count the triangles of each node, in `value`."""
        return self._answers(self._run.triangle_frame(self._subject))

    def k_core(self) -> "Answers":
        """Compute the core number of each node, in `value`: the greatest k for which it is in the k-core."""
        return self._answers(self._run.core_frame(self._subject))

    def shortest_paths(
        self, sources: Sequence[tuple[str, str]], *, weight: str | None = None, rounds_max: int | None = None
    ) -> "Answers":
        """Compute the distance of each node from each source, along the edges.

        Args:
            sources: type and id of each source.
            weight: the edge property with the length; by default each edge has length 1.
            rounds_max: the maximum number of edges on a path.

        Returns:
            `source_type`, `source_id` and the distance in `value`; unreachable nodes are left out.
        """
        frame = self._run.distance_frame(self._subject, list(sources), weight=weight, rounds_max=rounds_max)
        return self._answers(frame)

    def _answers(self, frame: Any) -> "Answers":
        return Answers(frame, self._spark, self._subject, self._record)


@dataclass(frozen=True, slots=True)
class Answers:
    """The results of an algorithm for each node.

    Attributes:
        frame: a DataFrame with `type`, `id` and the results.
    """

    frame: Any
    _spark: GraphSpark
    _subject: Any
    _record: Record

    def write_back(
        self, properties: "str | Mapping[str, str]", *, branch: str | None = None, actor: str | None = None
    ) -> LoadResult:
        """Write the results into properties of the nodes, as one commit.

        Args:
            properties: the property for `value`, or properties by column of the frame. Node types without them are not
                changed.
            branch: by default the branch that was read.
            actor: recorded as the author of the commit.

        Returns:
            Counts of changed nodes, and the commit.

        Raises:
            InvalidRequestError: no node type has the property.
            PreconditionError: the branch has a newer commit than the one that was read.
        """
        if not isinstance(properties, str | Mapping):
            raise InvalidRequestError(f"answers go into a property, or into properties by columns, not {properties!r}")
        named = {"value": properties} if isinstance(properties, str) else dict(properties)
        frames = _module("analytics.run").updated_rows(self._subject, self.frame, named)
        return self._spark.write(
            frames,
            mode=Mode.MERGE,
            branch=self._record.branch if branch is None else branch,
            actor=actor,
            message=f"analytics: {', '.join(named.values())}",
            if_commit=self._record.head_commit,
        )


def _module(name: str) -> Any:
    return import_module(f"omnigraph.pipeline.{name}")


def _type_key(schema: Schema, name: str) -> str:
    found = schema.entity(name) if ":" in name else schema.node(name) or schema.edge(name)
    if found is None:
        known = (entity.name for entity in schema.entities)
        raise NotFoundError(explain_unknown("there is no type", name, known), code="type_not_found", type=name)
    return found.type_key
