"""The state that two branches are compared with: their best common ancestor, or what several of them come to.

Both parents of every commit are followed. An ancestor of another common ancestor is never the best one, however short a
way leads to it: what happened between the two would count as done by both sides, and undoing it as done by neither.
Criss-cross merges leave several best ones. They are merged with each other, compared with what each two of them have in
common, as git's recursive strategy does; what they disagree about then is left open (`virtual_base`).
"""

import heapq
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph import ids, limits
from omnigraph.branch.merge.ancestry import Ancestry
from omnigraph.branch.merge.three_way import Image, OpenCells, any_of
from omnigraph.branch.row_changes import RowChanges
from omnigraph.errors import ConflictError
from omnigraph.model.commit import Record
from omnigraph.model.schema import ID
from omnigraph.storage.equal_values import Mask, same_rows, same_values

Parents = Callable[[str], tuple[str, ...]]
BASE_MISSING = "merge_base_missing"


_Masks = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Ancestors:
    """Best common ancestors of two commits, by their places among all states that a merge looks at.

    Attributes:
        places: of the best common ancestors.
        between: by the places of two of them, in order, their own best common ancestors; missing where not known.
    """

    places: tuple[int, ...]
    between: Mapping[tuple[int, int], "Ancestors"] = field(default_factory=dict)

    def up_to_date(self, same: Callable[[int, int], Mask], was: Callable[[int, tuple[int, int]], Mask]) -> _Masks:
        """Which of the best are not out of date.

        Args:
            same: tells where the values at two places are the same.
            was: tells where the value at a place is what two places had in common.
        """
        found = []
        for one in self.places:
            stays = np.ones_like(same(one, one))
            for pair in self.between:
                if one in pair:
                    stays = stays & ~(was(one, pair) & ~same(*pair))
            found.append(stays)
        return np.stack(found)

    def latest(self, values: Sequence[Hashable]) -> tuple[int, ...]:
        """The places of those that are not out of date, one for each of their values."""
        older = {pair: ancestors.latest(values) for pair, ancestors in self.between.items()}
        stays = self.up_to_date(
            lambda one, other: np.array([values[one] == values[other]]),
            lambda one, pair: np.array([{values[place] for place in older[pair]} == {values[one]}]),
        )
        found: dict[Hashable, int] = {}
        for place in (place for place, is_newest in zip(self.places, stays[:, 0], strict=True) if is_newest):
            found.setdefault(values[place], place)
        return tuple(found.values())

    def without(self, unknown: Set[int]) -> "Ancestors":
        """The same where nothing is known of some that are between two."""
        known = {
            pair: older.without(unknown) for pair, older in self.between.items() if unknown.isdisjoint(older.places)
        }
        return Ancestors(self.places, known)


ONE_ANCESTOR = Ancestors((0,))


@dataclass(frozen=True, slots=True)
class Base:
    """What a merge compares both sides with.

    Attributes:
        commit: the best common ancestor; of several the one nearest to both heads together, then the newest.
        states: entries that show the states of the best common ancestors, that of `commit` first, and then of those
            that two of them have in common in turn.
        ancestors: which of the states are which.
    """

    commit: str
    states: tuple[Record, ...]
    ancestors: Ancestors = ONE_ANCESTOR

    @property
    def state(self) -> Record:
        """An entry that shows the state of `commit`: its own, or of a branch that was forked there."""
        return self.states[0]

    @property
    def best(self) -> tuple[Record, ...]:
        """The states of all best common ancestors."""
        return tuple(self.states[place] for place in self.ancestors.places)


@dataclass(slots=True)
class Painted:
    """What a walk down from several commits has seen.

    Attributes:
        tips: how many commits it began with.
        reached_from: of every commit seen, which of the tips descend from it, as a bit set.
        by_child: likewise of each of its children.
        parents: of every commit seen, newest first.
        unexplored: those whose parents were not asked for, since nothing but common ancestors is below them.
    """

    tips: int
    reached_from: dict[str, int] = field(default_factory=dict)
    by_child: dict[str, set[int]] = field(default_factory=dict)
    parents: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unexplored: set[str] = field(default_factory=set)

    def is_shared(self, commit: str) -> bool:
        """Whether all tips descend from a commit."""
        return self.reached_from[commit] == (1 << self.tips) - 1

    def bases(self) -> list[str]:
        """Commits that may be the best common ancestor of two tips, newest first.

        One of whose children the same tips descend is not: that child is better for any two of them.
        """
        return [
            commit
            for commit in self.parents
            if self.reached_from[commit].bit_count() > 1
            and self.reached_from[commit] not in self.by_child.get(commit, ())
        ]

    def distances(self, start: str, steps: Callable[[str, str], int]) -> dict[str, int]:
        """The length of the shortest way from a commit to those below it."""
        found = {start: 0}
        for commit, parents in self.parents.items():
            for parent in parents if commit in found else ():
                found[parent] = min(found.get(parent, _FAR), found[commit] + steps(commit, parent))
        return found


