"""Judging one share of the keys: who stands in whose way. Pure: tables in, findings out; no file is opened.

The rules and their order are those of `transaction.constraints`; here they are joins of columns.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from omnigraph.pipeline.load.keys import ADDRESS, COUNT, HOLDER, KEY, PLACE, Channel, Keys, Places, Sort
from omnigraph.pipeline.load.problems import Phase
from omnigraph.transaction.constraint_rules.rules import Degree, Rules
from omnigraph.transaction.mode import Mode

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

NOWHERE = -1
_NO_PLACES: Places = np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in the way.

    Attributes:
        phase: of which sort.
        type_key: of the row to blame.
        place: where that row is; `NOWHERE` where no row of the load is to blame.
        key: the id, tuple or node it is about.
        rule: of several rules of the sort, which.
        holder: of two that share a tuple, the id of the first.
        other: and of the second; of an id that is there twice, nothing.
        count: how many edges leave a node.
        is_there: of an id, whether it is in the graph already, and not twice in the load.
    """

    phase: Phase
    type_key: str
    place: int
    key: str
    rule: int = 0
    holder: str = ""
    other: str = ""
    count: int = 0
    is_there: bool = False

    @property
    def is_repeated(self) -> bool:
        """Whether it is about an id or key that occurs twice in the load, whatever is in the graph."""
        return (self.phase is Phase.IDENTITY and not self.is_there) or self.rule == NOWHERE


@dataclass(slots=True)
class Verdict:
    """What was found in one share, or in all of them.

    Attributes:
        findings: what is in the way.
        removed: by type key, addresses of rows that new ones replace.
        updated: by type key, the ids that are there already.
        deleted: by type key, the ids that are there and will not be.
        superseded: by type key, places of rows of which a later one has the id.
    """

    findings: list[Finding] = field(default_factory=list)
    removed: dict[str, list[Places]] = field(default_factory=dict)
    updated: dict[str, list[Any]] = field(default_factory=dict)
    deleted: dict[str, list[Any]] = field(default_factory=dict)
    superseded: dict[str, list[Places]] = field(default_factory=dict)

    def add(self, other: "Verdict") -> None:
        """Both together."""
        self.findings += other.findings
        for mine, theirs in (
            (self.removed, other.removed),
            (self.updated, other.updated),
            (self.deleted, other.deleted),
            (self.superseded, other.superseded),
        ):
            for key, some in theirs.items():
                mine.setdefault(key, []).extend(some)


@dataclass(frozen=True, slots=True)
class Judging:
    """How every share is judged.

    Attributes:
        rules: those of the schema.
        mode: what to do about entities that are there already.
        replaced: types whose content the load replaces.
        dropped: by type key, places of rows that no longer count, ascending.
        each: tell every row in the way, not only the first of each rule.
    """

    rules: Rules
    mode: Mode
    replaced: frozenset[str]
    dropped: Mapping[str, Places] = field(default_factory=dict)
    each: bool = False


def judge(keys: Keys, judging: Judging, phases: frozenset[Phase]) -> Verdict:
    """Judge one share.

    Args:
        keys (Keys): all that arrived there.
        judging (Judging): how.
        phases (frozenset[Phase]): which sorts of rules.

    Returns:
        Verdict: what was found.
    """
    share = _Share(keys, judging)
    verdict = Verdict()
    for key in judging.rules.types:
        if Phase.IDENTITY in phases:
            share.identity(key, verdict)
        if Phase.UNIQUE in phases:
            verdict.findings += share.unique(key)
        if Phase.END in phases:
            verdict.findings += share.ends(key)
        if Phase.DEGREE in phases:
            verdict.findings += share.degrees(key)
    if not judging.each:
        verdict.findings = _first_of_each(verdict.findings)
    return verdict


