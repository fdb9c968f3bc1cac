"""Scores of nodes: vector distance and BM25."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnigraph.execution.arrays import NONE, Ordinals, pc, sorted_unique, to_numpy
from omnigraph.execution.columns import Columns
from omnigraph.execution.frame import Frame
from omnigraph.execution.operators.scan import Count
from omnigraph.execution.run import Run
from omnigraph.execution.search.bm25 import Scores, bm25
from omnigraph.execution.search.query_text import as_vector, distinct_words
from omnigraph.execution.search.vector_index import nearest_by_index, nearest_in_pieces
from omnigraph.execution.search.vectors import Vector, distances, to_matrix
from omnigraph.language.plan import expressions as ex
from omnigraph.model.schema import ID

# Computes the query argument as a Python value.
QueryValue = Callable[[Frame], object]

# Fewer vectors than this are compared exactly at once.
_COMPARED_AT_ONCE_MAX = 2_048


@dataclass(frozen=True, slots=True)
class Ranked:
    """Nodes with their scores, best first; ties by id."""

    ordinals: Ordinals
    scores: Scores


class Scoring(ABC):
    """Computes one score. Holds no state of a run; results are cached in the run."""

    descending: bool

    def __init__(self, target: ex.Property, query_value: QueryValue) -> None:
        self.variable = target.variable
        self._name = target.name
        self._query_value = query_value

    @abstractmethod
    def scores(self, run: Run, columns: Columns, ordinals: Ordinals) -> Scores:
        """Return the scores of existing nodes; NaN where a node has none."""

    def candidates(self, run: Run, columns: Columns, ordinals: Ordinals, count: int) -> Ordinals:  # noqa: ARG002  (others choose by it)
        """Return at least the best `count` of these nodes, with ties."""
        return ordinals

    def best(self, run: Run, columns: Columns, ordinals: Ordinals, count: int | None) -> Ranked:
        """Return the best of some distinct nodes; with `count` None, all that have a score."""
        if count is not None:
            ordinals = self.candidates(run, columns, ordinals, count)
        scores = self.scores(run, columns, ordinals)
        there = ~np.isnan(scores)
        ordinals, scores = ordinals[there], scores[there]
        keys = -scores if self.descending else scores
        if count is not None and len(keys) > count:
            near = keys <= np.partition(keys, count - 1)[count - 1] if count else np.zeros(len(keys), np.bool_)
            ordinals, scores, keys = ordinals[near], scores[near], keys[near]
        order = np.argsort(keys, kind="stable")
        if (np.diff(keys[order]) == 0).any():
            ids = pc.rank(columns.take(ID, ordinals), tiebreaker="dense")
            order = np.lexsort([to_numpy(ids), keys])
        order = order[:count]
        return Ranked(ordinals[order], scores[order])

    def _query(self, run: Run) -> object:
        """Return the query value, computed once per run."""
        memo = run.memo
        if self not in memo:
            memo[self] = self._query_value(Frame(run, 1, {}))
        return memo[self]


class Bm25Scoring(Scoring):
    """BM25 score; greater is better."""

    descending = True

    def __init__(self, score: ex.Bm25, query_value: QueryValue) -> None:
        super().__init__(score.target, query_value)
        self._analyzer = score.analyzer

    def scores(self, run: Run, columns: Columns, ordinals: Ordinals) -> Scores:
        """Compute scores for all nodes of the type at once: word weights depend on all of them."""
        text = self._query(run)
        if text is None:
            return np.full(len(ordinals), np.nan)
        assert isinstance(text, str)
        key = (self, columns.key)
        found = run.memo.get(key)
        if found is None:
            texts = columns.texts(self._name, self._analyzer)
            found = run.memo[key] = bm25(texts, distinct_words(text, texts.analyzer))
        assert isinstance(found, np.ndarray)
        scores: Scores = found[ordinals]
        return scores


class NearestScoring(Scoring):
    """Vector distance; smaller is better."""

    descending = False

    def __init__(self, score: ex.Nearest, query_value: QueryValue) -> None:
        super().__init__(score.target, query_value)
        assert score.target.type.vector_dim is not None
        self._dimension = score.target.type.vector_dim
        self._model = score.model

    def scores(self, run: Run, columns: Columns, ordinals: Ordinals) -> Scores:
        """Compute exact distances; fetches only these nodes' vectors, where they are few."""
        query = self._vector(run)
        if query is None:
            return np.full(len(ordinals), np.nan)
        distinct = sorted_unique(ordinals)
        pieces = [np.empty(0)]
        for _, vectors in columns.pieces(self._name, distinct):
            far = distances(to_matrix(vectors), query)
            if vectors.null_count:
                far[to_numpy(pc.is_null(vectors))] = np.nan
            pieces.append(far)
        found = pieces[1] if len(pieces) == 2 else np.concatenate(pieces)
        if len(distinct) == len(ordinals) and distinct is ordinals:
            return found
        return found[np.searchsorted(distinct, ordinals)]

    def candidates(self, run: Run, columns: Columns, ordinals: Ordinals, count: int) -> Ordinals:
        """Return likely nearest nodes, through an index or by approximate distances."""
        query = self._vector(run)
        if query is None or len(ordinals) <= max(_COMPARED_AT_ONCE_MAX, count):
            return ordinals
        if len(ordinals) == columns.numbering.count:
            index = columns.vector_index(self._name)
            if index is not None:
                return nearest_by_index(columns, index, query, max(count, 1))
        if columns.is_read_in_pieces(self._name):
            return nearest_in_pieces(columns, self._name, sorted_unique(ordinals), query, max(count, 1))
        near: npt.NDArray[np.int32] = columns.vectors(self._name).nearest_candidates(ordinals, query, max(count, 1))
        return near

    def _vector(self, run: Run) -> Vector | None:
        key = (self, "vector")
        if key not in run.memo:
            query = self._query(run)
            if isinstance(query, str):
                run.memo[key] = run.embedder.vector(
                    query, dimension=self._dimension, model=self._model, target=self._name
                )
            else:
                run.memo[key] = None if query is None else as_vector(query, self._dimension, self._name)
        found = run.memo[key]
        assert found is None or isinstance(found, np.ndarray)
        return found


@dataclass(frozen=True, slots=True)
class Fusion:
    """Parameters of a reciprocal rank fusion.

    Attributes:
        first: the ranking whose order breaks ties.
        second: the other ranking.
        k: the RRF constant: greater values weigh first places less.
        depth: number of places of each ranking that count; None is all.
    """

    first: Scoring
    second: Scoring
    k: QueryValue
    depth: Count | None


def row_scores(scoring: Scoring, run: Run, columns: Columns, ordinals: Ordinals) -> Scores:
    """Return the scores of rows, some of which may have no node."""
    nowhere = ordinals == NONE
    if not nowhere.any():
        return scoring.scores(run, columns, ordinals)
    scores = np.full(len(ordinals), np.nan)
    scores[~nowhere] = scoring.scores(run, columns, ordinals[~nowhere])
    return scores