_FAR = 2**62


def paint(tips: Iterable[str], parents: Parents) -> Painted:
    """Walk down from commits until everything left is below a common ancestor of all of them.

    Ids rise along every line of descent, so commits in the order of their ids, greatest first, come after everything
    that descends from them.
    """
    starts = list(dict.fromkeys(tips))
    seen = Painted(len(starts), {commit: 1 << place for place, commit in enumerate(starts)})
    below: set[str] = set()
    waiting = [(-ids.decode(commit), commit) for commit in starts]
    heapq.heapify(waiting)
    open_ends = len(waiting)  # those of the waiting that are not below a common ancestor
    while open_ends:
        _, commit = heapq.heappop(waiting)
        is_below = commit in below or seen.is_shared(commit)
        open_ends -= commit not in below
        seen.parents[commit] = ()
        if is_below and not open_ends:
            seen.unexplored.add(commit)
            break  # what is below it would only be known as such, and would have to be read for that
        seen.parents[commit] = parents(commit)
        for parent in seen.parents[commit]:
            if parent not in seen.reached_from:
                seen.reached_from[parent] = 0
                heapq.heappush(waiting, (-ids.decode(parent), parent))
                open_ends += 1
            if is_below and parent not in below:
                below.add(parent)
                open_ends -= 1
            seen.reached_from[parent] |= seen.reached_from[commit]
            seen.by_child.setdefault(parent, set()).add(seen.reached_from[commit])
    return seen


def best_common(
    source: str, target: str, parents: Parents, steps: Callable[[str, str], int] = lambda _commit, _parent: 1
) -> tuple[list[str], Painted]:
    """The common ancestors that no other common ancestor descends from, the best first, and all that was seen.

    Args:
        source: one commit.
        target: the other.
        parents: of a commit, or its nearest ancestors that are known.
        steps: how many commits there are from a commit to one of its `parents`.
    """
    if source == target:
        return [source], paint([source], parents)
    seen = paint([source, target], parents)
    ways = [seen.distances(start, steps) for start in (source, target)]
    best = seen.bases()
    best.sort(key=lambda commit: (sum(way[commit] for way in ways), -ids.decode(commit)))
    return best, seen


def merge_base(ancestry: Ancestry, source: Record, target: Record, *, named: str | None = None) -> Base:
    """The state that a merge compares both sides with.

    Raises:
        NotFoundError: the commit named is not there.
        ConflictError: they have no common ancestor (`no_common_history`), or it is not kept, or nothing tells any more
            which it is (`merge_base_missing`): an older one is never taken in its place.
    """
    best, seen = best_common(ancestry.enter(source), ancestry.enter(target), ancestry.parents, ancestry.steps)
    if named is not None:
        # On the way there are states that only branches hold: readers are not shown them, but they are there.
        return Base(named, (ancestry.states.get(named) or ancestry.named(named),))
    names = f"branches '{source.branch}' and '{target.branch}'"
    # Below an end that one side alone has reached there may be a common ancestor. Ids rise along every line, so it
    # is no better than a newer one that was found.
    lost = [end for end in ancestry.unknown if not seen.is_shared(end) and (not best or end > best[0])]
    if lost:
        raise base_missing(
            f"the common history of {names} cannot be followed below commit {max(lost)}, which was pruned"
        )
    if not best:
        raise ConflictError(f"{names} have no commit in common", code="no_common_history")
    for commit in best:
        if ancestry.state(commit) is None:
            raise base_missing(f"commit {commit}, the last that {names} have in common, was pruned")
    places = {commit: place for place, commit in enumerate(best)}
    ancestors = _ancestors(ancestry, best, places, limits.MERGE_BASE_LEVELS)
    return Base(best[0], tuple(ancestry.states[commit] for commit in places), ancestors)


def _ancestors(ancestry: Ancestry, commits: list[str], places: dict[str, int], levels: int) -> Ancestors:
    """Several best common ancestors with what each two of them have in common in turn, as far as that is known."""
    between = {}
    for one, other in combinations(commits, 2) if levels else ():
        older, seen = best_common(one, other, ancestry.parents, ancestry.steps)
        is_lost = any(end in seen.parents and not seen.is_shared(end) for end in ancestry.unknown)
        if older and not is_lost and all(ancestry.state(commit) is not None for commit in older):
            for commit in older:
                places.setdefault(commit, len(places))
            between[places[one], places[other]] = _ancestors(ancestry, older, places, levels - 1)
    return Ancestors(tuple(places[commit] for commit in commits), between)


def base_missing(what: str) -> ConflictError:
    """The error of a merge whose base is gone."""
    return ConflictError(
        f"{what}; name the commit to compare both sides with: merge(base=COMMIT), or --base COMMIT", code=BASE_MISSING
    )


