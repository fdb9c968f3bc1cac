"""A load on Spark: workers read, check and write; the driver sees to it that all of it becomes one commit.

    read      one task per piece of the files: parse, check, write rows apart, send off what must be compared
    judge     one task per share of the keys, against the rows that are there: this alone runs again when others wrote
    stage     one version per type, of the files that were written
    publish   one entry

Nothing of it is visible before the last step. An intent is on the store from the first file on, so that no sweep takes
what is being written, and whoever finds it later knows that a load was under way.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import RDD, SparkContext, StorageLevel
from pyspark.sql import SparkSession

from omnigraph import limits
from omnigraph.errors import ConstraintError, GraphError, InternalError, LimitError, UnavailableError
from omnigraph.failpoints import Failpoint, reached
from omnigraph.model.commit import CommitKind, Pin
from omnigraph.model.intent import Intent
from omnigraph.pipeline.load.blocks import Piece, pieces_of
from omnigraph.pipeline.load.breaches import repeated, shared, there_already
from omnigraph.pipeline.load.judging import NOWHERE, Finding, Judging, Verdict
from omnigraph.pipeline.load.keys import Channel, Places, Sort, piece_and_row, place
from omnigraph.pipeline.load.problems import Phase, Problem
from omnigraph.pipeline.load.reading import Reading
from omnigraph.pipeline.load.request import Loaded, LoadProgress, LoadRequest, operation, refuse_or_keep
from omnigraph.pipeline.load.tasks import (
    RESULT,
    Look,
    PieceResult,
    Sent,
    Whereabouts,
    Work,
    find_rows,
    judge_share,
    look_through,
    read_piece,
)
from omnigraph.pipeline.load.watching import watched
from omnigraph.pipeline.session import spark_session
from omnigraph.pipeline.settings import SparkSettings
from omnigraph.storage.id_column import IdColumn
from omnigraph.storage.object_store import StoreError
from omnigraph.storage.tables.apart import FilesToStage, WrittenFile, stage_apart
from omnigraph.storage.tables.fragments import fragment_groups
from omnigraph.storage.tables.place import place_of
from omnigraph.storage.tables.tables import StagedTable
from omnigraph.transaction.accepted import Accepted, refuse_other_schema
from omnigraph.transaction.intent import NotedWrite, this_writer
from omnigraph.transaction.parts import Parts
from omnigraph.transaction.snapshot import Snapshot
from omnigraph.transaction.staging import Staging
from omnigraph.transaction.write import Operation
from omnigraph.transaction.write_rows import Mode

_ALL = (Phase.IDENTITY, Phase.UNIQUE, Phase.END, Phase.DEGREE)
_NO_PLACES: Places = np.empty(0, np.uint64)
_FULL = ("No space left on device", "os error 28", "Disk quota exceeded", "File too large")
_PYTHON_ERROR = re.compile(r"[A-Za-z_.]*(Error|Exception|Interrupt|Exit)\b.*")


@contextmanager
def spark_load(
    parts: Parts,
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
        parts (Parts): of the graph.
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
        with begun:
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
            with begun:
                yield begun
        except (Exception, KeyboardInterrupt):
            begun.forget_files()
            begun.clear_note()
            raise
        begun.clear_note()


def _session(spark: object) -> SparkSession:
    if isinstance(spark, SparkSession):
        return spark
    if spark is not None and not isinstance(spark, SparkSettings):
        raise InternalError(f"neither a Spark session nor settings for one: {type(spark).__name__}")
    return spark_session(spark)


class SparkLoad:
    """One load on Spark."""

    def __init__(
        self,
        parts: Parts,
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
        self._context: SparkContext = session.sparkContext
        cores = max(self._context.defaultParallelism, 1)
        total = request.bytes
        piece_bytes = min(limits.LOAD_PIECE_BYTES, max(limits.LOAD_PIECE_BYTES_MIN, total // (2 * cores)))
        self._pieces = pieces_of(request.sources, piece_bytes=piece_bytes)
        head = parts.log.live_head(branch)
        self._work = Work(
            reading=reading,
            place=place_of(parts.tables),
            pins={} if noted is None else dict(head.tables),
            shares=max(cores, -(-total // limits.LOAD_SHARE_BYTES)),
            each=request.keeps_rejects,
        )
        self._sent: RDD[Any] | None = None
        self._near: list[Sent] | None = None
        self._results: list[PieceResult] = []
        self._handed_over = False

    # -- reading ------------------------------------------------------------------------------------------------------

    def __enter__(self) -> "SparkLoad":
        """Read all files."""
        told = self._context.accumulator(0)
        sent = self._context.parallelize(self._pieces, max(len(self._pieces), 1)).flatMap(
            partial(_read, work=self._work, told=told)
        )
        self._sent = sent.persist(StorageLevel.DISK_ONLY)
        # Of a small load the keys come along: judging them here is quicker than sending them off.
        near = self._request.bytes <= limits.LOAD_NEAR_BYTES
        came = self._job("reading", self._sent if near else self._sent.filter(_is_result), rows=lambda: int(told.value))
        self._near = [each for each in came if _is_key(each)] if near else None
        self._results = sorted((result for share, result in came if share == RESULT), key=lambda each: each.piece)
        reached(Failpoint.LOAD_READ)
        for each in self._results:
            if each.fault is not None:
                raise fault_of(each.fault.message) or each.fault
        self._problems = [problem for each in self._results for problem in each.problems]
        self._rejects = refuse_or_keep(self._request, self._problems)
        return self

    def __exit__(self, *_: object) -> None:
        """Let Spark forget what was sent off."""
        if self._sent is not None:
            self._sent.unpersist()

    @property
    def type_keys(self) -> frozenset[str]:
        """The types there are records of."""
        return frozenset((*self._request.named_types, *(key for each in self._results for key in each.rows)))

    @property
    def operation(self) -> Operation:
        """The write."""
        return operation(self._request, self.type_keys, self.run, noted=True)

    # -- judging ------------------------------------------------------------------------------------------------------

    def run(self, staging: Staging) -> None:
        """Judge the rows against a snapshot, and put them into a write; may run again on a newer one.

        Args:
            staging (Staging): the write.

        Raises:
            GraphError: a record breaks a rule, and nothing may be put aside.
        """
        refuse_other_schema(self._accepted, staging)
        replaced = self.type_keys if self._request.mode is Mode.OVERWRITE else frozenset()
        problems = list(self._problems)
        verdict, dropped = self._judged(staging.snapshot, replaced, problems)
        reached(Failpoint.LOAD_JUDGED)
        self.loaded.rejects = refuse_or_keep(self._request, problems) if problems else ()
        self.loaded.counts = {key: self._rows(key) - len(dropped.get(key, ())) for key in sorted(self.type_keys)}
        for key in sorted(self.type_keys):
            superseded = np.concatenate([_NO_PLACES, *verdict.superseded.get(key, [])])
            files = self._files(key, np.concatenate([dropped.get(key, _NO_PLACES), superseded]), verdict, replaced)
            staging.read_whole(key)
            staging.rework(key, partial(self._staged, files=files), keeps_content=False)
            for end in self._accepted.rules.types[key].ends:
                staging.read_whole(end.node_key)
        for key in replaced:
            for end in self._accepted.rules.arrivals.get(key, ()):
                staging.read_whole(end.type_key)

    def _judged(
        self, snapshot: Snapshot, replaced: frozenset[str], problems: list[Problem]
    ) -> tuple[Verdict, dict[str, Places]]:
        """What the rows do to what is there, and which of them do not count."""
        dropped: dict[str, Places] = {}
        while True:
            before = sum(len(each) for each in dropped.values())
            whole = Verdict()
            for phases in self._rounds():
                hidden = dict(dropped)
                for key, some in whole.superseded.items():
                    hidden[key] = np.sort(np.concatenate([hidden.get(key, _NO_PLACES), *some]))
                judging = Judging(self._accepted.rules, self._request.mode, replaced, hidden, self._work.each)
                found = self._round(snapshot, judging, phases, whole.removed)
                whole.add(found)
                self._put_aside(found.findings, dropped, problems)
            # A row that was put aside replaces nothing: what it would have replaced is there, and counts.
            if sum(len(each) for each in dropped.values()) == before:
                return whole, dropped

    def _put_aside(self, findings: list[Finding], dropped: dict[str, Places], problems: list[Problem]) -> None:
        if not findings:
            return
        told = self._told(findings)
        problems += [problem for _, problem in told]
        refuse_or_keep(self._request, problems)
        for key in {finding.type_key for finding, _ in told}:
            mine = np.array([each.place for each, _ in told if each.type_key == key], np.uint64)
            dropped[key] = np.unique(np.concatenate([dropped.get(key, _NO_PLACES), mine]))

    def _rounds(self) -> Iterator[frozenset[Phase]]:
        """Which rules are looked at together: what one round takes away, later ones must know."""
        if self._work.each:
            yield from (frozenset({phase}) for phase in _ALL)
        elif self._request.mode is Mode.MERGE and self._has_rules_about_what_stays():
            yield frozenset({Phase.IDENTITY})
            yield frozenset(_ALL[1:])
        else:
            yield frozenset(_ALL)

    def _has_rules_about_what_stays(self) -> bool:
        rules = self._accepted.rules.types
        return any(rules[key].distinct or rules[key].degree is not None for key in self.type_keys)

    def _round(
        self, snapshot: Snapshot, judging: Judging, phases: frozenset[Phase], removed: Mapping[str, list[Places]]
    ) -> Verdict:
        if self._sent is None:
            raise InternalError("nothing was read")
        looks = list(self._looks(snapshot, judging, phases, removed))
        if self._near is not None and sum(look.rows for look in looks) <= limits.LOAD_LOOK_ROWS:
            return self._judged_here(self._near, looks, judging, phases)
        sent = self._sent.filter(_is_key)
        if looks:
            there = self._context.parallelize(looks, len(looks)).flatMap(
                partial(look_through, place=self._work.place, shares=self._work.shares)
            )
            sent = self._context.union([sent, there])
        shares = sent.partitionBy(self._work.shares, _share).mapPartitions(
            partial(judge_share, judging=judging, phases=phases)
        )
        whole = Verdict()
        for verdict in self._job("judging", shares):
            whole.add(verdict)
        return whole

    def _judged_here(self, sent: list[Sent], looks: list[Look], judging: Judging, phases: frozenset[Phase]) -> Verdict:
        """What the workers would do, for few rows."""
        there = (each for look in looks for each in look_through(look, self._work.place, self._work.shares))
        shares: dict[int, list[Sent]] = {}
        for each in chain(sent, there):
            shares.setdefault(each[0], []).append(each)
        whole = Verdict()
        for share in shares.values():
            for verdict in judge_share(share, judging, phases):
                whole.add(verdict)
        return whole

    def _looks(
        self, snapshot: Snapshot, judging: Judging, phases: frozenset[Phase], removed: Mapping[str, list[Places]]
    ) -> Iterator[Look]:
        """The parts of tables that must be looked through."""
        for key, channels in self._wanted_of_base(judging, phases).items():
            pin = snapshot.record.tables[key]
            if not channels or not pin.rows:
                continue
            gone = np.sort(np.concatenate([_NO_PLACES, *removed.get(key, [])]))
            for group in fragment_groups(snapshot.table(key), rows=limits.LOAD_LOOK_ROWS):
                yield Look(
                    pin,
                    pin.rows,
                    group,
                    self._accepted.rules.types[key],
                    tuple(sorted(channels)),
                    gone,
                    key in judging.replaced,
                )

    def _wanted_of_base(self, judging: Judging, phases: frozenset[Phase]) -> dict[str, set[Channel]]:
        rules = self._accepted.rules.types
        wanted: dict[str, set[Channel]] = {key: set() for key in rules}
        for key in self.type_keys:
            mine = rules[key]
            if Phase.IDENTITY in phases:
                wanted[key].add(Channel(Sort.BASE, key))
            if Phase.UNIQUE in phases and key not in judging.replaced:
                wanted[key] |= {Channel(Sort.HELD, key, number) for number, _ in enumerate(mine.distinct)}
            if Phase.END in phases:
                for end in mine.ends:
                    if end.node_key not in judging.replaced:
                        wanted[end.node_key].add(Channel(Sort.BASE, end.node_key))
            if Phase.DEGREE in phases and mine.degree is not None:
                wanted[key] |= {Channel(Sort.KEPT, key), Channel(Sort.LOST, key)}
                wanted[mine.degree.node_key].add(Channel(Sort.BASE, mine.degree.node_key))
        if Phase.END in phases:
            for key in judging.replaced:
                for end in self._accepted.rules.arrivals.get(key, ()):
                    number = rules[end.type_key].ends.index(end)
                    if end.type_key not in judging.replaced:
                        wanted[end.type_key].add(Channel(Sort.LEFT, end.type_key, number))
        return wanted

    # -- telling ------------------------------------------------------------------------------------------------------

    def _told(self, findings: list[Finding]) -> list[tuple[Finding, Problem]]:
        """Findings as problems of records; what is about no record of the load is raised."""
        ranks = {key: number for number, key in enumerate(self._accepted.rules.types)}
        nowhere = [each for each in findings if each.place == NOWHERE]
        if nowhere and (self._work.each or len(nowhere) == len(findings)):
            raise self._error(min(nowhere, key=lambda each: (each.phase, ranks[each.type_key], each.key)), None)
        about = list({(each.type_key, each.place): each for each in findings if each.place != NOWHERE}.values())
        if not self._work.each:
            about = [min(about, key=lambda each: (each.phase, ranks[each.type_key], each.rule, each.place))]
            if nowhere and min(each.phase for each in nowhere) < about[0].phase:
                raise self._error(nowhere[0], None)
        rows = self._rows_at(about)
        told = []
        for each in about:
            where = rows[each.type_key, each.place]
            error = self._error(each, where.row)
            told.append((each, Problem(each.phase, where.source, where.position, error, ranks[each.type_key])))
        return told

    def _rows_at(self, findings: list[Finding]) -> dict[tuple[str, int], Whereabouts]:
        wanted: dict[int, dict[str, set[int]]] = {}
        for each in findings:
            piece, row = piece_and_row(each.place)
            wanted.setdefault(piece, {}).setdefault(each.type_key, set()).add(row)
        asked = [
            (self._pieces[piece], {key: frozenset(rows) for key, rows in by_type.items()})
            for piece, by_type in sorted(wanted.items())
        ]
        found = self._context.parallelize(asked, len(asked)).map(partial(_find, work=self._work))
        rows: dict[tuple[str, int], Whereabouts] = {}
        for piece, each in self._job("finding", found):
            rows |= {(key, place(piece, row)): where for (key, row), where in each.items()}
        return rows

    def _error(self, finding: Finding, row: pa.Table | None) -> GraphError:
        key = finding.type_key
        rules = self._accepted.rules.types[key]
        match finding.phase:
            case Phase.UNIQUE if row is not None and finding.rule == NOWHERE and rules.key is not None:
                return shared(rules.key, row, finding.key, finding.key)
            case Phase.UNIQUE if row is not None:
                return shared(rules.distinct[finding.rule], row, finding.holder, finding.other)
            case Phase.END:
                end = rules.ends[finding.rule]
                return ConstraintError(end.breach(finding.key), type_key=key, end=end.column, id=finding.key)
            case Phase.DEGREE if rules.degree is not None:
                said = rules.degree.breach(finding.key, finding.count)
                return ConstraintError(said, type_key=key, id=finding.key, count=finding.count)
            case _:
                return there_already(key, finding.key) if finding.is_there else repeated(key, finding.key)

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

    def _staged(self, base: Pin, *, files: FilesToStage) -> StagedTable:
        # What becomes of the files is the write's to decide from here on. The note stays: a write that lost a race
        # takes its own intent back before it tries again, and meanwhile nothing else would keep a sweep away from them.
        self._handed_over = True
        return stage_apart(self._parts.tables, base, files)

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

    def _job(self, stage: str, work: "RDD[Any]", *, rows: Callable[[], int] | None = None) -> list[Any]:
        """Run a job to its end; one that is not waited for any more is cancelled."""
        group = self._parts.ids.new()
        self._context.setJobGroup(group, f"omnigraph load: {stage}", interruptOnCancel=True)
        total = LoadProgress(stage, bytes_total=self._request.bytes)
        try:
            with watched(self._request.watch, total, self._context, group, rows):
                return work.collect()
        except Py4JJavaError as fault:
            raise spark_fault(str(fault.java_exception)) from fault
        except BaseException:
            self._context.cancelJobGroup(group)
            raise
        finally:
            self._context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


def spark_fault(said: str) -> GraphError:
    """What to say when a job failed.

    Args:
        said (str): what Spark says.

    Returns:
        GraphError: what it means, and what to do.
    """
    lines = [line.strip() for line in said.splitlines()]
    # Python's own words come last of all; without any, Spark's come first.
    reason = next((line for line in reversed(lines) if _PYTHON_ERROR.match(line)), lines[0] if lines else "")
    return fault_of(said) or UnavailableError(
        f"Spark could not finish the load, so nothing was loaded; load again: {reason}", code="spark_job_failed"
    )


def fault_of(said: str) -> GraphError | None:
    """What a fault means that is not the load's own; None for one that is not known.

    Args:
        said (str): what the system says.

    Returns:
        GraphError | None: what it means, and what to do.
    """
    if not any(words in said for words in _FULL):
        return None
    return LimitError(
        "the disk is full, so nothing was loaded: make room where the graph is and where Spark keeps its temporary "
        "files (spark.local.dir), then load again",
        code="disk_full",
    )


def _read(piece: Piece, *, work: Work, told: Any) -> Iterator[Sent]:  # noqa: ANN401  (Spark's counter)
    return read_piece(piece, work, told)


def _find(
    asked: tuple[Piece, Mapping[str, frozenset[int]]], *, work: Work
) -> tuple[int, dict[tuple[str, int], Whereabouts]]:
    piece, wanted = asked
    return piece.index, find_rows(piece, work, wanted)


def _is_result(sent: Sent) -> bool:
    return sent[0] == RESULT


def _is_key(sent: Sent) -> bool:
    return sent[0] != RESULT


def _share(share: int) -> int:
    return share


def _ids(parts: list[Any]) -> IdColumn:
    return IdColumn(pa.chunked_array([each for each in parts if len(each)], pa.string()))
