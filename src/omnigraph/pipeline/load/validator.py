"""Validate a load on Spark against a snapshot: run the checks, reject or refuse records, find what is replaced."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from pyspark.sql import DataFrame

from omnigraph import limits
from omnigraph.errors import ConstraintError, GraphError
from omnigraph.model.schema import ID
from omnigraph.pipeline.load.breaches import repeated, shared, there_already
from omnigraph.pipeline.load.checks import KEY_RULE, Checks, Violation
from omnigraph.pipeline.load.jobs import Jobs
from omnigraph.pipeline.load.pieces import Pieces
from omnigraph.pipeline.load.problems import Phase, Problem
from omnigraph.pipeline.load.request import LoadRequest, refuse_or_keep
from omnigraph.pipeline.load.tasks import PLACE, Places, RowsToScan, Work, parse_rows, scan_rows
from omnigraph.storage.id_column import IdColumn
from omnigraph.storage.tables.fragments import fragment_groups
from omnigraph.transaction.snapshot import Snapshot

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

_PHASES = (Phase.IDENTITY, Phase.UNIQUE, Phase.END, Phase.DEGREE)
_NO_PLACES: Places = np.empty(0, np.int64)


@dataclass(slots=True)
class Validated:
    """What a valid load does.

    Attributes:
        rejected: by type key, positions of rows that are rejected.
        superseded: by type key, positions of rows that a later row with the same id replaces.
        removed: by type key, addresses of rows of the snapshot that new ones replace.
        updated: by type key, ids in the snapshot that get a new row.
        deleted: by type key, ids in the snapshot that go.
    """

    rejected: dict[str, Places] = field(default_factory=dict)
    superseded: dict[str, Places] = field(default_factory=dict)
    removed: dict[str, "np.ndarray[tuple[int], np.dtype[np.uint64]]"] = field(default_factory=dict)
    updated: dict[str, Sequence[str]] = field(default_factory=dict)
    deleted: dict[str, Sequence[str]] = field(default_factory=dict)


class LoadValidator:
    """Validate the rows of one load, against any snapshot."""

    def __init__(self, request: LoadRequest, work: Work, jobs: Jobs, pieces: Pieces) -> None:
        self._accepted = work.reading.accepted
        self._request = request
        self._work = work
        self._jobs = jobs
        self._pieces = pieces
        self._type_keys = tuple(self._accepted.rules.types)

    def validate(self, snapshot: Snapshot, replaced: frozenset[str], problems: list[Problem]) -> Validated:
        """Check every rule.

        Args:
            replaced: types whose content the load replaces.
            problems: problems that were found before; those that are found now are added.

        Raises:
            GraphError: a record breaks a rule, and records may not be rejected.
        """
        found = Validated()
        checks = self._checks(snapshot, replaced, found.rejected)
        suspects = self._screen(checks, found)
        if not suspects and not checks.has_degrees():
            return found
        while True:
            before = sum(map(len, found.rejected.values()))
            if self._work.keeps_rejects:
                for phase in _PHASES:
                    checks = self._checks(snapshot, replaced, found.rejected)
                    if phase is not Phase.IDENTITY:
                        checks = self._with_repeats(checks, found)
                    self._reject(checks, frozenset({phase}), found.rejected, problems)
            else:
                checks = self._with_repeats(replace(checks, suspects=suspects), found)
                self._reject(checks, frozenset(_PHASES), found.rejected, problems)
            # A rejected row replaces nothing: the row it would have replaced counts again.
            if sum(map(len, found.rejected.values())) == before:
                break
        if found.rejected:
            self._screen(checks, found)
        return found

    # -- scans --------------------------------------------------------------------------------------------------------

    def _checks(self, snapshot: Snapshot, replaced: frozenset[str], rejected: Mapping[str, Places]) -> Checks:
        frames: dict[str, DataFrame] = {}

        def new(key: str, *columns: str) -> DataFrame:
            rules = self._accepted.rules.types[key]
            without = rejected.get(key, _NO_PLACES)
            wanted = tuple(dict.fromkeys((*columns, PLACE))) if len(without) else columns
            if self._work.pins:
                tasks = self._pieces.files_to_scan(key, self._work.pins[key])
                rows = scan_rows(self._jobs.session, tasks, rules, wanted, self._work.place)
            else:
                rows = parse_rows(self._jobs.session, self._pieces.pieces, self._work, rules, wanted)
            if not len(without):
                return rows
            if key not in frames:
                frames[key] = self._jobs.session.createDataFrame(pa.table({PLACE: without}))
            return rows.join(frames[key], PLACE, "left_anti").select(*columns)

        def base(key: str, *columns: str) -> DataFrame:
            pin = snapshot.record.tables[key]
            groups = fragment_groups(snapshot.table(key), rows=limits.LOAD_LOOK_ROWS)
            tasks = [RowsToScan(pin, fragments=group) for group in groups]
            rules = self._accepted.rules.types[key]
            return scan_rows(self._jobs.session, tasks, rules, columns, self._work.place)

        return Checks(
            self._jobs.session,
            self._accepted.rules,
            self._request.mode,
            self._pieces.type_keys | replaced,
            self._pieces.own_ids,
            replaced,
            new,
            base,
            {key: snapshot.record.tables[key].rows or 0 for key in self._type_keys},
            every=self._work.keeps_rejects,
        )

    def _with_repeats(self, checks: Checks, found: Validated) -> Checks:
        """Find rows with one id in a merge, so that the checks see only the last of them."""
        frame = checks.superseded()
        if frame is None:
            return checks
        rows = self._jobs.run("judging", frame)
        found.superseded = {self._type_keys[rank]: _places(some) for rank, some in _by_rank(rows)}
        return replace(checks, repeats=frozenset(found.superseded))

    # -- violations ---------------------------------------------------------------------------------------------------

    def _reject(
        self, checks: Checks, phases: frozenset[Phase], rejected: dict[str, Places], problems: list[Problem]
    ) -> None:
        frame = checks.violations(phases)
        if frame is None:
            return
        frame = frame.limit(limits.LOAD_REJECTS_MAX + 1) if self._work.keeps_rejects else checks.first(frame)
        rows = self._jobs.run("judging", frame).to_pylist()
        if not rows:
            return
        blamed = self._problems([Violation(**row) for row in rows])
        problems += [problem for _, problem in blamed]
        refuse_or_keep(self._request, problems)
        for rank in {violation.rank for violation, _ in blamed}:
            key = self._type_keys[rank]
            own = [violation.place for violation, _ in blamed if violation.rank == rank]
            rejected[key] = np.unique(np.concatenate([rejected.get(key, _NO_PLACES), np.array(own, np.int64)]))

    def _problems(self, violations: list[Violation]) -> list[tuple[Violation, Problem]]:
        """Return violations as problems of records, in the order of the local engine.

        Raises:
            GraphError: the first violation that no record of the load is to blame for, unless a record comes first.
        """
        ordered = sorted(violations, key=_order)
        nowhere = [violation for violation in ordered if violation.nowhere]
        if nowhere and (self._work.keeps_rejects or ordered[0] is nowhere[0]):
            raise self._error(nowhere[0], None)
        first = {(some.rank, some.place): some for some in reversed(ordered) if not some.nowhere}
        about = list(first.values()) if self._work.keeps_rejects else ordered[:1]
        positions = self._pieces.locate(
            [(self._type_keys[violation.rank], violation.place) for violation in about], self._jobs, self._work
        )
        blamed = []
        for violation in about:
            at = positions[self._type_keys[violation.rank], violation.place]
            error = self._error(violation, at.row)
            blamed.append((violation, Problem(Phase(violation.phase), at.source, at.position, error, violation.rank)))
        return blamed

    def _error(self, violation: Violation, row: pa.Table | None) -> GraphError:
        key = self._type_keys[violation.rank]
        rules = self._accepted.rules.types[key]
        match Phase(violation.phase):
            case Phase.UNIQUE if row is not None and violation.rule == KEY_RULE and rules.key is not None:
                return shared(rules.key, row, violation.key, violation.key)
            case Phase.UNIQUE if row is not None:
                return shared(rules.distinct[violation.rule], row, violation.holder, violation.other)
            case Phase.END:
                end = rules.ends[violation.rule]
                return ConstraintError(end.breach(violation.key), type_key=key, end=end.column, id=violation.key)
            case Phase.DEGREE if rules.degree is not None:
                message = rules.degree.breach(violation.key, violation.count)
                return ConstraintError(message, type_key=key, id=violation.key, count=violation.count)
            case _:
                return there_already(key, violation.key) if violation.there else repeated(key, violation.key)

    # -- rows of the snapshot -----------------------------------------------------------------------------------------

    def _screen(self, checks: Checks, found: Validated) -> frozenset[int]:
        """Find the rows of the snapshot that the load replaces; return the domains in which a rule may be broken."""
        bounds = (
            checks.base_rows[key] if key in checks.replaced else min(checks.base_rows[key], self._pieces.rows(key))
            for key in checks.type_keys
        )
        # Beyond this many, only their number is kept: the driver's memory must not follow the load.
        with_ids = sum(bounds) <= limits.LOAD_CHANGED_IDS_MAX
        frame = checks.screening(with_ids=with_ids)
        if checks.replaced and not with_ids:
            counts = self._jobs.run("judging", frame.groupBy("suspect", "rank", "stays").count()).to_pylist()
            for row in counts:
                if not row["suspect"]:
                    some = found.updated if row["stays"] else found.deleted
                    some[self._type_keys[row["rank"]]] = IdColumn(None, row["count"])
            return frozenset(row["rank"] for row in counts if row["suspect"])
        rows = self._jobs.run("judging", frame if with_ids else frame.drop(ID))
        suspect: Any = rows.column("suspect")
        found.removed, found.updated, found.deleted = {}, {}, {}
        for rank, own in _by_rank(rows.filter(pc.invert(suspect))):
            key, stays = self._type_keys[rank], own.column("stays")
            if key not in checks.replaced:
                found.removed[key] = _places(own).astype(np.uint64)
            if with_ids:
                found.updated[key] = IdColumn(own.column(ID).filter(stays))
                found.deleted[key] = IdColumn(own.column(ID).filter(pc.invert(stays)))
            else:
                found.updated[key] = IdColumn(None, own.num_rows)
        suspects: list[Any] = rows.column("rank").filter(suspect).to_pylist()
        return frozenset(suspects)


def _by_rank(rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    ranks: Any = rows.column("rank")
    for rank in ranks.unique().to_pylist():
        yield rank, rows.filter(pc.equal(ranks, rank))


def _places(rows: pa.Table) -> Places:
    return rows.column(PLACE).to_numpy().astype(np.int64)


def _order(violation: Violation) -> tuple[object, ...]:
    return (
        violation.late,
        violation.phase,
        violation.rank,
        violation.nowhere,
        violation.place,
        violation.rule,
        violation.step,
        violation.key,
    )
