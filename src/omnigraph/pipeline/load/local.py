"""A load in this process: for what fits into memory, such as the body of a request."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from omnigraph import limits
from omnigraph.errors import ConflictError, ConstraintError, GraphError
from omnigraph.model.schema import ID, SRC, EntityType
from omnigraph.pipeline.load.blocks import pieces_of
from omnigraph.pipeline.load.breaches import repeated, shared, there_already
from omnigraph.pipeline.load.how_far import LoadProgress
from omnigraph.pipeline.load.problems import Phase, Problem
from omnigraph.pipeline.load.reading import Reading, rows_of
from omnigraph.pipeline.load.request import Loaded, LoadRequest, operation, refuse_or_keep
from omnigraph.pipeline.load.typed import TypedRows
from omnigraph.transaction import constraints
from omnigraph.transaction.accepted import Accepted, refuse_other_schema
from omnigraph.transaction.constraint_rules.rules import Distinct
from omnigraph.transaction.constraints import Breach, RuleKind
from omnigraph.transaction.mode import Mode
from omnigraph.transaction.write import Operation
from omnigraph.transaction.write_set import WriteSet

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

Mask = npt.NDArray[np.bool_]
_PHASES = {RuleKind.UNIQUE: Phase.UNIQUE, RuleKind.END: Phase.END, RuleKind.DEGREE: Phase.DEGREE}


@dataclass(frozen=True, slots=True)
class _Gathered:
    """All rows of one type.

    Attributes:
        rows: in the order of their records.
        sources: in which file each record is.
        positions: and where there.
        ids_are_fresh: whether every id was made here.
    """

    entity: EntityType
    rows: pa.Table
    sources: "npt.NDArray[np.int64]"
    positions: "npt.NDArray[np.int64]"
    ids_are_fresh: bool

    def problem(self, row: int, phase: Phase, error: GraphError, rank: int) -> Problem:
        """What to say of the record of a row."""
        return Problem(phase, int(self.sources[row]), int(self.positions[row]), error, rank)

    def only(self, kept: Mask) -> "_Gathered":
        """Some of them."""
        return replace(
            self, rows=self.rows.filter(pa.array(kept)), sources=self.sources[kept], positions=self.positions[kept]
        )

    def without_superseded(self) -> "_Gathered":
        """Only the last row of each id."""
        if self.ids_are_fresh:
            return self
        ids = self.rows.column(ID).combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
        last = len(ids) - 1 - np.unique(ids[::-1], return_index=True)[1]
        kept = np.zeros(len(ids), bool)
        kept[last] = True
        return self if kept.all() else self.only(kept)

    def rows_with(self, column: str, values: list[str]) -> list[int]:
        """The rows that have one of some values in a column."""
        found = pc.is_in(self.rows.column(column), value_set=pa.array(values, pa.string()))
        rows: list[int] = np.flatnonzero(found.to_numpy(zero_copy_only=False)).tolist()
        return rows


class LocalLoad:
    """One load. The files are read when it is made; its operation may run any number of times."""

    def __init__(self, accepted: Accepted, request: LoadRequest, reading: Reading) -> None:
        self._accepted = accepted
        self._request = request
        self._ranks = {key: number for number, key in enumerate(accepted.rules.types)}
        found, problems = _read(request, reading)
        for rows_of_type in list(found.values()):
            found[rows_of_type.entity.type_key] = self._without_repeated(rows_of_type, problems)
        self._found = found
        self._problems = problems
        refuse_or_keep(request, problems)  # before anything is compared
        self.loaded = Loaded()

    @property
    def operation(self) -> Operation:
        """The write."""
        return operation(self._request, frozenset((*self._found, *self._request.named_types)), self.run)

    def run(self, staging: WriteSet) -> None:
        """Put the rows into a write, as far as they break no rule.

        Args:
            staging: the write.

        Raises:
            GraphError: a record breaks a rule, and nothing may be put aside.
        """
        refuse_other_schema(self._accepted, staging)
        found, problems = dict(self._found), list(self._problems)
        while True:
            trial = WriteSet(staging.snapshot)
            final = self._final(found)
            more = self._stage(trial, final)
            if not more:
                more = self._blamed(constraints.breaches(trial, self._accepted.rules), final)
            if not more:
                break
            problems += more
            refuse_or_keep(self._request, problems)
            # A row that was put aside replaces nothing: what it would have replaced is there, and counts.
            found = {key: _without(rows_of_type, more) for key, rows_of_type in found.items()}
        if self._stage(staging, final):
            raise ConflictError("entities appeared while the load was judged", code="key_conflict")
        constraints.check(staging, self._accepted.rules)
        counts = dict.fromkeys(self._request.named_types, 0)
        counts |= {key: rows_of_type.rows.num_rows for key, rows_of_type in found.items()}
        self.loaded.counts, self.loaded.rejects = counts, refuse_or_keep(self._request, problems)

    def _final(self, found: dict[str, _Gathered]) -> dict[str, _Gathered]:
        """The rows that a load leaves: in a merge the last of each id. Rules are judged on these."""
        if self._request.mode is not Mode.MERGE:
            return found
        return {key: rows_of_type.without_superseded() for key, rows_of_type in found.items()}

    def _stage(self, staging: WriteSet, found: dict[str, _Gathered]) -> list[Problem]:
        refused: list[Problem] = []
        named = self._request.columns
        if named is not None and named.entity.type_key not in found and self._request.mode is Mode.OVERWRITE:
            empty = self._accepted.columns[named.entity.type_key].empty_table()
            staging.overwrite(named.entity.type_key, empty)
        for key, rows_of_type in found.items():
            match self._request.mode:
                case Mode.OVERWRITE:
                    staging.overwrite(key, rows_of_type.rows)
                case _ if rows_of_type.ids_are_fresh:
                    staging.insert(key, rows_of_type.rows, fresh_ids=True)
                case Mode.MERGE:
                    staging.upsert(key, rows_of_type.rows)
                case Mode.APPEND:
                    try:
                        staging.insert(key, rows_of_type.rows)
                    except ConflictError as conflict:
                        refused += self._there_already(key, rows_of_type, conflict)
        return refused

    def _there_already(self, key: str, found: _Gathered, conflict: ConflictError) -> Iterator[Problem]:
        for rows_of_type in conflict.conflicts:
            row = found.rows_with(ID, [rows_of_type.entity_id])[-1]
            yield found.problem(row, Phase.IDENTITY, there_already(key, rows_of_type.entity_id), self._ranks[key])

    def _blamed(self, breaches: Iterable[Breach], found: dict[str, _Gathered]) -> list[Problem]:
        """The rows that breaches are about, each once.

        Raises:
            GraphError: the first breach that is about no row of the load, unless a row is to be told before it.
        """
        problems: dict[tuple[str, int], Problem] = {}
        nowhere: list[tuple[Phase, int, bool, str, GraphError]] = []
        for breach in breaches:
            phase, rank = _PHASES[breach.kind], self._ranks[breach.type_key]
            mine = found.get(breach.type_key)
            rows = [] if mine is None else self._rows_to_blame(breach, mine)
            if mine is None or not rows:
                details = breach.error.details
                nowhere.append((phase, rank, details.get("end", SRC) != SRC, details["id"], breach.error))
            else:
                for row in rows:
                    error = _in_order(breach.error, mine, row) if phase is Phase.UNIQUE else breach.error
                    problems.setdefault((breach.type_key, row), mine.problem(row, phase, error, rank))
        if nowhere:
            first = min(nowhere, key=lambda rows_of_type: rows_of_type[:4])
            earliest = min((rows_of_type.order[:2] for rows_of_type in problems.values()), default=None)
            if self._request.keeps_rejects or earliest is None or first[:2] < earliest:
                raise first[4]
        return list(problems.values())

    def _rows_to_blame(self, breach: Breach, found: _Gathered) -> list[int]:
        """Of two that share a tuple the later; of too many edges those above the bound, or the first of them all."""
        details = breach.error.details
        match breach.kind:
            case RuleKind.UNIQUE:
                return found.rows_with(ID, [str(rows_of_type) for rows_of_type in details["ids"]])[-1:]
            case RuleKind.END:
                return found.rows_with(ID, [details["entity"]])[-1:]
            case RuleKind.DEGREE:
                degree = self._accepted.rules.types[breach.type_key].degree
                surplus = 0 if degree is None or degree.most is None else int(details["count"]) - degree.most
                mine = found.rows_with(SRC, [details["id"]])
                if not self._request.keeps_rejects:
                    return mine[:1]
                return mine[-surplus:] if 0 < surplus <= len(mine) else []
            case RuleKind.VALUE:
                return found.rows_with(ID, [details["entity"]])

    def _without_repeated(self, given: _Gathered, problems: list[Problem]) -> _Gathered:
        """The rows without those whose id an earlier one has, where the last may not simply win."""
        if given.ids_are_fresh:
            return given
        key = given.entity.type_key
        ids = given.rows.column(ID).combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
        first = np.unique(ids, return_index=True)[1]
        if len(first) == len(ids):
            return given
        rule = self._accepted.rules.types[key].key
        if rule is None and self._request.mode is Mode.MERGE:
            return given
        kept = np.zeros(len(ids), bool)
        kept[first] = True
        for row in np.flatnonzero(~kept).tolist():
            text = str(given.rows.column(ID)[row].as_py())
            error: GraphError
            if rule is None:
                error = repeated(key, text)
                problems.append(given.problem(row, Phase.IDENTITY, error, self._ranks[key]))
            else:
                one = given.rows.slice(row, 1)
                error = shared(rule, one, text, text)
                problems.append(given.problem(row, Phase.UNIQUE, error, self._ranks[key]))
        return given.only(kept)


def _read(request: LoadRequest, reading: Reading) -> tuple[dict[str, _Gathered], list[Problem]]:
    problems: list[Problem] = []
    parts: dict[str, list[tuple[int, TypedRows]]] = {}
    rows = 0
    for piece in pieces_of(request.sources, piece_bytes=limits.LOAD_PIECE_BYTES):
        for block in rows_of(piece, reading):
            for rows_of_type in block:
                if isinstance(rows_of_type, Problem):
                    problems.append(rows_of_type)
                else:
                    parts.setdefault(rows_of_type.entity.type_key, []).append((piece.source.index, rows_of_type))
                    rows += len(rows_of_type.positions)
            request.watch(LoadProgress("reading", rows, bytes_total=request.bytes))
    return {key: _together(some) for key, some in sorted(parts.items())}, problems


def _together(parts: list[tuple[int, TypedRows]]) -> _Gathered:
    return _Gathered(
        parts[0][1].entity,
        pa.concat_tables([rows_of_type.rows for _, rows_of_type in parts]),
        np.concatenate([np.full(len(rows_of_type.positions), source, np.int64) for source, rows_of_type in parts]),
        np.concatenate([rows_of_type.positions for _, rows_of_type in parts]),
        all(rows_of_type.ids_are_fresh for _, rows_of_type in parts),
    )


def _without(found: _Gathered, problems: list[Problem]) -> _Gathered:
    """The rows of which nothing is wrong."""
    kept = np.ones(len(found.positions), bool)
    for rows_of_type in problems:
        kept &= (found.sources != rows_of_type.source) | (found.positions != rows_of_type.position)
    return found.only(kept)


def _in_order(error: ConstraintError, found: _Gathered, later: int) -> ConstraintError:
    """What to say of two entities with one tuple, the later of the load last."""
    holder, other = error.details["ids"]
    row = found.rows.slice(later, 1)
    if row.column(ID)[0].as_py() == other:
        return error
    return shared(Distinct(error.details["type"], error.details["columns"]), row, other, holder)
