"""A load on Spark: workers read, check and write; the driver sees to it that all of it becomes one commit.

    read      one task per piece of the files: parse, check, write rows apart, send off what must be compared
    judge     one task per share of the keys, against the rows that are there: this alone runs again when others wrote
    stage     one version per type, of the files that were written
    publish   one entry

Nothing of it is visible before the last step. An intent is on the store from the first file on, so that no sweep takes
what is being written, and whoever finds it later knows that a load was under way.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import SparkSession

from omnigraph import limits
from omnigraph.errors import InvalidRequestError
from omnigraph.failpoints import Failpoint, reached
from omnigraph.model.commit import CommitKind, Pin
from omnigraph.model.intent import Intent
from omnigraph.pipeline.aside import go_on
from omnigraph.pipeline.load.blocks import Piece, pieces_of
from omnigraph.pipeline.load.jobs import Jobs, Kept, fault_of
from omnigraph.pipeline.load.judging import Verdict
from omnigraph.pipeline.load.keys import Places, piece_and_row
from omnigraph.pipeline.load.reading import Reading
from omnigraph.pipeline.load.request import Loaded, LoadRequest, operation, refuse_or_keep
from omnigraph.pipeline.load.rounds import Rounds, is_key
from omnigraph.pipeline.load.sources import OPTION
from omnigraph.pipeline.load.tasks import (
    RESULT,
    PieceResult,
    Sent,
    Work,
    read_piece,
)
from omnigraph.pipeline.session import spark_session
from omnigraph.pipeline.settings import SparkSettings
from omnigraph.storage.id_column import IdColumn
from omnigraph.storage.object_store import StoreError
from omnigraph.storage.tables.distributed_write import FilesToStage, WrittenFile, stage_files
from omnigraph.storage.tables.location import location_of
from omnigraph.storage.tables.tables import StagedVersion
from omnigraph.transaction.accepted import Accepted, refuse_other_schema
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.intent import NotedWrite
from omnigraph.transaction.liveness import this_writer
from omnigraph.transaction.mode import Mode
from omnigraph.transaction.write import Operation
from omnigraph.transaction.write_set import WriteSet

_NO_PLACES: Places = np.empty(0, np.uint64)


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
) -> Iterator["SparkLoad"]:
    """Read the files of a load on Spark; what they hold is to be published within the block.

    Args:
        accepted (Accepted): the schema.
        request (LoadRequest): what to load.
        reading (Reading): how the files are read.
        branch (str): the branch whose state the load starts from.
        actor (str | None): who.
        writes (bool): False where nothing is to be written.
        spark (object): a session, or settings for one.

    Yields:
        SparkLoad: the files read; its operation may run any number of times.

    Raises:
        GraphError: a record cannot be loaded, and nothing may be put aside.
        UnavailableError: Spark failed; nothing was written that anybody sees.
    """
    session = _session(spark)
    if not writes:
        begun = SparkLoad(parts, accepted, request, reading, branch=branch, session=session, noted=None)
        with closing(begun):
            begun.read()
            yield begun
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
        begun = SparkLoad(parts, accepted, request, reading, branch=branch, session=session, noted=noted)
        try:
            with closing(begun):
                begun.read()
                yield begun
        except (Exception, KeyboardInterrupt):
            begun.forget_files()
            begun.clear_note()
            raise
        begun.clear_note()


def _session(spark: object) -> SparkSession:
    if isinstance(spark, SparkSession):
        if spark.sparkContext._jsc is None:
            raise InvalidRequestError("the Spark session given was stopped: give one that runs, or none", code=OPTION)
        return spark
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
        context = session.sparkContext
        cores = max(context.defaultParallelism, 1)
        total = request.bytes
        piece_bytes = min(limits.LOAD_PIECE_BYTES, max(limits.LOAD_PIECE_BYTES_MIN, total // (2 * cores)))
        self._pieces = pieces_of(request.sources, piece_bytes=piece_bytes)
        head = parts.log.live_head(branch)
        self._work = Work(
            reading=reading,
            place=location_of(parts.tables),
            pins={} if noted is None else dict(head.tables),
            shares=max(cores, -(-total // limits.LOAD_SHARE_BYTES)),
            each=request.keeps_rejects,
            merges=request.mode is Mode.MERGE,
        )
        self._jobs = Jobs(context, request, parts.ids)
        self._told = context.accumulator(0)
        pieces = context.parallelize(self._pieces, max(len(self._pieces), 1))
        self._sent = pieces.flatMap(partial(_read, work=self._work, told=self._told)).persist(StorageLevel.DISK_ONLY)
        self._rounds = Rounds(request, self._work, self._jobs, self._pieces, sent=self._sent)
        self._results: list[PieceResult] = []
        self._handed_over = False

    # -- reading ------------------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Read all files.

        Raises:
            GraphError: a record cannot be loaded, and nothing may be put aside.
        """
        # Of a small load the keys come along: judging them here is quicker than sending them off.
        near = self._request.bytes <= limits.LOAD_NEAR_BYTES
        told = self._told
        self._jobs.run("reading", Kept(self._sent), rows=lambda: int(told.value))
        came = self._jobs.run("gathering", self._sent if near else self._sent.filter(_is_result))
        self._rounds.near = [each for each in came if is_key(each)] if near else None
        self._results = sorted((result for share, result in came if share == RESULT), key=lambda each: each.piece)
        reached(Failpoint.LOAD_READ)
        for each in self._results:
            if each.fault is not None:
                raise fault_of(each.fault.message) or each.fault
        self._rounds.type_keys = self.type_keys
        self._problems = [problem for each in self._results for problem in each.problems]
        refuse_or_keep(self._request, self._problems)

    def close(self) -> None:
        """Let Spark forget what was sent off."""
        self._sent.unpersist()

    @property
    def type_keys(self) -> frozenset[str]:
        """The types there are records of."""
        return frozenset((*self._request.named_types, *(key for each in self._results for key in each.rows)))

    @property
    def operation(self) -> Operation:
        """The write."""
        made = operation(self._request, self.type_keys, self.run, noted=True)
        if self._noted is None:
            return made
        # The intent of the write is put after the files: it protects them from then on, if that of this load stands.
        return replace(made, recheck_after_intent=self._noted.check_stands, since_us=self._noted.put_at_us())

    # -- judging ------------------------------------------------------------------------------------------------------

    def run(self, staging: WriteSet) -> None:
        """Judge the rows against a snapshot, and put them into a write; may run again on a newer one.

        Args:
            staging (WriteSet): the write.

        Raises:
            GraphError: a record breaks a rule, and nothing may be put aside.
        """
        refuse_other_schema(self._accepted, staging)
        replaced = self.type_keys if self._request.mode is Mode.OVERWRITE else frozenset()
        problems = list(self._problems)
        verdict, dropped = self._rounds.judged(staging.snapshot, replaced, problems)
        reached(Failpoint.LOAD_JUDGED)
        go_on()  # the last moment at which nothing has to be taken back
        self.loaded.rejects = refuse_or_keep(self._request, problems) if problems else ()
        self.loaded.counts = {key: self._rows(key) - len(dropped.get(key, ())) for key in sorted(self.type_keys)}
        for key in sorted(self.type_keys):
            superseded = np.concatenate([_NO_PLACES, *verdict.superseded.get(key, [])])
            files = self._files(key, np.concatenate([dropped.get(key, _NO_PLACES), superseded]), verdict, replaced)
            staging.read_whole(key)
            staging.change_table(key, partial(self._staged, files=files), keeps_content=False)
            for end in self._accepted.rules.types[key].ends:
                staging.read_whole(end.node_key)
        for key in replaced:
            for end in self._accepted.rules.arrivals.get(key, ()):
                staging.read_whole(end.type_key)

    # -- staging ------------------------------------------------------------------------------------------------------

    def _rows(self, key: str) -> int:
        return sum(each.rows.get(key, 0) for each in self._results)

    def _files(self, key: str, dropped: Places, verdict: Verdict, replaced: frozenset[str]) -> FilesToStage:
        added: list[WrittenFile] = []
        short: dict[int, Any] = {}
        by_piece: dict[int, list[int]] = {}
        for each in np.unique(dropped).tolist():
            piece, row = piece_and_row(each)
            by_piece.setdefault(piece, []).append(row)
        for result in self._results:
            rows = np.array(by_piece.get(result.piece, []), np.int64)
            first = 0
            for file in result.files.get(key, ()):
                mine = rows[(rows >= first) & (rows < first + file.rows)] - first
                if len(mine):
                    short[len(added)] = mine.astype(np.uint64)
                added.append(file)
                first += file.rows
        return FilesToStage(
            added=tuple(added),
            dropped=short,
            removed=np.concatenate([_NO_PLACES, *verdict.removed.get(key, [])]),
            replaces=key in replaced,
            updated_ids=_ids(verdict.updated.get(key, [])),
            deleted_ids=_ids(verdict.deleted.get(key, [])),
            ids_max=limits.LOAD_CHANGED_IDS_MAX,
        )

    def _staged(self, base: Pin, *, files: FilesToStage) -> StagedVersion:
        # What becomes of the files is the write's to decide from here on. The note stays: a write that lost a race
        # takes its own intent back before it tries again, and meanwhile nothing else would keep a sweep away from them.
        self._handed_over = True
        return stage_files(self._parts.tables, base, files)

    # -- ending -------------------------------------------------------------------------------------------------------

    def clear_note(self) -> None:
        """Take the note of this load away: it is in the log, or will never be."""
        if not self._cleared and self._noted is not None:
            self._cleared = True
            try:
                self._noted.clear()
            except StoreError:
                self._cleared = False

    def forget_files(self) -> None:
        """Delete what was written, as far as it is known; the rest is found by the next sweep.

        What was handed over to the write is not touched: it may be in the log by now, be it unknown to us.
        """
        if self._handed_over:
            return
        pins = self._work.pins
        for result in self._results:
            for key, files in result.files.items():
                for file in files:
                    try:
                        self._parts.table_files.delete(f"{pins[key].table}/{file.path}")
                    except StoreError:
                        return


def _read(piece: Piece, *, work: Work, told: Any) -> Iterator[Sent]:  # noqa: ANN401  (Spark's counter)
    return read_piece(piece, work, told)


def _is_result(sent: Sent) -> bool:
    return sent[0] == RESULT


def _ids(parts: list[Any]) -> IdColumn:
    return IdColumn(pa.chunked_array([each for each in parts if len(each)], pa.string()))
