"""A load on Spark: workers parse, check and write rows; the driver makes one commit of them.

    read      one task per piece of a file, or per partition of a frame: parse, check, write fragments
    validate  joins of the keys of the new rows with each other and with the snapshot; runs again if others commit first
    stage     one version per type, of the fragments that were written
    publish   one entry

Nothing of it is visible before the last step. An intent is on the store before the first fragment, so that no sweep
deletes what is being written, and a later process knows that a load was running.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np
from pyspark.sql import SparkSession

from omnigraph import limits
from omnigraph.errors import InvalidRequestError
from omnigraph.failpoints import Failpoint, reached
from omnigraph.model.commit import CommitKind, Pin
from omnigraph.model.intent import Intent
from omnigraph.pipeline.columns import arrow_schema, table_columns
from omnigraph.pipeline.interruptible import raise_if_cancelled
from omnigraph.pipeline.load.blocks import pieces_of
from omnigraph.pipeline.load.jobs import Jobs, fault_of
from omnigraph.pipeline.load.local import LocalLoad
from omnigraph.pipeline.load.pieces import Pieces
from omnigraph.pipeline.load.reading import Reading
from omnigraph.pipeline.load.request import Loaded, LoadRequest, operation, refuse_or_keep
from omnigraph.pipeline.load.sources import OPTION, Format, Source
from omnigraph.pipeline.load.tabular import Columns
from omnigraph.pipeline.load.tasks import PieceResult, Places, Work, read_frame, read_lines, read_pieces, results_in
from omnigraph.pipeline.load.validator import LoadValidator, Validated
from omnigraph.pipeline.session import is_session, is_stopped, spark_session
from omnigraph.pipeline.settings import SparkSettings
from omnigraph.storage.layout import table_schema
from omnigraph.storage.object_store import StoreError
from omnigraph.storage.tables.addresses import NO_ADDRESSES
from omnigraph.storage.tables.distributed_write import FilesToStage, stage_files
from omnigraph.storage.tables.location import location_of
from omnigraph.storage.tables.tables import StagedVersion
from omnigraph.transaction.accepted import Accepted, refuse_other_schema
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.intent import NotedWrite
from omnigraph.transaction.liveness import this_writer
from omnigraph.transaction.mode import Mode
from omnigraph.transaction.write import Operation
from omnigraph.transaction.write_set import WriteSet

_NO_PLACES: Places = np.empty(0, np.int64)
_PIECES = 8  # of a load that is smaller than so many of the usual size


@contextmanager
def spark_load(
    parts: GraphContext,
    accepted: Accepted,
    request: LoadRequest,
    reading: Reading,
    *,
    branch: str,
    actor: str | None,
    writes: bool,
    spark: object,
) -> Iterator["SparkLoad | LocalLoad"]:
    """Read the input of a load on Spark, to be published within the block.

    Args:
        branch: the branch whose state the load starts from.
        writes: False for a dry run.
        spark: a session, or settings for one.

    Yields:
        SparkLoad | LocalLoad: its operation may run any number of times.

    Raises:
        GraphError: a record cannot be loaded, and records may not be rejected.
        UnavailableError: Spark failed; nothing was written that anybody sees.
    """
    session = _session(spark)
    if not request.frames and request.bytes <= limits.LOAD_NEAR_BYTES:
        # A load that takes a fraction of a second needs no cluster.
        yield LocalLoad(accepted, request, reading)
        return
    if not writes:
        started = SparkLoad(parts, accepted, request, reading, branch=branch, session=session, noted=None)
        started.read()
        yield started
        return
    head = parts.log.live_head(branch)
    intent = Intent(
        id=parts.ids.new(),
        kind=CommitKind.LOAD,
        branch=branch,
        base_number=head.number,
        base_commit=head.commit,
        actor=actor,
        writer=this_writer(),
        tables=dict(head.tables),
        created_at_us=parts.clock.now_us(),
    )
    with parts.intents.noted(intent) as noted:
        reached(Failpoint.LOAD_NOTED)
        started = SparkLoad(parts, accepted, request, reading, branch=branch, session=session, noted=noted)
        try:
            started.read()
            yield started
        except (Exception, KeyboardInterrupt):
            started.delete_files()
            started.clear_note()
            raise
        started.clear_note()


def _session(spark: object) -> SparkSession:
    if is_session(spark):
        session: SparkSession = spark  # type: ignore[assignment]  # a session of Spark Connect is of another class
        if is_stopped(session):
            raise InvalidRequestError("the Spark session given was stopped: give one that runs, or none", code=OPTION)
        return session
    if spark is not None and not isinstance(spark, SparkSettings):
        raise InvalidRequestError(
            f"a load runs on a Spark session, or on one made with SparkSettings; a {type(spark).__name__} is neither",
            code=OPTION,
        )
    return spark_session(spark)


class SparkLoad:
    """One load on Spark."""

    def __init__(
        self,
        parts: GraphContext,
        accepted: Accepted,
        request: LoadRequest,
        reading: Reading,
        *,
        branch: str,
        session: SparkSession,
        noted: NotedWrite | None,
    ) -> None:
        self.loaded = Loaded()
        self._parts = parts
        self._accepted = accepted
        self._request = request
        self._noted = noted
        self._cleared = noted is None
        head = parts.log.live_head(branch)
        self._work = Work(
            reading=reading,
            place=location_of(parts.tables),
            pins={} if noted is None else dict(head.tables),
            keeps_rejects=request.keeps_rejects,
        )
        self._jobs = Jobs(session, request, parts.ids)
        self._pieces = Pieces()
        self._handed_over = False

    # -- reading ------------------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Parse and write all rows.

        Raises:
            GraphError: a record cannot be loaded, and records may not be rejected.
        """
        if self._request.frames:
            self._read_frames()
        else:
            size = min(limits.LOAD_PIECE_BYTES, max(limits.LOAD_PIECE_BYTES_MIN, self._request.bytes // _PIECES))
            pieces = pieces_of(self._request.sources, piece_bytes=size)
            results = results_in(self._jobs.run("reading", read_pieces(self._jobs.session, pieces, self._work)))
            self._pieces = Pieces(pieces, results)
        reached(Failpoint.LOAD_READ)
        for result in self._pieces.results:
            if result.fault is not None:
                raise fault_of(result.fault.message) or result.fault
        refuse_or_keep(self._request, self._pieces.problems)

    def _read_frames(self) -> None:
        """Write the rows of frames as fragments; each partition with rows is a source of its own."""
        results: list[PieceResult] = []
        sources: list[Source] = []
        self._pieces = Pieces(results=results, is_frames=True)
        for number, given in enumerate(self._request.frames):
            entity = None if given.type_key is None else self._accepted.schema.entity(given.type_key)
            if entity is None:
                frame, format = read_lines(given.frame, self._work), Format.JSONL
            else:
                types = table_columns(arrow_schema(given.frame.schema), table_schema(entity))
                frame = read_frame(given.frame, number, Columns(entity, {}), self._work, types=types, name=given.name)
                format = Format.PARQUET
            for result in results_in(self._jobs.run("reading", frame)):
                name = f"{given.name}, partition {result.piece}"
                result.piece = len(results)
                results.append(result)
                sources.append(Source(len(sources), name, "", 0, format, is_frame=True))
        self._request = replace(self._request, sources=tuple(sources))

    @property
    def type_keys(self) -> frozenset[str]:
        """The types there are records of."""
        return self._pieces.type_keys | frozenset(self._request.named_types)

    @property
    def operation(self) -> Operation:
        """The write."""
        made = operation(self._request, self.type_keys, self.run, noted=True)
        if self._noted is None:
            return made
        # The intent of the write is put after the files: it protects them from then on, if that of this load stands.
        return replace(made, recheck_after_intent=self._noted.check_stands, since_us=self._noted.put_at_us())

    # -- validating and staging ---------------------------------------------------------------------------------------

    def run(self, staging: WriteSet) -> None:
        """Validate the rows against a snapshot, and put them into a write; may run again on a newer one.

        Raises:
            GraphError: a record breaks a rule, and records may not be rejected.
        """
        refuse_other_schema(self._accepted, staging)
        replaced = self.type_keys if self._request.mode is Mode.OVERWRITE else frozenset()
        problems = list(self._pieces.problems)
        validator = LoadValidator(self._request, self._work, self._jobs, self._pieces)
        found = validator.validate(staging.snapshot, replaced, problems)
        reached(Failpoint.LOAD_JUDGED)
        raise_if_cancelled()  # the last moment at which nothing has to be taken back
        self.loaded.rejects = refuse_or_keep(self._request, problems) if problems else ()
        self.loaded.counts = {
            key: self._pieces.rows(key) - len(found.rejected.get(key, ())) for key in sorted(self.type_keys)
        }
        for key in sorted(self.type_keys):
            files = self._files(key, found, replaces=key in replaced)
            staging.read_whole(key)
            staging.change_table(key, partial(self._staged, files=files), keeps_content=False)
            for end in self._accepted.rules.types[key].ends:
                staging.read_whole(end.node_key)
        for key in replaced:
            for end in self._accepted.rules.arrivals.get(key, ()):
                staging.read_whole(end.type_key)

    def _files(self, key: str, found: Validated, *, replaces: bool) -> FilesToStage:
        skipped = [found.rejected.get(key, _NO_PLACES), found.superseded.get(key, _NO_PLACES)]
        added, dropped = self._pieces.without(key, np.concatenate(skipped))
        return FilesToStage(
            added=added,
            dropped=dropped,
            removed=found.removed.get(key, NO_ADDRESSES),
            replaces=replaces,
            updated_ids=found.updated.get(key, ()),
            deleted_ids=found.deleted.get(key, ()),
            ids_max=limits.LOAD_CHANGED_IDS_MAX,
        )

    def _staged(self, base: Pin, *, files: FilesToStage) -> StagedVersion:
        # What becomes of the files is the write's to decide from here on. The note stays: a write that lost a race
        # takes its own intent back before it tries again, and meanwhile nothing else would keep a sweep away from them.
        self._handed_over = True
        return stage_files(self._parts.tables, base, files)

    # -- ending -------------------------------------------------------------------------------------------------------

    def clear_note(self) -> None:
        """Delete the intent of this load: it is in the log, or will never be."""
        if not self._cleared and self._noted is not None:
            self._cleared = True
            try:
                self._noted.clear()
            except StoreError:
                self._cleared = False

    def delete_files(self) -> None:
        """Delete files that were written, as far as they are known; the rest is found by the next sweep.

        Files that were handed over to the write stay: they may be in the log by now.
        """
        if self._handed_over:
            return
        for result in self._pieces.results:
            for key, files in result.files.items():
                for file in files:
                    try:
                        self._parts.table_files.delete(f"{self._work.pins[key].table}/{file.path}")
                    except StoreError:
                        return
