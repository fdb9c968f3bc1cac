"""Ranking operators: the score of each row, the best rows only, or two rankings fused (RRF)."""

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from omnigraph.errors import InvalidRequestError
from omnigraph.execution.arrays import NONE, Numbers, Ordinals, Positions, sorted_unique
from omnigraph.execution.columns import Columns
from omnigraph.execution.expressions import prepare, prepare_constant
from omnigraph.execution.frame import Frame, concat_frames
from omnigraph.execution.operators.filter import prepare_limit
from omnigraph.execution.operators.operator import Frames, Operator
from omnigraph.execution.operators.order import SortKey
from omnigraph.execution.operators.scan import Count
from omnigraph.execution.run import Run
from omnigraph.execution.search.bm25 import Scores
from omnigraph.execution.search.scoring import Bm25Scoring, Fusion, NearestScoring, Scoring, row_scores
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan import steps
from omnigraph.language.plan.pattern import OrderKey
from omnigraph.language.plan.steps import Step


class Rank(Operator[Frame]):
    """Adds the score of one variable's node as a hidden column."""

    def __init__(self, rows: Frames, scoring: Scoring, *, name: str, required: bool) -> None:
        self._rows = rows
        self._scoring = scoring
        self._name = name
        self._required = required

    @property
    def unique_variable(self) -> str | None:
        """As in its input."""
        return self._rows.unique_variable

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """Yield the rows as they come: a score depends on no other row."""
        for frame in self._rows.batches(run, given):
            binding = frame.binding(self._scoring.variable)
            scores = row_scores(self._scoring, run, binding.columns, binding.ordinals)
            ranked = _with_scores(frame, self._name, scores, required=self._required)
            if ranked.size:
                yield ranked


class RankBest(Operator[Frame]):
    """Adds scores, and keeps only candidates for the best rows.

    As many nodes as rows are needed are enough: each has a row. Ties with the last of them stay too; the sort that
    follows decides between them.
    """

    def __init__(self, rows: Frames, scoring: Scoring, *, name: str, at_most: Count) -> None:
        self._rows = rows
        self._scoring = scoring
        self._name = name
        self._at_most = at_most

    @property
    def unique_variable(self) -> str | None:
        """As in its input."""
        return self._rows.unique_variable

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """Yield the rows at once."""
        frames, held = _collect(run, self._rows.batches(run, given))
        if frames:
            variable = self._scoring.variable
            columns = frames[0].binding(variable).columns
            wanted = self._scoring.candidates(run, columns, _distinct_nodes(frames, variable), self._at_most(run))
            is_wanted = np.zeros(columns.numbering.size + 1, dtype=np.bool_)
            is_wanted[wanted] = True
            for frame in frames:
                kept = frame.where(is_wanted[frame.binding(variable).ordinals])
                if not kept.size:
                    continue
                scores = row_scores(self._scoring, run, columns, kept.binding(variable).ordinals)
                ranked = _with_scores(kept, self._name, scores, required=True)
                if ranked.size:
                    yield ranked
        run.budget.release(held)


class RankFused(Operator[Frame]):
    """Adds the reciprocal rank fusion (RRF) of two rankings as a hidden column.

    A second hidden column has the place of a node in the first ranking, or behind all of those in the second: it breaks
    ties.
    """

    def __init__(self, rows: Frames, fusion: Fusion, *, name: str, row: str | None, required: bool) -> None:
        self._rows = rows
        self._fusion = fusion
        self._name = name
        self._row = row
        self._required = required

    @property
    def unique_variable(self) -> str | None:
        """As in its input."""
        return self._rows.unique_variable

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """Yield the rows at once: a place depends on all of them."""
        frames, held = _collect(run, self._rows.batches(run, given))
        if frames:
            whole = concat_frames(frames)
            binding = whole.binding(self._fusion.first.variable)
            scores = np.full(whole.size, np.nan)
            places = np.zeros(whole.size, dtype=np.int64)
            for rows in self._groups(whole):
                scores[rows], places[rows] = self._fused(run, binding.columns, binding.ordinals[rows])
            whole = whole.with_hidden(place_column(self._name), places)
            ranked = _with_scores(whole, self._name, scores, required=self._required)
            if ranked.size:
                yield ranked
        run.budget.release(held)

    def _groups(self, whole: Frame) -> Iterator[Positions]:
        """Yield the rows that are ranked together: inside another step, those of one outer row."""
        if self._row is None:
            yield np.arange(whole.size)
            return
        around = whole.hidden[self._row]
        order = np.argsort(around, kind="stable")
        yield from np.split(order, np.flatnonzero(np.diff(around[order])) + 1)

    def _fused(self, run: Run, columns: Columns, ordinals: Ordinals) -> tuple[Scores, Positions]:
        fusion = self._fusion
        nodes = sorted_unique(ordinals[ordinals != NONE])
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


