"""Judging a whole load on Spark: which keys meet which, in which rounds, and what to say of what is found."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import RDD, StorageLevel

from omnigraph import limits
from omnigraph.errors import ConstraintError, GraphError
from omnigraph.pipeline.load.blocks import Piece
from omnigraph.pipeline.load.breaches import repeated, shared, there_already
from omnigraph.pipeline.load.jobs import Jobs, Kept
from omnigraph.pipeline.load.judging import NOWHERE, Finding, Judging, Verdict
from omnigraph.pipeline.load.keys import Channel, Places, Sort, piece_and_row, place
from omnigraph.pipeline.load.problems import Phase, Problem
from omnigraph.pipeline.load.request import LoadRequest, refuse_or_keep
from omnigraph.pipeline.load.tasks import (
    RESULT,
    Look,
    Sent,
    Whereabouts,
    Work,
    find_rows,
    judge_share,
    look_through,
)
from omnigraph.storage.tables.fragments import fragment_groups
from omnigraph.transaction.mode import Mode
from omnigraph.transaction.snapshot import Snapshot

_ALL = (Phase.IDENTITY, Phase.UNIQUE, Phase.END, Phase.DEGREE)
_NO_PLACES: Places = np.empty(0, np.uint64)


class Rounds:
    """Judges the rows of one load, against any snapshot."""

    def __init__(
        self, request: LoadRequest, work: Work, jobs: Jobs, pieces: tuple[Piece, ...], *, sent: "RDD[Any]"
    ) -> None:
        self._accepted = work.reading.accepted
        self._request = request
        self._work = work
        self._jobs = jobs
        self._pieces = pieces
        self._sent = sent
        self.near: list[Sent] | None = None
        self.type_keys: frozenset[str] = frozenset()

    def judged(
        self, snapshot: Snapshot, replaced: frozenset[str], problems: list[Problem]
    ) -> tuple[Verdict, dict[str, Places]]:
        """What the rows do to what is there, and which of them do not count.

        Args:
            snapshot (Snapshot): what is there.
            replaced (frozenset[str]): types whose content the load replaces.
            problems (list[Problem]): what was found before; what is found now is added.

        Returns:
            tuple[Verdict, dict[str, Places]]: the verdict, and by type key the rows put aside.

        Raises:
            GraphError: a record breaks a rule, and nothing may be put aside.
        """
        at_once = self._judged_at_once(snapshot, replaced)
        if at_once is not None:
            return at_once, {}
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

    def _judged_at_once(self, snapshot: Snapshot, replaced: frozenset[str]) -> Verdict | None:
        """The verdict, where one look at everything finds nothing in the way.

        A merge must know what it replaces, and which of its own records a later one replaces, before it can tell
        whether a tuple is taken by something that stays. But with all rows taken for rows that stay there is only more
        to be found: where nothing is, nothing is in the way. How many edges leave a node is another matter, as fewer
        may be too few.
        """
        rules = self._accepted.rules.types
        if len(list(self._rounds())) == 1 or any(rules[key].degree is not None for key in self.type_keys):
            return None
        judging = Judging(self._accepted.rules, self._request.mode, replaced, {}, self._work.each)
        verdict = self._round(snapshot, judging, frozenset(_ALL), {})
        return None if verdict.findings else verdict

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
        elif self._request.mode is Mode.MERGE:
            yield frozenset({Phase.IDENTITY})
            yield frozenset(_ALL[1:])
        else:
            yield frozenset(_ALL)

    def _round(
        self, snapshot: Snapshot, judging: Judging, phases: frozenset[Phase], removed: Mapping[str, list[Places]]
    ) -> Verdict:
        looks = list(self._looks(snapshot, judging, phases, removed))
        if self.near is not None and sum(look.rows for look in looks) <= limits.LOAD_LOOK_ROWS:
            return self._judged_here(self.near, looks, judging, phases)
        sent, there = self._sent, None
        if looks:
            there = self._jobs.context.parallelize(looks, len(looks)).flatMap(
                partial(look_through, place=self._work.place, shares=self._work.shares)
            )
            there = there.persist(StorageLevel.DISK_ONLY)
            self._jobs.run("looking", Kept(there))
            sent = self._jobs.context.union([sent, there])
        shares = sent.partitionBy(self._work.shares, _share).mapPartitions(
            partial(judge_share, judging=judging, phases=phases)
        )
        try:
            return _together(self._jobs.run("judging", shares))
        finally:
            if there is not None:
                there.unpersist()

    def _judged_here(self, sent: list[Sent], looks: list[Look], judging: Judging, phases: frozenset[Phase]) -> Verdict:
        """What the workers would do, for few rows."""
        there = (each for look in looks for each in look_through(look, self._work.place, self._work.shares))
        shares: dict[int, list[Sent]] = {}
        for each in chain(sent, there):
            shares.setdefault(each[0], []).append(each)
        return _together(verdict for share in shares.values() for verdict in judge_share(share, judging, phases))

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

    def _told(self, findings: list[Finding]) -> list[tuple[Finding, Problem]]:
        """Findings as problems of records, in the order the local engine tells them.

        Raises:
            GraphError: the first that is about no record of the load, unless a record is to be told before it.
        """
        ranks = {key: number for number, key in enumerate(self._accepted.rules.types)}

        def order(finding: Finding) -> tuple[bool, int, int, bool, int, int, str]:
            is_nowhere = finding.place == NOWHERE
            known = (not finding.is_repeated, finding.phase, ranks[finding.type_key], is_nowhere)
            return (*known, 0 if is_nowhere else finding.place, finding.rule, finding.key)

        ordered = sorted(findings, key=order)
        nowhere = [finding for finding in ordered if finding.place == NOWHERE]
        if nowhere and (self._work.each or ordered[0] is nowhere[0]):
            raise self._error(nowhere[0], None)
        first = {(each.type_key, each.place): each for each in reversed(ordered) if each.place != NOWHERE}
        about = list(first.values()) if self._work.each else ordered[:1]
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
        found = self._jobs.context.parallelize(asked, len(asked)).map(partial(_find, work=self._work))
        rows: dict[tuple[str, int], Whereabouts] = {}
        for piece, each in self._jobs.run("finding", found):
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


def _find(
    asked: tuple[Piece, Mapping[str, frozenset[int]]], *, work: Work
) -> tuple[int, dict[tuple[str, int], Whereabouts]]:
    piece, wanted = asked
    return piece.index, find_rows(piece, work, wanted)


def is_key(sent: Sent) -> bool:
    """Whether a task sent keys, and not what came of it."""
    return sent[0] != RESULT


def _share(share: int) -> int:
    return share


def _together(verdicts: Iterable[Verdict]) -> Verdict:
    whole = Verdict()
    for verdict in verdicts:
        whole.add(verdict)
    return whole
