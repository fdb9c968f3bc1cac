"""Steps that rank, to operators."""

from collections.abc import Collection, Sequence

from omnigraph.execution.expressions import plain, prepare
from omnigraph.execution.operators.operator import Frames
from omnigraph.execution.operators.order import SortKey
from omnigraph.execution.operators.scan import Count
from omnigraph.execution.search.rank import Rank, RankBest, RankFused, place_of
from omnigraph.execution.search.scoring import Bm25Scoring, Fusion, NearestScoring, Scoring
from omnigraph.execution.windows import at_most
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan import steps
from omnigraph.language.plan.pattern import OrderKey
from omnigraph.language.plan.steps import Step


def rank(rows: Frames, step: steps.Rank, best: Count | None, *, row: str | None) -> Frames:
    """The operator of a step that ranks.

    Args:
        rows (Frames): what it takes from.
        step (steps.Rank): the step.
        best (Count | None): where only the best rows are wanted, how many; see `best_of`.
        row (str | None): inside another step, the hidden column that tells which row around a row belongs to.

    Returns:
        Frames: its operator.
    """
    score = step.score
    if isinstance(score, ex.Rrf):
        fusion = Fusion(_scoring(score.first), _scoring(score.second), plain(score.k), at_most(step.depth))
        return RankFused(rows, fusion, name=step.name, row=row, required=step.required)
    if best is not None and row is None:
        return RankBest(rows, _scoring(score), name=step.name, at_most=best)
    return Rank(rows, _scoring(score), name=step.name, required=step.required)


def best_of(step: steps.Rank, later: Sequence[Step]) -> Count | None:
    """How many of the rows with the best scores are enough; None where others may be wanted too.

    They are if rows are put in the order of this score next, and only the first are kept. Scores that are computed in
    between, without dropping rows or looking at all of them, do not matter.
    """
    if not isinstance(step.score, ex.Nearest) or not step.required:
        return None
    for each in later:
        if isinstance(each, steps.Rank) and not each.required and not isinstance(each.score, ex.Rrf):
            continue
        if not isinstance(each, steps.Order) or each.at_most is None:
            return None
        first = each.keys[0]
        if isinstance(first.value, ex.Computed) and first.value.name == step.name and not first.descending:
            return at_most(each.at_most)
        return None
    return None


def place_keys(keys: Sequence[OrderKey], prepared: Sequence[SortKey], fused: Collection[str]) -> list[SortKey]:
    """Keys to sort by, with the places that decide between equal fused scores."""
    made: list[SortKey] = []
    for key, each in zip(keys, prepared, strict=True):
        made.append(each)
        if isinstance(key.value, ex.Computed) and key.value.name in fused:
            made.append(SortKey(prepare(ex.Computed(place_of(key.value.name), ex.I64))))
    return made


def _scoring(score: ex.Nearest | ex.Bm25) -> Scoring:
    if isinstance(score, ex.Nearest):
        return NearestScoring(score, plain(score.query))
    return Bm25Scoring(score, plain(score.query))