@dataclass(frozen=True, slots=True)
class VirtualRows:
    """The rows of the base for some ids, in their order.

    Attributes:
        image: the rows, and which of them it has; the open ones among these.
        is_open: of which rows it is open whether it has them.
        open_cells: for every column, which cells are open.
    """

    image: Image
    is_open: Mask
    open_cells: Mapping[str, Mask]


def virtual_rows(ids: "pa.Array[Any]", ancestors: Ancestors, images: Sequence[Image]) -> VirtualRows:
    """Put together what ancestors have for some ids, cell by cell; whole rows where only some have them."""
    best, count = [images[place] for place in ancestors.places], len(ids)
    columns = [name for name in best[0].rows.column_names if name != ID]
    if len(best) == 1:
        nowhere = np.zeros(count, np.bool_)
        return VirtualRows(best[0], nowhere, dict.fromkeys(columns, nowhere))
    older = {pair: virtual_rows(ids, below, images) for pair, below in ancestors.between.items()}
    there = np.stack([image.there for image in best])
    is_mixed = there.any(axis=0) & ~there.all(axis=0)
    stays = ancestors.up_to_date(
        lambda one, other: _same_row(images[one], images[other], columns),
        lambda one, pair: (
            _same_row(images[one], older[pair].image, columns)
            & ~older[pair].is_open
            & ~any_of(older[pair].open_cells, count)
        ),
    )
    has, lacks = (stays & there).any(axis=0), (stays & ~there).any(axis=0)
    is_open = is_mixed & (has == lacks)
    exists = there.all(axis=0) | (is_mixed & (has | is_open))
    rows, open_cells = best[0].rows, {}
    for name in columns:

        def same_cell(one: int, other: int, name: str = name) -> Mask:
            return _same_cell(images[one], images[other], name)

        def was_cell(one: int, pair: tuple[int, int], name: str = name) -> Mask:
            return _same_cell(images[one], older[pair].image, name) & ~older[pair].open_cells[name]

        wanted = np.where(is_mixed, stays & there, ancestors.up_to_date(same_cell, was_cell))
        is_cycle = ~wanted.any(axis=0)
        chosen = np.where(is_cycle, there.argmax(axis=0), wanted.argmax(axis=0))
        cells = [image.rows.column(name).combine_chunks() for image in best]
        values = pa.concat_arrays(cells).take(chosen * count + np.arange(count))
        others = [wants & ~same_values(cell, values) for wants, cell in zip(wanted, cells, strict=True)]
        open_cells[name] = exists & (is_open | is_cycle | np.logical_or.reduce(others))
        rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), values)
    rows = rows.set_column(rows.schema.get_field_index(ID), rows.schema.field(ID), ids)
    return VirtualRows(Image(rows, exists), is_open, open_cells)


def _same_row(one: Image, other: Image, columns: Sequence[str]) -> Mask:
    """Where two states have the same row, or neither has one."""
    return np.where(one.there & other.there, same_rows(one.rows, other.rows, columns), one.there == other.there)


def _same_cell(one: Image, other: Image, name: str) -> Mask:
    """Where two states both have a row, with the same value in a column."""
    found: Mask = one.there & other.there & same_values(one.rows.column(name), other.rows.column(name))
    return found


def changes_since(base: VirtualRows, sides: Sequence[Image]) -> tuple[list[RowChanges], OpenCells]:
    """What two sides did since such a base, and which cells stay open: those on which they do not agree."""
    one, other = sides
    both = one.there & other.there
    exists = np.where(base.is_open & (one.there == other.there), one.there, base.image.there)
    rows, count = base.image.rows, base.image.rows.num_rows
    columns = [name for name in rows.column_names if name != ID]
    left_open = {}
    for name in columns:
        was, cell = (image.rows.column(name).combine_chunks() for image in (base.image, one))
        agreed = base.open_cells[name] & both & same_values(cell, other.rows.column(name))
        if agreed.any():
            values = pa.concat_arrays([was, cell]).take(np.arange(count) + np.where(agreed, count, 0))
            rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), values)
        left_open[name] = base.open_cells[name] & exists & ~agreed
    is_open = any_of(left_open, count)
    changes = []
    for side in sides:
        is_other = exists & side.there & (is_open | ~same_rows(side.rows, rows, columns))
        masks = (side.there & ~exists, is_other, is_other, exists & ~side.there)
        tables = (side.rows, rows, side.rows, rows)
        changes.append(RowChanges(*(some.filter(pa.array(mask)) for some, mask in zip(tables, masks, strict=True))))
    ids = rows.column(ID).combine_chunks().filter(pa.array(is_open))
    return changes, OpenCells(ids, {name: mask[is_open] for name, mask in left_open.items()})
