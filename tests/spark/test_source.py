"""`spark.read.format("omnigraph")`: one type at one commit, with conditions and columns handed down."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

import omnigraph
from omnigraph import Graph
from omnigraph.pipeline.source.reading import FragmentGroup, PinnedTable, TableReader
from omnigraph.pipeline.source.source import register
from omnigraph.storage.tables.location import location_of

SCHEMA = """
node Person { name: String @key age: I32? score: F64? tags: [String]? at: DateTime? born: Date? }
node Thing { small: U32? big: U64? face: Vector(2)? raw: Blob? ok: Bool? }
edge Knows: Person -> Person { since: Date? }
"""
THING = {"id": "t", "small": 2**32 - 1, "big": 2**64 - 1, "face": [0.5, 1.0], "raw": b"\x00\x01", "ok": True}
MOMENT = datetime(2024, 1, 31, 10, 0, 0, 120_000, tzinfo=UTC)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    with omnigraph.init(tmp_path_factory.mktemp("source") / "graph", SCHEMA) as made:
        for start in range(0, 90, 30):  # three fragments
            made.write({"Person": [{"name": f"p{n:02}", "age": n, "score": n / 4} for n in range(start, start + 30)]})
        made.tags.create("ninety")
        made.mutate('query q() { delete Person where name = "p05" }')
        made.write(
            {"Person": [{"name": "Zoë's", "tags": ["a", "b"], "at": MOMENT, "born": date(1815, 12, 10)}],
             "Thing": [THING, {"id": "u"}]},
            {"Knows": [{"id": "k", "from": "p01", "to": "p02", "since": date(2020, 2, 2)}]},
        )  # fmt: skip
        yield made


@pytest.fixture
def people(spark: SparkSession, graph: Graph) -> DataFrame:
    return read(spark, graph, "Person")


def read(spark: SparkSession, graph: Graph, type_name: str, **options: str) -> DataFrame:
    register(spark)
    return spark.read.format("omnigraph").options(graph=graph.uri, type=type_name, **options).load()


def test_a_type_is_a_table_of_spark(people: DataFrame) -> None:
    assert people.columns == ["id", "age", "at", "born", "name", "score", "tags"]
    assert people.count() == 90
    assert [row.asDict() for row in people.where("id = \"Zoë's\"").collect()] == [
        {"id": "Zoë's", "name": "Zoë's", "age": None, "score": None, "tags": ["a", "b"], "born": date(1815, 12, 10),
         "at": MOMENT.astimezone().replace(tzinfo=None)}
    ]  # fmt: skip


def test_every_kind_of_value_arrives(spark: SparkSession, graph: Graph) -> None:
    things = {row["id"]: row.asDict() for row in read(spark, graph, "Thing").collect()}

    assert things == {
        "t": {
            "id": "t",
            "small": 2**32 - 1,
            "big": Decimal(2**64 - 1),
            "face": [0.5, 1.0],
            "raw": b"\x00\x01",
            "ok": True,
        },
        "u": {"id": "u", "small": None, "big": None, "face": None, "raw": None, "ok": None},
    }


def test_edges_have_their_ends(spark: SparkSession, graph: Graph) -> None:
    row = read(spark, graph, "Knows").first()

    assert row is not None
    assert row.asDict() == {"id": "k", "src": "p01", "dst": "p02", "since": date(2020, 2, 2)}


def test_conditions_of_one_plan_do_not_reach_another(people: DataFrame) -> None:
    assert people.where("age < 10").count() == 9
    assert people.where("age >= 80").count() == 10
    assert people.count() == 90
    both = people.where("age < 10").select("id").union(people.where("age >= 80").select("id"))
    assert sorted(row.id for row in both.collect())[:2] == ["p00", "p01"]
    assert both.count() == 19
    assert people.where("age < 10").alias("a").join(people.where("age < 20").alias("b"), "id").count() == 9


@pytest.mark.torture
def test_spark_gives_all_plans_over_a_frame_the_conditions_of_the_last(spark: SparkSession) -> None:
    """Why conditions are not taken from Spark. The day this fails, they can be."""

    class Part(InputPartition):
        """What a task is given, with the conditions of the plan that made it."""

        def __init__(self, told: str) -> None:
            super().__init__(told)
            self.told = told

    class Reader(DataSourceReader):
        told = "none"

        def pushFilters(self, filters: list[Filter]) -> list[Filter]:  # noqa: N802  (Spark's own)
            self.told = str(filters[-1])
            return filters  # Spark shall judge them all

        def partitions(self) -> Sequence[Part]:
            return [Part(self.told)]

        def read(self, partition: InputPartition) -> Iterator[tuple[int, str]]:
            if isinstance(partition, Part):
                yield from ((number, partition.told) for number in range(3))

    class Numbers(DataSource):
        @classmethod
        def name(cls) -> str:
            return "numbers"

        def schema(self) -> str:
            return "number int, told string"

        def reader(self, schema: StructType) -> DataSourceReader:
            return Reader()

    spark.dataSource.register(Numbers)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        numbers = spark.read.format("numbers").load()
        both = numbers.where("number = 1").union(numbers.where("number = 2")).collect()
        everything = numbers.collect()
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    # The tasks of one side were given the other side's, and those of a plan without any condition too.
    assert [row.number for row in both] == [1, 2]
    assert len({row.told for row in both}) == 1
    assert {row.told for row in everything} == {both[0].told} != {"none"}


def test_a_condition_may_be_handed_to_the_scan(spark: SparkSession, graph: Graph) -> None:
    few = read(spark, graph, "Person", filter="age < 10 and name != 'p03'")

    assert few.count() == 8
    assert few.where("age >= 8").count() == 2
    assert few.count() == 8
    assert read(spark, graph, "Person", filter="name = 'Zoë''s'").count() == 1
    assert read(spark, graph, "Person", filter="age < 0").count() == 0


def test_only_the_columns_asked_for_are_read(spark: SparkSession, graph: Graph) -> None:
    few = read(spark, graph, "Person", columns="age, id")
    by_schema = (
        spark.read.format("omnigraph").schema("id string, age bigint").options(graph=graph.uri, type="Person").load()
    )

    assert few.columns == ["age", "id"]
    assert few.where("age = 7").collect() == [(7, "p07")]
    assert by_schema.where("age = 7").collect() == [("p07", 7)]


def test_a_frame_shows_one_commit_whatever_is_written_later(spark: SparkSession, tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "graph", SCHEMA)
    graph.write({"Person": [{"name": "a"}]})
    first = graph.snapshot()
    frame = read(spark, graph, "Person")
    graph.write({"Person": [{"name": "b"}]})

    assert frame.count() == 1
    assert read(spark, graph, "Person").count() == 2
    assert read(spark, graph, "Person", versionAsOf=first.commit).count() == 1
    assert read(spark, graph, "Person", branch="main", versionAsOf=str(first.number)).count() == 1


def test_branches_tags_and_times_can_be_read(spark: SparkSession, graph: Graph) -> None:
    graph.branches.create("other")
    graph.write({"Person": [{"name": "other"}]}, branch="other")
    now = graph.snapshot(branch="other").record.created_at_us
    later = datetime.fromtimestamp(now / 1e6 + 1, tz=UTC).isoformat()

    assert read(spark, graph, "Person", branch="other").count() == 91
    assert read(spark, graph, "Person", tag="ninety").where("name = 'p05'").count() == 1
    assert read(spark, graph, "Person", branch="other", timestampAsOf=later).count() == 91
    graph.branches.delete("other")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"type": "Nobody"}, "there is no type 'Nobody'"),
        ({"type": "Person", "columns": "shoe"}, "no column 'shoe'"),
        ({"type": "Person", "filter": "shoe = 4"}, "shoe"),
        ({"type": "Person", "versionAsOf": "yesterday"}, "a number or the id of a commit, and 'yesterday' is not"),
        ({"type": "Person", "versionAsOf": "-1"}, "a number or the id of a commit, and '-1' is not"),
        ({}, "needs the options 'graph' and 'type'"),
        ({"typ": "Person"}, "there is no option 'typ'; did you mean `type`"),
        ({"type": "Persn"}, "there is no type 'Persn'; did you mean `Person`"),
        ({"type": "Person", "columns": "id,agee"}, "Person has no column 'agee'; did you mean `age`"),
    ],
)
def test_what_is_not_there_is_told(spark: SparkSession, graph: Graph, options: dict[str, str], told: str) -> None:
    register(spark)

    with pytest.raises(PySparkException, match=told):
        spark.read.format("omnigraph").options(graph=graph.uri, **options).load()


def test_what_a_write_would_not_heed_is_told_before_it_writes(people: DataFrame, graph: Graph) -> None:
    before = graph.snapshot().number
    writing = people.limit(1).write.format("omnigraph").options(graph=graph.uri, type="Person", idempotencyKeys="k")

    with pytest.raises(PySparkException, match="there is no option 'idempotencykeys'; did you mean `idempotencyKey`"):
        writing.mode("append").save()

    assert graph.snapshot().number == before


def reader(graph: Graph, *, task_rows: int = 30) -> TableReader:
    from omnigraph.pipeline.columns import spark_schema

    snapshot = graph._parts.snapshot(graph.snapshot().record)
    table = snapshot.table("node:Person")
    pinned = PinnedTable(location_of(graph._parts.tables), table.pin)
    return TableReader(pinned, spark_schema(table.schema, ["id", "age"]), task_rows=task_rows)


def rows(reader: TableReader) -> list[tuple[object, ...]]:
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    return sorted(tuple(row.values()) for batch in batches for row in batch.to_pylist())


def test_every_row_is_in_exactly_one_partition(graph: Graph) -> None:
    for task_rows in (1, 30, 60, 1_000):
        assert len(rows(reader(graph, task_rows=task_rows))) == 90
    groups = [part.numbers for part in reader(graph, task_rows=60).partitions() if isinstance(part, FragmentGroup)]
    assert sorted(number for group in groups for number in group) == [0, 1, 2, 3]
    assert len(groups) == 2