class _Share:
    def __init__(self, keys: Keys, judging: Judging) -> None:
        self._keys = keys
        self._judging = judging
        self._present: dict[str, Any] = {}

    def identity(self, key: str, verdict: Verdict) -> None:
        """Ids that occur twice, or are there already."""
        new, base = self._new(Sort.ID, key), self._there(Sort.BASE, key)
        rule = self._judging.rules.types[key].key
        overwrites = key in self._judging.replaced
        if new is not None:
            later, earlier = _repeated(new)
            if rule is not None:
                verdict.findings += _findings(Phase.UNIQUE, key, later, rule=NOWHERE)
            elif self._judging.mode is Mode.MERGE:
                if len(earlier):
                    verdict.superseded[key] = [_places(earlier)]
            else:
                verdict.findings += _findings(Phase.IDENTITY, key, later)
        if base is None:
            return
        mine = pa.array([], pa.string()) if new is None else new.column(KEY).combine_chunks()
        both = pc.is_in(base.column(KEY), value_set=mine)
        if overwrites:
            verdict.updated[key] = [base.column(KEY).filter(both).combine_chunks()]
            verdict.deleted[key] = [base.column(KEY).filter(pc.invert(both)).combine_chunks()]
        elif self._judging.mode is Mode.MERGE:
            verdict.updated[key] = [base.column(KEY).filter(both).combine_chunks()]
            verdict.removed[key] = [base.column(ADDRESS).filter(both).to_numpy().astype(np.uint64)]
        elif new is not None:
            taken = base.column(KEY).filter(both).combine_chunks()
            there = new.filter(pc.is_in(new.column(KEY), value_set=taken))
            verdict.findings += _findings(Phase.IDENTITY, key, there, is_there=True)

    def unique(self, key: str) -> Iterator[Finding]:
        """Tuples that two entities share."""
        for number, _ in enumerate(self._judging.rules.types[key].distinct):
            new, held = self._new(Sort.TUPLE, key, number), self._there(Sort.HELD, key, number)
            if new is None:
                continue
            later, _ = _repeated(new)
            if len(later):
                first = _first_holder(new, later)
                yield from _shared(key, number, later, first)
            if held is not None:
                at = pc.index_in(new.column(KEY), value_set=held.column(KEY).combine_chunks())
                holder = held.column(HOLDER).combine_chunks().take(at.combine_chunks())
                taken = pc.fill_null(pc.not_equal(holder, new.column(HOLDER).combine_chunks()), fill_value=False)
                yield from _shared(key, number, new.filter(taken), holder.filter(taken))

    def ends(self, key: str) -> Iterator[Finding]:
        """Nodes that edges name and that are not there."""
        for number, end in enumerate(self._judging.rules.types[key].ends):
            new, left = self._new(Sort.END, key, number), self._there(Sort.LEFT, key, number)
            if new is not None:
                gone = pc.invert(pc.is_in(new.column(KEY), value_set=self._nodes(end.node_key)))
                yield from _findings(Phase.END, key, new.filter(gone), rule=number)
            if left is not None:
                gone = pc.invert(pc.is_in(left.column(KEY), value_set=self._nodes(end.node_key)))
                for each in left.column(KEY).filter(gone).to_pylist():
                    yield Finding(Phase.END, key, NOWHERE, str(each), number)

    def degrees(self, key: str) -> Iterator[Finding]:
        """Nodes that too many or too few edges leave."""
        rule = self._judging.rules.types[key].degree
        if rule is None:
            return
        new, kept, lost = self._new(Sort.FROM, key), self._there(Sort.KEPT, key), self._there(Sort.LOST, key)
        touched = [each.column(KEY).combine_chunks() for each in (new, lost) if each is not None]
        if not touched:
            return
        nodes = pc.unique(pa.concat_arrays(touched))
        total = np.zeros(len(nodes), np.int64)
        for some in (new, kept):
            if some is not None:
                at = pc.index_in(some.column(KEY), value_set=nodes).to_numpy(zero_copy_only=False)
                there = ~np.isnan(at) if at.dtype.kind == "f" else np.ones(len(at), bool)
                np.add.at(total, at[there].astype(np.int64), some.column(COUNT).to_numpy()[there])
        wrong = (total < rule.least) | (total > (2**62 if rule.most is None else rule.most))
        wrong &= pc.is_in(nodes, value_set=self._nodes(rule.node_key)).to_numpy(zero_copy_only=False)
        for at in np.flatnonzero(wrong).tolist():
            yield from self._blamed(rule, key, str(nodes[at].as_py()), int(total[at]), new)

    def _blamed(self, rule: Degree, key: str, node: str, count: int, new: pa.Table | None) -> Iterator[Finding]:
        mine = _NO_PLACES if new is None else _places(new.filter(pc.equal(new.column(KEY), node)))
        surplus = 0 if rule.most is None else count - rule.most
        if not self._judging.each:
            yield Finding(Phase.DEGREE, key, int(mine.min()) if len(mine) else NOWHERE, node, count=count)
        elif 0 < surplus <= len(mine):
            for each in np.sort(mine)[-surplus:].tolist():
                yield Finding(Phase.DEGREE, key, each, node, count=count)
        else:
            yield Finding(Phase.DEGREE, key, NOWHERE, node, count=count)

    def _nodes(self, key: str) -> Any:  # noqa: ANN401  (a column of ids)
        """The nodes of a type that there will be."""
        known = self._present.get(key)
        if known is None:
            new, base = self._new(Sort.ID, key), self._there(Sort.BASE, key)
            parts = [] if new is None else [new.column(KEY).combine_chunks()]
            if base is not None and key not in self._judging.replaced:
                parts.append(base.column(KEY).combine_chunks())
            known = self._present[key] = pa.concat_arrays(parts) if parts else pa.array([], pa.string())
        return known

    def _new(self, sort: Sort, key: str, rule: int = 0) -> pa.Table | None:
        """Keys of new rows, without those that no longer count."""
        found = self._keys.get(Channel(sort, key, rule))
        dropped = self._judging.dropped.get(key)
        if found is None or dropped is None or not len(dropped):
            return found
        return found.filter(pa.array(~np.isin(_places(found), dropped)))

    def _there(self, sort: Sort, key: str, rule: int = 0) -> pa.Table | None:
        return self._keys.get(Channel(sort, key, rule))


