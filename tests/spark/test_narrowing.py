"""Queries in SQL that read no more than they need: the same answers, from fewer columns and rows."""

from collections.abc import Iterator

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import omnigraph
from omnigraph import Graph, InvalidRequestError
from omnigraph.pipeline import frames
from omnigraph.pipeline.narrowing import Needed, needed

SCHEMA = """
node Person { name: String @key age: I32? score: F64? big: U64? nick: String? }
edge Knows: Person -> Person { since: I32? }
"""
Read = dict[str, tuple[set[str], str | None]]


@pytest.fixture(scope="module")
def graph(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    assert spark.range(1).count() == 1
    with omnigraph.init(tmp_path_factory.mktemp("narrow") / "graph", SCHEMA) as made:
        people = [
            {
                "name": f"p{n}",
                "age": n if n % 5 else None,
                "score": [0.0, -0.0, -1.5, 2.5][n % 4],
                "big": 2**63 + n,
            }
            for n in range(40)
        ]
        people.append({"name": "O'Hara", "age": 7, "nick": "`o`"})
        knows = [{"from": f"p{n}", "to": f"p{n * 7 % 40}", "since": n} for n in range(40)]
        made.write({"Person": people}, {"Knows": knows})
        yield made


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    """What the last query read, by type: columns and condition."""
    told: Read = {}

    def noted(frame: DataFrame) -> "dict[str, Needed]":
        found = dict(needed(frame))
        told.clear()
        told.update({key: (each.columns, each.where) for key, each in found.items()})
        return found

    monkeypatch.setattr(frames, "needed", noted)
    return told


OFTEN = [
    "select p.name from Person p join Knows k on k.src = p.id where p.age in (1, 2, 9) or p.name = 'O''Hara'",
    "select name from Person where score = 0.0 and age > (select avg(since) from Knows where since > 10)",
    "select * from Person where not (age < 30) union all select * from Person where nick is not null",
]
QUERIES = [
    "select * from Person",
    "select count(*) from Person",
    "select name from Person where age >= 30",
    "select name from Person where score = 0.0",
    "select name from Person where score > 1",
    "select name from Person where big > 9223372036854775820",
    "select name from Person where age in (1, 2, 5) or name = 'O''Hara'",
    "select name from Person where not (age < 30) and nick is null",
    "select name from Person where age + 1 > 30 and age < 38",
    "select name from Person where name like 'p1%' and age <> 11",
    "select a.name, b.age from Knows k join Person a on k.src = a.id join Person b on k.dst = b.id where b.age > 20",
    "select a.name from Person a left join Knows k on k.src = a.id and k.since > 30 where k.since is null",
    "select name from Person where age < 3 union all select name from Person where age > 37",
    "select * from Person union all select * from Person",
    "select age, count(*) as n from Person where age > 5 group by age having count(*) > 0",
    "select name from Person where age > (select avg(since) from Knows where since > 10)",
    "select name from Person p where exists (select 1 from Knows where src = p.id and since < 4)",
    "select name from Person where id not in (select dst from Knows)",
    "with few as (select * from Person where age < 9) select a.name from few a join few b on a.age = b.age",
    "select name, row_number() over (order by name) as r from Person where age < 12",
    "select name from (select name, score, age from Person) where age = 3",
    "select count(distinct nick), max(name) from Person",
    "select 1 from Person where false",
    "select name from Person order by age desc nulls last, name limit 3",
    "select explode(array(name, id)) as x from Person where age = 4",
]


@pytest.mark.parametrize("text", [*OFTEN, *(pytest.param(each, marks=pytest.mark.torture) for each in QUERIES)])
def test_every_query_is_answered_as_over_whole_tables(spark: SparkSession, graph: Graph, text: str) -> None:
    graph.spark.views()
    whole = sorted(map(str, spark.sql(text).collect()))
    assert sorted(map(str, graph.spark.sql(text).collect())) == whole


def test_only_what_is_needed_is_read(graph: Graph, read: Read) -> None:
    graph.spark.sql("select name from Person where age >= 30 and nick is null and score > 1")
    columns, where = read["node:Person"]
    assert columns == {"name", "age", "nick", "score"}
    assert where is not None
    assert "`age` >= 30" in where
    assert "`nick` is null" in where
    assert "`score` >" not in where, "fractions are left to Spark"
    assert "edge:Knows" not in read

    graph.spark.sql("select k.since from Knows k join Person p on k.src = p.id")
    assert read["node:Person"][0] == {"id"}
    assert read["edge:Knows"][0] == {"src", "since"}

    graph.spark.sql("select count(*) from Person")
    assert read == {"node:Person": (set(), None)}

    graph.spark.sql("select name from Person where age = 3 union all select name from Person")
    assert read["node:Person"] == ({"name", "age"}, None)


def test_views_and_the_session_are_left_as_they_are(spark: SparkSession, graph: Graph) -> None:
    spark.range(3).createOrReplaceTempView("Person")
    spark.range(5).createOrReplaceTempView("mine")
    try:
        assert graph.spark.sql("select name from Person, mine where name = 'p1'").count() == 5
        assert spark.sql("select * from Person").count() == 3
    finally:
        for name in ("Person", "mine"):
            spark.catalog.dropTempView(name)


def test_what_is_no_query_is_refused_and_not_done(spark: SparkSession, graph: Graph) -> None:
    for text in ("create temporary view v as select 1", "drop view if exists mine", "insert into Person values (1)"):
        with pytest.raises(InvalidRequestError, match="no query"):
            graph.spark.sql(text)
    assert not spark.catalog.tableExists("v")
    with pytest.raises(AnalysisException):
        graph.spark.sql("select nothing from Person")
    assert graph.spark.sql("select age from Person", branch="main").count() == 41
