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
from omnigraph.branch.point import PointKeywords, point_of
from omnigraph.branch.points import entry_at
from omnigraph.errors import InvalidRequestError, NotFoundError
from omnigraph.model.commit import MAIN, Record
from omnigraph.model.schema import Schema
from omnigraph.model.suggest import explain_unknown
from omnigraph.pipeline.aside import aside
from omnigraph.pipeline.load.sources import OPTION
from omnigraph.storage.tables.place import place_of
from omnigraph.transaction.mode import Mode, mode_named
from omnigraph.transaction.options import WriteKeywords, WriteOptions, write_options
from omnigraph.transaction.parts import Parts

# ruff: noqa: ANN401  (Spark's objects, see above)


class GraphSpark:
    """Spark on a graph: `graph.spark`."""

    def __init__(self, parts: Parts, schemas: Schemas) -> None:
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
        return frames.query_frame(self.session(), place_of(self._parts.tables), record, names, text)

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
        return self._written(schema, frames, chosen, branch, write_options(write))

    @aside
    def _written(
        self, schema: Schema, frames: Mapping[str, Any], mode: Mode, branch: str, said: WriteOptions
    ) -> LoadResult:
        with _module("frames").spilled_frames(self._parts, schema, frames) as spilled:
            options = LoadOptions(mode=mode, branch=branch, format="parquet", tables=spilled.type_keys)
            return load(self._parts, self._schemas, spilled.sources, options, said)

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
        """Write a stream into a branch, a commit for each batch, every batch exactly once: whatever dies, and when.

        Args:
            rows (DataFrame | str | Path): a stream of rows; or a folder where files of JSON lines appear.
            stream_id (str): names the stream, and stays the same when it is started again.
            checkpoint (str | Path): a folder where Spark notes how far it is; it stays the same, too.
            types (str | Callable | None): of rows, the type they are of, or a function from a batch to frames by type.
            mode (Mode | str): as in `write`.
            branch (str): where.
            actor (str | None): who.
            available_now (bool): end when everything that is there now has been worked off.
            every (str | None): how often to look for more, like `10 seconds`.
            files_per_batch (int | None): of a folder, how many files a batch takes at most.

        Returns:
            StreamingQuery: running; `awaitTermination` waits for it, `stop` ends it between two batches.

        Raises:
            InvalidRequestError: the rows are no stream, or nobody said which type they are of.
        """
        self._parts.refuse_read_only()
        streams, frames = _module("streams"), _module("frames")
        chosen, said = mode_named(mode, code=OPTION), WriteOptions(actor=actor)

        def loaded(batch: Any, key: str) -> None:
            with frames.spilled_lines(self._parts, batch) as spilled:
                options = LoadOptions(mode=chosen, branch=branch, format="jsonl")
                load(
                    self._parts,
                    self._schemas,
                    spilled.sources,
                    options,
                    WriteOptions(actor=said.actor, idempotency_key=key),
                )

        def written(batch: Any, key: str) -> None:
            by_type = types(batch) if callable(types) else {str(types): batch}
            self.write(by_type, mode=chosen, branch=branch, actor=actor, idempotency_key=key)

        schema = self._schemas.of(self._parts.log.live_head(branch).schema).schema
        from_folder = isinstance(rows, str | Path)
        if not from_folder and types is None:
            raise InvalidRequestError("say of which type the rows of the stream are")
        if isinstance(types, str):
            frames.chosen_types(schema, [types])
        if from_folder and types is not None:
            raise InvalidRequestError("the lines of a folder's files name their types themselves: leave out the type")
        if not from_folder and files_per_batch is not None:
            raise InvalidRequestError("files are counted in a folder only: leave out files_per_batch")
        if from_folder:
            rows = streams.lines_of_folder(self.session(), rows, files_per_batch=files_per_batch)
        sink = loaded if from_folder else written
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
        """Algorithms over one commit.

        Args:
            edges (Sequence[str] | None): the edge types that count; all by default. The nodes that count are those of
                the types that these edges leave or reach.

        Returns:
            Analytics: one method for each algorithm.

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
        session, place = self.session(), place_of(self._parts.tables)
        read_frame = _module("frames").read_frame
        return lambda key, columns, where: read_frame(session, place, record, key, columns=columns, where=where)


class Analytics:
    """Algorithms over one commit. The same commit has the same answers, every time and on any number of machines."""

    def __init__(self, spark: GraphSpark, subject: Any, record: Record) -> None:
        self._spark = spark
        self._subject = subject
        self._record = record
        self._run = _module("analytics.run")

    def degrees(self) -> "Answers":
        """How many edges leave and reach each node: `out_degree`, `in_degree` and `degree`."""
        return self._answers(self._run.degree_frame(self._subject))

    def pagerank(self, *, damping: float = 0.85, tolerance: float = 1e-9, rounds_max: int = 100) -> "Answers":
        """How often a walker who follows edges, and now and then starts over anywhere, is at each node.

        Args:
            damping (float): how likely the walker goes on along an edge.
            tolerance (float): it is done when no rank moves by more than this.
            rounds_max (int): or after so many rounds.

        Returns:
            Answers: `value`; all of them add up to one.
        """
        frame = self._run.pagerank_frame(self._subject, damping=damping, tolerance=tolerance, rounds_max=rounds_max)
        return self._answers(frame)

    def connected_components(self) -> "Answers":
        """Which nodes hang together, whatever the direction of edges: `value` is `Type:id` of the first of them."""
        return self._answers(self._run.component_frame(self._subject))

    def label_propagation(self, *, rounds_max: int = 10) -> "Answers":
        """Communities: in each round every node takes the label that most of its neighbours have.

        Args:
            rounds_max (int): how many rounds, unless nothing moves before.

        Returns:
            Answers: `value` is the label, `Type:id` of some node.
        """
        return self._answers(self._run.community_frame(self._subject, rounds_max=rounds_max))

    def triangle_count(self) -> "Answers":
        """How many triangles each node is a corner of, in `value`."""
        return self._answers(self._run.triangle_frame(self._subject))

    def k_core(self) -> "Answers":
        """The greatest k for which each node is in the k-core, in `value`."""
        return self._answers(self._run.core_frame(self._subject))

    def shortest_paths(
        self, sources: Sequence[tuple[str, str]], *, weight: str | None = None, rounds_max: int | None = None
    ) -> "Answers":
        """How far each node is from each of a few, along the edges.

        Args:
            sources (Sequence[tuple[str, str]]): type and id of each.
            weight (str | None): the property of edges that is their length; each has the length 1 by default.
            rounds_max (int | None): at most so many edges on a path.

        Returns:
            Answers: `source_type`, `source_id` and `value`; nodes that are not reached are not there.
        """
        frame = self._run.distance_frame(self._subject, list(sources), weight=weight, rounds_max=rounds_max)
        return self._answers(frame)

    def _answers(self, frame: Any) -> "Answers":
        return Answers(frame, self._spark, self._subject, self._record)


@dataclass(frozen=True, slots=True)
class Answers:
    """What an algorithm says about each node.

    Attributes:
        frame: a DataFrame with `type`, `id` and the answers.
    """

    frame: Any
    _spark: GraphSpark
    _subject: Any
    _record: Record

    def write_back(
        self, properties: "str | Mapping[str, str]", *, branch: str | None = None, actor: str | None = None
    ) -> LoadResult:
        """Write the answers into properties of the nodes, as one commit.

        Args:
            properties (str | Mapping[str, str]): the property for `value`, or properties by columns of the frame. Node
                types that do not have them are left alone.
            branch (str | None): where; by default the branch that was looked at.
            actor (str | None): who.

        Returns:
            LoadResult: how many nodes changed, and the commit.

        Raises:
            InvalidRequestError: no node type has the property.
            PreconditionError: the branch has moved on since: the answers are about another state.
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
        known = (each.name for each in schema.entities)
        raise NotFoundError(explain_unknown("there is no type", name, known), code="type_not_found", type=name)
    return found.type_key