def _places(table: pa.Table) -> Places:
    return table.column(PLACE).to_numpy().astype(np.uint64)


def _repeated(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Of rows with a key that others have too: all but the first, and all but the last."""
    encoded = pc.dictionary_encode(table.column(KEY)).combine_chunks()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    if len(encoded.dictionary) == len(codes):
        return table.slice(0, 0), table.slice(0, 0)
    order = np.lexsort((_places(table), codes))
    again = np.diff(codes[order]) == 0
    later = order[np.concatenate([[False], again])]
    earlier = order[np.concatenate([again, [False]])]
    return table.take(later), table.take(earlier)


def _first_holder(table: pa.Table, later: pa.Table) -> Any:  # noqa: ANN401  (a column of ids)
    """For each of some rows, who was the first with its key."""
    ordered = table.take(np.argsort(_places(table), kind="stable"))
    at = pc.index_in(later.column(KEY), value_set=ordered.column(KEY).combine_chunks())
    return ordered.column(HOLDER).combine_chunks().take(at.combine_chunks())


def _shared(key: str, number: int, rows: pa.Table, holders: Any) -> Iterator[Finding]:  # noqa: ANN401  (a column of ids)
    columns = (rows.column(KEY), rows.column(PLACE), rows.column(HOLDER), holders)
    for text, at, other, holder in zip(*(each.to_pylist() for each in columns), strict=True):
        yield Finding(Phase.UNIQUE, key, at, text, number, str(holder), str(other))


def _findings(phase: Phase, key: str, rows: pa.Table, *, rule: int = 0, is_there: bool = False) -> Iterator[Finding]:
    for text, at in zip(rows.column(KEY).to_pylist(), _places(rows).tolist(), strict=True):
        yield Finding(phase, key, at, str(text), rule, is_there=is_there)


def _first_of_each(findings: list[Finding]) -> list[Finding]:
    first: dict[tuple[Phase, str, int, bool, bool], Finding] = {}
    for each in findings:
        of = (each.phase, each.type_key, each.rule, each.place == NOWHERE, each.is_there)
        known = first.get(of)
        if known is None or each.place < known.place or (each.place == NOWHERE and each.key < known.key):
            first[of] = each
    return list(first.values())
