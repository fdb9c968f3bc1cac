"""The rules of a schema as joins of Spark frames, on what a load leaves: of records with one id, the last of a merge.

A screening comes first: ids, tuples and ends of all types meet in one aggregation, whose groups say whether anything
may be wrong. Most loads end there. The exact checks follow only for those that do not: each is a frame of violations in
one layout, so that all of them are one job, and the first violation is its minimum. Keys are aggregated before they are
joined: a node that a million edges name is one row of a join.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  (as Spark's own documentation calls it)

from omnigraph.model.schema import ID, SRC
from omnigraph.pipeline.load.problems import Phase
from omnigraph.pipeline.load.tasks import PLACE, key_schema, tuple_column
from omnigraph.transaction.constraint_rules.rules import Degree, Rules
from omnigraph.transaction.mode import Mode

KEY_RULE = -1
"""The number of the rule `@key`, beside those of `@unique`."""
_ORDER = ("late", "phase", "rank", "nowhere", "place", "rule", "step", "key")
_MANY = 2**62
# What an id or a tuple is in the screening: of a row of the load, of a row of the snapshot, or named by an edge.
_NEW, _BASE, _NAMED = range(3)

Scan = Callable[..., DataFrame]
"""Scan columns of the rows of a type: `scan(type_key, *columns)`."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule.

    Attributes:
        late: 0 for an id or key that occurs twice in the load: reported before everything else.
        phase: the kind of rule.
        rank: the number of the type.
        nowhere: no row of the load is to blame.
        place: the position in the load of the row to blame.
        rule: the number of the rule among those of its kind.
        step: 1 for a tuple that a row of the graph holds, 0 for one that a row of the load holds.
        key: the id, the tuple or the node.
        holder: the id of the first of two entities with one tuple.
        other: the id of the second.
        count: the number of edges that leave a node.
        there: the id exists in the graph, and not twice in the load.
    """

    late: int
    phase: int
    rank: int
    nowhere: bool
    place: int
    rule: int
    step: int
    key: str
    holder: str
    other: str
    count: int
    there: bool


@dataclass(frozen=True, slots=True)
class Checks:
    """The checks of one load against one snapshot.

    Attributes:
        type_keys: types of which the load has rows, or which it replaces.
        own_ids: types of which a record has an id of its own.
        replaced: types whose content the load replaces.
        new: scans rows of the load that are not rejected.
        base: scans rows of the snapshot.
        base_rows: by type key, the number of rows of the snapshot.
        repeats: types of which the load has rows with one id, of which the last wins.
        every: report every row to blame, not only the first.
        suspects: the domains in which a rule may be broken; None for all.
    """

    session: SparkSession
    rules: Rules
    mode: Mode
    type_keys: frozenset[str]
    own_ids: frozenset[str]
    replaced: frozenset[str]
    new: Scan
    base: Scan
    base_rows: Mapping[str, int]
    repeats: frozenset[str] = frozenset()
    every: bool = False
    suspects: frozenset[int] | None = None

    def violations(self, phases: frozenset[Phase]) -> DataFrame | None:
        """Return a frame of violations in order of `Violation`; None if no rule applies."""
        found: list[DataFrame] = []
        for key in self.rules.types:
            if Phase.IDENTITY in phases and key in self.own_ids and self._is_suspect(self._ids_domain(key)):
                found += self._identity(key)
            if Phase.UNIQUE in phases and key in self.type_keys:
                found += self._unique(key)
            if Phase.END in phases:
                found += self._ends(key)
            if Phase.DEGREE in phases and key in self.type_keys:
                found += self._degrees(key)
        return reduce(DataFrame.union, found) if found else None

    def first(self, frame: DataFrame) -> DataFrame:
        """Return a frame of the first violation only."""
        return frame.orderBy(*_ORDER).limit(1)

    def superseded(self) -> DataFrame | None:
        """Return `rank` and `place` of rows of a merge that a later row with the same id replaces."""
        found = []
        for rank, (key, rules) in enumerate(self.rules.types.items()):
            if self.mode is Mode.MERGE and key in self.own_ids and rules.key is None and self._is_suspect(rank):
                rows = self.new(key, ID, PLACE)
                earlier = rows.join(_repeated(rows), ID).where("place < last")
                found.append(earlier.select(F.lit(rank).alias("rank"), PLACE))
        return reduce(DataFrame.union, found) if found else None

    def screening(self, *, with_ids: bool) -> DataFrame:
        """Return `suspect`, `rank`, `place`, `id` and `stays`: domains where a rule may be broken, and rows to replace.

        Rows of the snapshot that a merge or an overwrite replaces have their address in `place`; `stays` is whether
        their id gets a new row. Cardinality is not screened.

        Args:
            with_ids: else the ids are null.
        """
        events = self._events()
        groups = events.groupBy("domain", "key").agg(
            F.sum(F.expr(f"int(kind = {_NEW})")).alias("new"),
            F.sum(F.expr(f"int(kind = {_BASE})")).alias("base"),
            F.sum(F.expr(f"int(kind = {_NAMED})")).alias("named"),
            F.max(F.expr(f"if(kind = {_BASE}, place, null)")).alias(PLACE),
            F.min("owner").alias("one"),
            F.max("owner").alias("other"),
        )
        is_id = F.col("domain") < len(self.rules.types)
        missing = "named > 0 and new = 0 and base = 0"
        replaced_ids = [rank for rank, key in enumerate(self.rules.types) if key in self.replaced]
        if replaced_ids:
            missing = f"({missing}) or (named > 0 and new = 0 and domain in ({', '.join(map(str, replaced_ids))}))"
        there = "new > 0 and base > 0" if self.mode is Mode.APPEND else "false"
        held = "new > 0 and base > 0 and one != other"
        wrong_id, wrong_tuple = F.expr(f"new > 1 or ({missing}) or ({there})"), F.expr(f"new > 1 or ({held})")
        suspect = groups.where((is_id & wrong_id) | (~is_id & wrong_tuple)).select("domain").distinct()
        columns = ["suspect", "rank", PLACE, ID, "stays"]
        empty = F.lit(None).cast("string")
        nothing = (F.lit(0).cast("bigint"), empty, F.lit(False))  # noqa: FBT003  (of Spark)
        suspects = suspect.select(F.lit(True), "domain", *nothing).toDF(*columns)  # noqa: FBT003
        going = [rank for rank, key in enumerate(self.rules.types) if key in self._replacing()]
        if not going:
            return suspects
        lost = groups.where(F.col("domain").isin(going) & F.expr("base > 0"))
        if not self.replaced:
            lost = lost.where("new > 0")
        ids = F.col("key") if with_ids else empty
        return suspects.union(lost.select(F.lit(False), "domain", PLACE, ids, F.expr("new > 0")).toDF(*columns))  # noqa: FBT003

    def has_degrees(self) -> bool:
        """Whether cardinality must be checked."""
        return any(self.rules.types[key].degree is not None for key in self.type_keys)

    def _replacing(self) -> frozenset[str]:
        """The types of which the load replaces rows."""
        own = self.replaced if self.mode is Mode.OVERWRITE else self.own_ids if self.mode is Mode.MERGE else frozenset()
        return frozenset(key for key in own if self.base_rows[key])

    def _events(self) -> DataFrame:
        """Return `domain`, `key`, `kind`, `place` and `owner` of everything that must be compared.

        A domain is the ids of a type, numbered like it, or the tuples of a uniqueness rule.
        """
        ranks, tuples = {key: self._ids_domain(key) for key in self.rules.types}, self._tuple_domains()
        named = {end.node_key for key in self.type_keys for end in self.rules.types[key].ends}
        found = []
        for key, rules in self.rules.types.items():
            distinct = [number for number, _ in enumerate(rules.distinct)] if key in self.type_keys else []
            new: list[tuple[int, str, int]] = []
            base: list[tuple[int, str, int]] = []
            if key in self.own_ids:
                new.append((ranks[key], ID, _NEW))
            if key in self.type_keys:
                new += [(ranks[end.node_key], end.column, _NAMED) for end in rules.ends]
                new += [(tuples[key, number], tuple_column(number), _NEW) for number in distinct]
            if key in self.own_ids or key in named or key in self.replaced:
                base.append((ranks[key], ID, _BASE))
            if key not in self.replaced:
                base += [(tuples[key, number], tuple_column(number), _BASE) for number in distinct]
                base += [
                    (ranks[end.node_key], end.column, _NAMED) for end in rules.ends if end.node_key in self.replaced
                ]
            if new:
                found.append(self._exploded(self.new, key, new, with_owner=bool(distinct)))
            if base and self.base_rows[key]:
                found.append(self._exploded(self.base, key, base, with_owner=bool(distinct)))
        layout = "domain int, key string, kind int, place bigint, owner bigint"
        return reduce(DataFrame.union, found) if found else self.session.createDataFrame([], layout)

    def _ids_domain(self, key: str) -> int:
        return list(self.rules.types).index(key)

    def _tuple_domains(self) -> dict[tuple[str, int], int]:
        rules = [(key, number) for key, rules in self.rules.types.items() for number, _ in enumerate(rules.distinct)]
        return {rule: len(self.rules.types) + at for at, rule in enumerate(rules)}

    def _is_suspect(self, domain: int) -> bool:
        return self.suspects is None or domain in self.suspects

    def _exploded(self, scan: Scan, key: str, events: list[tuple[int, str, int]], *, with_owner: bool) -> DataFrame:
        columns = dict.fromkeys((*(column for _, column, _ in events), PLACE, *([ID] if with_owner else [])))
        owner = F.xxhash64(F.col(ID)) if with_owner else F.lit(None).cast("bigint")
        made = [
            F.struct(
                F.lit(domain).alias("domain"),
                F.col(column).alias("key"),
                F.lit(kind).alias("kind"),
                F.col(PLACE).alias(PLACE),
                owner.alias("owner"),
            )
            for domain, column, kind in events
        ]
        return scan(key, *columns).select(F.inline(F.array(*made))).where("key is not null")

    # -- states -------------------------------------------------------------------------------------------------------

    def _final(self, key: str, *columns: str) -> DataFrame:
        """Rows that the load leaves."""
        if key not in self.repeats:
            return self.new(key, *columns)
        rows = self.new(key, *dict.fromkeys((*columns, ID, PLACE)))
        last = rows.join(_repeated(rows.select(ID, PLACE)), ID, "left").where("last is null or place = last")
        return last.select(*columns)

    def _leaves(self, key: str, *columns: str) -> DataFrame | None:
        """Rows of the snapshot that the load replaces."""
        if not self.base_rows[key]:
            return None
        if key in self.replaced:
            return self.base(key, *columns)
        if self.mode is not Mode.MERGE or key not in self.own_ids:
            return None
        rows = self.base(key, *dict.fromkeys((*columns, ID)))
        return rows.join(self.new(key, ID), ID, "left_semi").select(*columns)

    def _stays(self, key: str, *columns: str) -> DataFrame | None:
        """Rows of the snapshot that the load does not replace."""
        if not self.base_rows[key] or key in self.replaced:
            return None
        if self.mode is not Mode.MERGE or key not in self.own_ids:
            return self.base(key, *columns)
        rows = self.base(key, *dict.fromkeys((*columns, ID)))
        return rows.join(self.new(key, ID), ID, "left_anti").select(*columns)

    def _nodes(self, key: str) -> DataFrame:
        """Ids of the nodes of a type that there will be."""
        parts = []
        if self.base_rows[key] and key not in self.replaced:
            parts.append(self.base(key, ID))
        if key in self.own_ids:
            parts.append(self.new(key, ID))
        return reduce(DataFrame.union, parts) if parts else self._empty(ID)

    def _empty(self, *columns: str) -> DataFrame:
        return self.session.createDataFrame([], key_schema(columns))

    # -- checks -------------------------------------------------------------------------------------------------------

    def _identity(self, key: str) -> Iterator[DataFrame]:
        """Ids that occur twice, or exist already."""
        rows = self.new(key, ID, PLACE)
        is_keyed = self.rules.types[key].key is not None
        if is_keyed or self.mode is not Mode.MERGE:
            later = rows.join(_repeated(rows), ID).where("place > first")
            phase, rule = (Phase.UNIQUE, KEY_RULE) if is_keyed else (Phase.IDENTITY, 0)
            yield self._violation(later, key, phase, late=0, rule=rule, subject=F.col(ID))
        if self.mode is Mode.APPEND and self.base_rows[key]:
            there = rows.join(self.base(key, ID), ID, "left_semi")
            yield self._violation(there, key, Phase.IDENTITY, subject=F.col(ID), there=True)

    def _unique(self, key: str) -> Iterator[DataFrame]:
        """Tuples that two entities share."""
        for number, _ in enumerate(self.rules.types[key].distinct):
            if not self._is_suspect(self._tuple_domains()[key, number]):
                continue
            column = tuple_column(number)
            rows = self._final(key, ID, PLACE, column).where(F.col(column).isNotNull())
            shared = rows.groupBy(column).agg(
                F.min_by(ID, PLACE).alias("holder"), F.min(PLACE).alias("first"), F.count("*").alias("times")
            )
            later = rows.join(shared.where("times > 1"), column).where("place > first")
            both: dict[str, Any] = {"holder": F.col("holder"), "other": F.col(ID)}
            yield self._violation(later, key, Phase.UNIQUE, rule=number, subject=F.col(column), **both)
            held = self._stays(key, ID, column)
            if held is not None:
                taken = rows.join(held.withColumnRenamed(ID, "holder"), column).where("id != holder")
                yield self._violation(taken, key, Phase.UNIQUE, rule=number, step=1, subject=F.col(column), **both)

    def _ends(self, key: str) -> Iterator[DataFrame]:
        """Nodes that edges name and that do not exist."""
        for number, end in enumerate(self.rules.types[key].ends):
            if not self._is_suspect(self._ids_domain(end.node_key)):
                continue
            column = end.column
            if key in self.type_keys:
                rows = self._final(key, column, PLACE)
                named = rows if self.every else rows.groupBy(column).agg(F.min(PLACE).alias(PLACE))
                missing = named.join(self._nodes(end.node_key).withColumnRenamed(ID, column), column, "left_anti")
                yield self._violation(missing, key, Phase.END, rule=number, subject=F.col(column))
            elif end.node_key in self.replaced:
                kept = self._stays(key, column)
                if kept is not None:
                    nodes = self._nodes(end.node_key).withColumnRenamed(ID, column)
                    missing = kept.distinct().join(nodes, column, "left_anti").withColumn(PLACE, F.lit(0))
                    nowhere = F.lit(True)  # noqa: FBT003  (of Spark)
                    yield self._violation(missing, key, Phase.END, rule=number, subject=F.col(column), nowhere=nowhere)

    def _degrees(self, key: str) -> Iterator[DataFrame]:
        """Nodes that too many or too few edges leave."""
        rule = self.rules.types[key].degree
        if rule is None:
            return
        counted = ("count(*) as n", "min(place) as place")
        new = self._final(key, SRC, PLACE).groupBy(SRC).agg(*map(F.expr, counted))
        parts = [new.selectExpr(SRC, "n", "n as own", "place", "true as touched")]
        kept, lost = self._stays(key, SRC), self._leaves(key, SRC)
        nothing = ("cast(0 as bigint) as own", "cast(null as bigint) as place")
        if kept is not None:
            parts.append(kept.groupBy(SRC).count().selectExpr(SRC, "count as n", *nothing, "false as touched"))
        if lost is not None:
            parts.append(lost.distinct().selectExpr(SRC, "cast(0 as bigint) as n", *nothing, "true as touched"))
        total = (
            reduce(DataFrame.union, parts)
            .groupBy(SRC)
            .agg(
                F.sum("n").alias("n"), F.sum("own").alias("own"), F.min(PLACE).alias(PLACE), F.max("touched").alias("t")
            )
            .where(f"t and (n < {rule.least} or n > {_MANY if rule.most is None else rule.most})")
        )
        wrong = total.join(self._nodes(rule.node_key).withColumnRenamed(ID, SRC), SRC, "left_semi")
        if self.every:
            yield from self._surplus(key, rule, wrong)
        else:
            yield self._degree(key, wrong.withColumn("nowhere", F.col(PLACE).isNull()))

    def _surplus(self, key: str, rule: Degree, wrong: DataFrame) -> Iterator[DataFrame]:
        """Blame the last edges of nodes with too many; no row for nodes with too few, or too many before."""
        most = _MANY if rule.most is None else rule.most
        blamed = wrong.where(f"n - {most} between 1 and own").select(SRC, "n")
        latest = Window.partitionBy(SRC).orderBy(F.col(PLACE).desc())
        rows = self._final(key, SRC, PLACE).join(blamed, SRC).withColumn("number", F.row_number().over(latest))
        yield self._degree(key, rows.where(f"number <= n - {most}").withColumn("nowhere", F.lit(False)))  # noqa: FBT003
        others = wrong.where(f"not (n - {most} between 1 and own)")
        yield self._degree(key, others.withColumn("nowhere", F.lit(True)))  # noqa: FBT003

    def _degree(self, key: str, rows: DataFrame) -> DataFrame:
        return self._violation(rows, key, Phase.DEGREE, subject=F.col(SRC), count=F.col("n"), nowhere=F.col("nowhere"))

    def _violation(
        self,
        rows: DataFrame,
        key: str,
        phase: Phase,
        *,
        subject: Column,
        late: int = 1,
        rule: int = 0,
        step: int = 0,
        there: bool = False,
        nowhere: Column | None = None,
        holder: Column | None = None,
        other: Column | None = None,
        count: Column | None = None,
    ) -> DataFrame:
        nothing = F.lit("")
        columns: dict[str, Any] = {
            "late": F.lit(late),
            "phase": F.lit(int(phase)),
            "rank": F.lit(list(self.rules.types).index(key)),
            "nowhere": F.lit(False) if nowhere is None else nowhere,  # noqa: FBT003  (of Spark)
            "place": F.coalesce(F.col(PLACE), F.lit(0)).cast("bigint"),
            "rule": F.lit(rule),
            "step": F.lit(step),
            "key": subject,
            "holder": nothing if holder is None else holder,
            "other": nothing if other is None else other,
            "count": F.lit(0).cast("bigint") if count is None else count.cast("bigint"),
            "there": F.lit(there),
        }
        return rows.select(*(column.alias(name) for name, column in columns.items()))


def _repeated(rows: DataFrame) -> DataFrame:
    """Ids that occur more than once, with the first and the last place."""
    counted = rows.groupBy(ID).agg(F.min(PLACE).alias("first"), F.max(PLACE).alias("last"), F.count("*").alias("times"))
    return counted.where("times > 1").drop("times")