def place_column(name: str) -> str:
    """Return the name of the hidden column with the places of a fused score."""
    return f"{name}.place"


def _with_scores(frame: Frame, name: str, scores: Numbers, *, required: bool) -> Frame:
    ranked = frame.with_hidden(name, scores)
    return ranked.where(~np.isnan(scores)) if required else ranked


def _collect(run: Run, batches: Iterator[Frame]) -> tuple[list[Frame], int]:
    """Collect all rows; return how much of the budget they hold."""
    frames, held = [], 0
    for frame in batches:
        run.budget.hold(frame.nbytes)
        held += frame.nbytes
        frames.append(frame)
    return frames, held


def _distinct_nodes(frames: list[Frame], variable: str) -> Ordinals:
    """Return the distinct nodes of a variable."""
    parts = [frame.binding(variable).ordinals for frame in frames]
    ordinals = parts[0] if len(parts) == 1 else np.concatenate(parts)
    different = sorted_unique(ordinals)
    return different[1:] if len(different) and different[0] == NONE else different


def lower_rank(rows: Frames, step: steps.Rank, best: Count | None, *, row: str | None) -> Frames:
    """Lower a step that ranks.

    Args:
        rows: the input.
        step: has the score and the name of its hidden column.
        best: where only the best rows are needed, how many; see `best_of`.
        row: inside another step, the hidden column with the number of the outer row.
    """
    score = step.score
    if isinstance(score, ex.Rrf):
        fusion = Fusion(
            _scoring(score.first), _scoring(score.second), prepare_constant(score.k), prepare_limit(step.depth)
        )
        return RankFused(rows, fusion, name=step.name, row=row, required=step.required)
    if best is not None and row is None:
        return RankBest(rows, _scoring(score), name=step.name, at_most=best)
    return Rank(rows, _scoring(score), name=step.name, required=step.required)


def best_row_count(step: steps.Rank, later: Sequence[Step]) -> Count | None:
    """Return how many of the best rows are enough; None where others may be needed too.

    They are enough if rows are sorted by this score next and only the first are kept. Scores that are computed in
    between, without dropping rows or looking at all of them, do not matter.
    """
    if not isinstance(step.score, ex.Nearest) or not step.required:
        return None
    for following in later:
        if isinstance(following, steps.Rank) and not following.required and not isinstance(following.score, ex.Rrf):
            continue
        if not isinstance(following, steps.Order) or following.at_most is None:
            return None
        first = following.keys[0]
        if isinstance(first.value, ex.Computed) and first.value.name == step.name and not first.descending:
            return prepare_limit(following.at_most)
        return None
    return None


def add_tie_keys(keys: Sequence[OrderKey], prepared: Sequence[SortKey], fused: Collection[str]) -> list[SortKey]:
    """Return sort keys with the places that break ties of fused scores."""
    made: list[SortKey] = []
    for key, sort_key in zip(keys, prepared, strict=True):
        made.append(sort_key)
        if isinstance(key.value, ex.Computed) and key.value.name in fused:
            made.append(SortKey(prepare(ex.Computed(place_column(key.value.name), ex.I64))))
    return made


def _scoring(score: ex.Nearest | ex.Bm25) -> Scoring:
    if isinstance(score, ex.Nearest):
        return NearestScoring(score, prepare_constant(score.query))
    return Bm25Scoring(score, prepare_constant(score.query))
