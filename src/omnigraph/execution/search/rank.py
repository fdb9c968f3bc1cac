"""Rows with a score: each row's, the best rows only, or two rankings fused."""

from collections.abc import Iterator

import numpy as np

from omnigraph.errors import InvalidRequestError
from omnigraph.execution.arrays import NONE, Numbers, Ordinals, Positions, once
from omnigraph.execution.columns import Columns
from omnigraph.execution.frame import Frame, together
from omnigraph.execution.operators.operator import Frames, Operator
from omnigraph.execution.operators.scan import Count
from omnigraph.execution.run import Run
from omnigraph.execution.search.bm25 import Scores
from omnigraph.execution.search.scoring import Fusion, Scoring, row_scores


class Rank(Operator[Frame]):
    """Every row with the score of one variable's node, as a hidden column."""

    def __init__(self, rows: Frames, scoring: Scoring, *, name: str, required: bool) -> None:
        self._rows = rows
        self._scoring = scoring
        self._name = name
        self._required = required

    @property
    def once_each(self) -> str | None:
        """As in the rows it takes from."""
        return self._rows.once_each

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """Those rows, as they come: a score depends on no other row."""
        for frame in self._rows.batches(run, given):
            bound = frame.bound(self._scoring.variable)
            scores = row_scores(self._scoring, run, bound.columns, bound.ordinals)
            ranked = _with_scores(frame, self._name, scores, required=self._required)
            if ranked.size:
                yield ranked


class RankBest(Operator[Frame]):
    """Rows with a score, and of these no more than certainly hold the best so many.

    As many nodes as rows are wanted are enough: each has a row. Those as good as the last of them stay too; what
    decides between them is known to whoever puts the rows in order.
    """

    def __init__(self, rows: Frames, scoring: Scoring, *, name: str, at_most: Count) -> None:
        self._rows = rows
        self._scoring = scoring
        self._name = name
        self._at_most = at_most

    @property
    def once_each(self) -> str | None:
        """As in the rows it takes from."""
        return self._rows.once_each

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """Those rows, at once."""
        frames, held = _held(run, self._rows.batches(run, given))
        if frames:
            variable = self._scoring.variable
            columns = frames[0].bound(variable).columns
            wanted = self._scoring.candidates(run, columns, _population(frames, variable), self._at_most(run))
            is_wanted = np.zeros(columns.numbering.size + 1, dtype=np.bool_)
            is_wanted[wanted] = True
            for frame in frames:
                kept = frame.where(is_wanted[frame.bound(variable).ordinals])
                if not kept.size:
                    continue
                scores = row_scores(self._scoring, run, columns, kept.bound(variable).ordinals)
                ranked = _with_scores(kept, self._name, scores, required=True)
                if ranked.size:
                    yield ranked
        run.budget.release(held)


class RankFused(Operator[Frame]):
    """Every row with the sum of what its node's places in two rankings are worth.

    A second hidden column tells the place of a node in the first ranking, or behind all of those in the second: it
    decides between equal sums.
    """

    def __init__(self, rows: Frames, fusion: Fusion, *, name: str, row: str | None, required: bool) -> None:
        self._rows = rows
        self._fusion = fusion
        self._name = name
        self._row = row
        self._required = required

    @property
    def once_each(self) -> str | None:
        """As in the rows it takes from."""
        return self._rows.once_each

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """Those rows, at once: a place depends on all of them."""
        frames, held = _held(run, self._rows.batches(run, given))
        if frames:
            whole = together(frames)
            bound = whole.bound(self._fusion.first.variable)
            scores = np.full(whole.size, np.nan)
            places = np.zeros(whole.size, dtype=np.int64)
            for rows in self._groups(whole):
                scores[rows], places[rows] = self._fused(run, bound.columns, bound.ordinals[rows])
            whole = whole.with_hidden(place_of(self._name), places)
            ranked = _with_scores(whole, self._name, scores, required=self._required)
            if ranked.size:
                yield ranked
        run.budget.release(held)

    def _groups(self, whole: Frame) -> Iterator[Positions]:
        """The rows that are ranked together: inside another step, those of one row around."""
        if self._row is None:
            yield np.arange(whole.size)
            return
        around = whole.hidden[self._row]
        order = np.argsort(around, kind="stable")
        yield from np.split(order, np.flatnonzero(np.diff(around[order])) + 1)

    def _fused(self, run: Run, columns: Columns, ordinals: Ordinals) -> tuple[Scores, Positions]:
        fusion = self._fusion
        nodes = once(ordinals[ordinals != NONE])
        depth = None if fusion.depth is None else fusion.depth(run)
        k = fusion.k(Frame(run, 1, {}))
        if not isinstance(k, int) or k <= 0:
            raise InvalidRequestError("rrf k must be greater than 0")
        scores, places = np.zeros(len(nodes)), np.full(len(nodes), -1, dtype=np.int64)
        seen = 0
        for scoring in (fusion.first, fusion.second):
            best = scoring.best(run, columns, nodes, depth).ordinals
            at = np.searchsorted(nodes, best)
            scores[at] += 1.0 / (k + np.arange(len(best)) + 1)
            fresh = places[at] < 0
            places[at[fresh]] = seen + np.flatnonzero(fresh)
            seen += len(best)
        # One more, for rows without a node.
        scores = np.append(np.where(places < 0, np.nan, scores), np.nan)
        if len(nodes) == len(ordinals) and (nodes == ordinals).all():
            return scores[:-1], places
        back = np.where(ordinals == NONE, len(nodes), np.searchsorted(nodes, ordinals))
        return scores[back], np.append(places, -1)[back]


def place_of(name: str) -> str:
    """The hidden column with the places that belong to a fused score."""
    return f"{name}.place"


def _with_scores(frame: Frame, name: str, scores: Numbers, *, required: bool) -> Frame:
    ranked = frame.with_hidden(name, scores)
    return ranked.where(~np.isnan(scores)) if required else ranked


def _held(run: Run, batches: Iterator[Frame]) -> tuple[list[Frame], int]:
    """All rows, and how much of the budget they hold."""
    frames, held = [], 0
    for frame in batches:
        run.budget.hold(frame.nbytes)
        held += frame.nbytes
        frames.append(frame)
    return frames, held


def _population(frames: list[Frame], variable: str) -> Ordinals:
    """The nodes that a variable is bound to, each once."""
    parts = [frame.bound(variable).ordinals for frame in frames]
    ordinals = parts[0] if len(parts) == 1 else np.concatenate(parts)
    different = once(ordinals)
    return different[1:] if len(different) and different[0] == NONE else different
