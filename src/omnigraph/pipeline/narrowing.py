"""What a statement of SQL needs of the tables it names: which columns, and which rows.

Spark hands neither down to a source that is written in Python without keeping the conditions of one plan for the next.
So the plan that Spark has made of a statement is looked through before the statement runs: a column that no step of it
needs is not read, and a condition that stands right above a table is judged by the scan as well. Spark judges it again;
a scan may only leave out what would be dropped anyway. Where a step is of a kind that is not known here, everything
below it is needed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from omnigraph.errors import InvalidRequestError
from omnigraph.pipeline.session import is_remote

# ruff: noqa: ANN401  (what lives in Java has no type here)

MARK = "omnigraph.type"
_NOT_A_QUERY = "this statement is no query; only what reads can be asked here"
_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical"
# Steps that hand on what is below them, and those that hand on only what they name.
_HANDS_ON = frozenset({"Filter", "Join", "Sort", "GlobalLimit", "LocalLimit"})
_NAMES = frozenset({"Project", "Aggregate"})
_COMPARED = {"EqualTo": "=", "GreaterThan": ">", "GreaterThanOrEqual": ">=", "LessThan": "<", "LessThanOrEqual": "<="}
# Of these kinds scans and Spark agree on every comparison; of fractions they do not on zeroes with a sign.
_JUDGED = frozenset({"string", "tinyint", "smallint", "int", "bigint", "boolean"})


@dataclass(slots=True)
class Needed:
    """What is needed of one type.

    Attributes:
        conditions: for each place where the type stands, what its rows must satisfy; None for all of them.
    """

    columns: set[str] = field(default_factory=set)
    conditions: list[str | None] = field(default_factory=list)

    @property
    def where(self) -> str | None:
        """A condition for all places; None where all rows are needed."""
        known = [item for item in self.conditions if item is not None]
        if not known or len(known) < len(self.conditions):
            return None
        return " or ".join(f"({item})" for item in dict.fromkeys(known))


def marked(columns: StructType, type_key: str) -> StructType:
    """Columns that say of which type they are, wherever they are found in a plan.

    Returns:
        StructType: the same columns.
    """
    return StructType([StructField(item.name, item.dataType, item.nullable, {MARK: type_key}) for item in columns])


def clone_session(spark: SparkSession) -> SparkSession:
    """Return a session with the same settings and views, whose views are its own from now on."""
    if is_remote(spark):
        cloned: Any = spark
        return cast(SparkSession, cloned.cloneSession())
    return SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())


def refuse_commands(session: SparkSession, text: str) -> None:
    """Nothing but a query: a command would be carried out as soon as it is planned.

    Args:
        session: whose language it is.
        text: the statement.

    Raises:
        InvalidRequestError: it is no query.
        ParseException: it is no SQL.
    """
    if is_remote(session):
        _refuse_commands_by_parsing(session, text)
        return
    java = _java(session)
    parsed = session._jsparkSession.sessionState().sqlParser().parsePlan(text)
    forbidden = [java.java.lang.Class.forName(f"{_LOGICAL}.{name}") for name in ("Command", "ParsedStatement")]
    if any(kind.isInstance(item) for item in _nodes(parsed) for kind in forbidden):
        raise InvalidRequestError(_NOT_A_QUERY, code="not_a_query")


def _refuse_commands_by_parsing(session: SparkSession, text: str) -> None:
    """Refuse what cannot stand in the place of a table; to analyse that carries nothing out."""
    try:
        session.sql(f"select * from (\n{text}\n) limit 0").schema  # noqa: B018  (analyses the text)
    except ParseException:
        session.sql(f"explain {text}").collect()  # raises if the text is not SQL
        raise InvalidRequestError(_NOT_A_QUERY, code="not_a_query") from None


def needed(frame: DataFrame) -> Mapping[str, Needed]:
    """What a query needs of every type whose columns are marked.

    Args:
        frame: the query.

    Returns:
        Mapping[str, Needed]: by type key; a type of which nothing is needed is not there.
    """
    if is_remote(frame.sparkSession):
        return {}  # a client of Spark Connect does not see the plan: everything is read
    plan = frame._jdf.queryExecution().optimizedPlan()
    found: dict[str, Needed] = {}
    _look(plan, _ids(plan.output()), None, found, _java(frame.sparkSession))
    return found


def _look(node: Any, wanted: set[int], above: Any, found: dict[str, Needed], java: Any) -> None:
    for item in _listed(node.subqueries()):
        _look(item, _ids(item.output()), None, found, java)
    output = _listed(node.output())
    types = {item.metadata().getString(MARK) for item in output if item.metadata().contains(MARK)}
    children, kind = _listed(node.children()), _kind(node)
    if kind == "MapInArrow" and len(types) == 1:
        mine = found.setdefault(types.pop(), Needed())
        mine.columns |= {item.name() for item in output if item.exprId().id() in wanted}
        mine.conditions.append(_condition(above, java))
        return
    if kind in _HANDS_ON or kind in _NAMES:
        named = _ids(node.references().toSeq())
        below = named if kind in _NAMES else named | wanted
    else:
        below = {number for item in children for number in _ids(item.output())}
    for item in children:
        _look(item, below, node if kind == "Filter" else None, found, java)


def _condition(above: Any, java: Any) -> str | None:
    """What stands right above a table, as far as a scan can judge it."""
    if above is None:
        return None
    kinds = {item.name(): item.dataType().simpleString() for item in _listed(above.child().output())}
    strategy = getattr(java.org.apache.spark.sql.execution.datasources, "DataSourceStrategy$")
    translate = getattr(strategy, "MODULE$").translateFilter
    known = []
    for item in _conjuncts(above.condition()):
        translated = translate(item, False)  # noqa: FBT003  (of Java; no nested columns)
        text = _text(translated.get(), kinds) if translated.isDefined() else None
        if text is not None:
            known.append(text)
    return " and ".join(known) or None


def _conjuncts(condition: Any) -> Iterator[Any]:
    if _kind(condition) == "And":
        yield from _conjuncts(condition.left())
        yield from _conjuncts(condition.right())
    else:
        yield condition


def _text(filter: Any, kinds: Mapping[str, str]) -> str | None:
    """A condition in the words of a scan; None for one that it might judge otherwise."""
    kind = _kind(filter)
    if kind in ("And", "Or"):
        sides = [_text(item, kinds) for item in (filter.left(), filter.right())]
        return None if None in sides else f"({sides[0]} {kind.lower()} {sides[1]})"
    if kind == "Not":
        text = _text(filter.child(), kinds)
        return None if text is None else f"(not {text})"
    if kind not in {*_COMPARED, "In", "IsNull", "IsNotNull"} or filter.attribute() not in kinds:
        return None
    column = f"`{filter.attribute()}`"
    if kind in ("IsNull", "IsNotNull"):
        return f"{column} is {'not ' if kind == 'IsNotNull' else ''}null"
    if kinds[filter.attribute()] not in _JUDGED:
        return None
    values = list(filter.values()) if kind == "In" else [filter.value()]
    texts = [_literal(item) for item in values]
    if not texts or None in texts:
        return None
    return f"{column} in ({', '.join(map(str, texts))})" if kind == "In" else f"{column} {_COMPARED[kind]} {texts[0]}"


def _literal(value: object) -> str | None:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case str():
            quoted = value.replace("'", "''")
            return f"'{quoted}'"
        case _:
            return None


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    for item in _listed(node.children()):
        yield from _nodes(item)


def _kind(of: Any) -> str:
    return str(of.getClass().getSimpleName())


def _ids(attributes: Any) -> set[int]:
    return {int(item.exprId().id()) for item in _listed(attributes)}


def _listed(sequence: Any) -> list[Any]:
    return [sequence.apply(place) for place in range(sequence.size())]


def _java(session: SparkSession) -> Any:
    return session.sparkContext._jvm
