"""The scores of nodes: how far their vectors are, how well their texts match."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnigraph.execution.arrays import NONE, Ordinals, numpy, once, pc
from omnigraph.execution.columns import Columns
from omnigraph.execution.frame import Frame
from omnigraph.execution.operators.scan import Count
from omnigraph.execution.run import Run
from omnigraph.execution.search.asked import as_vector, different_words
from omnigraph.execution.search.bm25 import Scores, bm25
from omnigraph.execution.search.stored_vectors import nearest_in_pieces, stored_nearest
from omnigraph.execution.search.vectors import Vector, distances, matrix_of
from omnigraph.language.plan import expressions as ex
from omnigraph.model.schema import ID

# What a query looks for, as a plain value.
Asking = Callable[[Frame], object]

# Fewer vectors than this are compared exactly at once.
_COMPARED_AT_ONCE_MAX = 2_048


@dataclass(frozen=True, slots=True)
class Ranked:
    """Nodes with their scores, best first; those with equal scores by their ids."""

    ordinals: Ordinals
    scores: Scores


class Scoring(ABC):
    """Computes one score. It keeps nothing of a run but in the run."""

    descending: bool

    def __init__(self, target: ex.Property, asking: Asking) -> None:
        self.variable = target.variable
        self._name = target.name
        self._asking = asking

    @abstractmethod
    def scores(self, run: Run, columns: Columns, ordinals: Ordinals) -> Scores:
        """The scores of nodes.

        Args:
            run (Run): the execution.
            columns (Columns): their type.
            ordinals (Ordinals): which, each of which is there.

        Returns:
            Scores: not a number where a node has none.
        """

    def candidates(self, run: Run, columns: Columns, ordinals: Ordinals, count: int) -> Ordinals:  # noqa: ARG002  (others choose by it)
        """At least the best so many of these nodes, and all that are as good as the last of them."""
        return ordinals

    def best(self, run: Run, columns: Columns, ordinals: Ordinals, count: int | None) -> Ranked:
        """The best of some nodes.

        Args:
            run (Run): the execution.
            columns (Columns): their type.
            ordinals (Ordinals): each once.
            count (int | None): how many; None is all that have a score.
        """
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
            order = np.lexsort([numpy(ids), keys])
        order = order[:count]
        return Ranked(ordinals[order], scores[order])

    def _asked(self, run: Run) -> object:
        """What the query looks for, computed once."""
        kept = run.kept
        if self not in kept:
            kept[self] = self._asking(Frame(run, 1, {}))
        return kept[self]


class Bm25Scoring(Scoring):
    """How well texts match; greater is better."""

    descending = True

    def __init__(self, score: ex.Bm25, asking: Asking) -> None:
        super().__init__(score.target, asking)
        self._analyzer = score.analyzer

    def scores(self, run: Run, columns: Columns, ordinals: Ordinals) -> Scores:
        """Computed for all nodes of the type at once, which is where the worth of a word comes from."""
        text = self._asked(run)
        if text is None:
            return np.full(len(ordinals), np.nan)
        assert isinstance(text, str)
        key = (self, columns.key)
        found = run.kept.get(key)
        if found is None:
            texts = columns.texts(self._name, self._analyzer)
            found = run.kept[key] = bm25(texts, different_words(text, texts.analyzer))
        assert isinstance(found, np.ndarray)
        scores: Scores = found[ordinals]
        return scores


class NearestScoring(Scoring):
    """How far vectors are; less is better."""

    descending = False

    def __init__(self, score: ex.Nearest, asking: Asking) -> None:
        super().__init__(score.target, asking)
        assert score.target.type.vector_dim is not None
        self._dimension = score.target.type.vector_dim
        self._model = score.model

    def scores(self, run: Run, columns: Columns, ordinals: Ordinals) -> Scores:
        """Exact distances; only these nodes' vectors are fetched, where they are few."""
        query = self._vector(run)
        if query is None:
            return np.full(len(ordinals), np.nan)
        different = once(ordinals)
        pieces = [np.empty(0)]
        for _, vectors in columns.pieces(self._name, different):
            far = distances(matrix_of(vectors), query)
            if vectors.null_count:
                far[numpy(pc.is_null(vectors))] = np.nan
            pieces.append(far)
        found = pieces[1] if len(pieces) == 2 else np.concatenate(pieces)
        if len(different) == len(ordinals) and different is ordinals:
            return found
        return found[np.searchsorted(different, ordinals)]

    def candidates(self, run: Run, columns: Columns, ordinals: Ordinals, count: int) -> Ordinals:
        """Many are compared roughly first."""
        query = self._vector(run)
        if query is None or len(ordinals) <= max(_COMPARED_AT_ONCE_MAX, count):
            return ordinals
        if len(ordinals) == columns.numbering.count:
            index = columns.vector_index(self._name)
            if index is not None:
                return stored_nearest(columns, index, query, max(count, 1))
        if columns.is_read_in_pieces(self._name):
            return nearest_in_pieces(columns, self._name, once(ordinals), query, max(count, 1))
        near: npt.NDArray[np.int32] = columns.vectors(self._name).maybe_nearest(ordinals, query, max(count, 1))
        return near

    def _vector(self, run: Run) -> Vector | None:
        key = (self, "vector")
        if key not in run.kept:
            asked = self._asked(run)
            if isinstance(asked, str):
                run.kept[key] = run.embedder.vector(
                    asked, dimension=self._dimension, model=self._model, target=self._name
                )
            else:
                run.kept[key] = None if asked is None else as_vector(asked, self._dimension, self._name)
        found = run.kept[key]
        assert found is None or isinstance(found, np.ndarray)
        return found


@dataclass(frozen=True, slots=True)
class Fusion:
    """Two rankings fused.

    Attributes:
        first: whose order decides between equal sums.
        second: the other.
        k: how little the first places are worth more than later ones.
        depth: how many of each ranking take part; None is all.
    """

    first: Scoring
    second: Scoring
    k: Asking
    depth: Count | None


def row_scores(scoring: Scoring, run: Run, columns: Columns, ordinals: Ordinals) -> Scores:
    """The scores of rows, some of which may have no node."""
    nowhere = ordinals == NONE
    if not nowhere.any():
        return scoring.scores(run, columns, ordinals)
    scores = np.full(len(ordinals), np.nan)
    scores[~nowhere] = scoring.scores(run, columns, ordinals[~nowhere])
    return scores
