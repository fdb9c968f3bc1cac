"""Frames of Spark's out of a graph and into it, and streams."""

import io
import json
import signal
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path

import pyarrow.parquet
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as Spark's own documentation calls it)

import omnigraph
from omnigraph import ConstraintError, Graph, InvalidRequestError, NotFoundError, PreconditionError
from omnigraph.failpoints import Failpoint, armed
from omnigraph.storage.object_stores import S3Store

SCHEMA = """
node Person { name: String @key age: I32? rank: F64? friends: I64? group: String? }
node Thing { big: U64? at: DateTime? tags: [String]? face: Vector(2)? }
edge Knows: Person -> Person { since: Date? far: F64? }
edge Thing: Person -> Thing
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "graph", SCHEMA)


def commits(graph: Graph) -> int:
    return graph.snapshot().number


def test_a_leased_commit_is_read_by_jobs_though_it_is_pruned_and_swept_meanwhile(
    spark: SparkSession, graph: Graph, tmp_path: Path
) -> None:
    graph.write({"Person": [{"name": "Ann", "age": 1}]})
    [file] = (tmp_path / "graph").glob("nodes/*/data/*.lance")
    with graph.lease(seconds=60) as held:
        people = graph.spark.read("Person", commit=held.commit)
        for age in (2, 3):
            graph.write({"Person": [{"name": "Ann", "age": age}]}, mode="merge")
        graph.cleanup(keep=1, confirm=True)
        assert [row.age for row in people.collect()] == [1]
        assert file.exists()
    graph.cleanup(keep=1, confirm=True)
    assert not file.exists()


def test_frames_of_many_types_become_one_commit(spark: SparkSession, graph: Graph) -> None:
    people = spark.range(0, 40, 1, 4).select(
        F.format_string("p%02d", "id").alias("name"), F.col("id").cast("int").alias("age")
    )
    knows = spark.range(0, 39).select(
        F.format_string("p%02d", "id").alias("from"),
        F.format_string("p%02d", F.col("id") + 1).alias("to"),
        F.lit("2024-01-31").cast("date").alias("since"),
    )
    moment = datetime(2024, 1, 31, 10, 0, 0, 120_000, tzinfo=UTC)
    things = spark.createDataFrame(
        [("t", Decimal(2**64 - 1), moment, ["a", "b"], [0.5, 1.0])],
        "id string, big decimal(20,0), at timestamp, tags array<string>, face array<float>",
    )
    nothing = spark.createDataFrame([], "from string, to string")
    before = commits(graph)

    done = graph.spark.write(
        {"Person": people, "Knows": knows, "node:Thing": things, "edge:Thing": nothing}, message="all"
    )

    assert (done.nodes, done.edges) == ({"Person": 40, "Thing": 1}, {"Knows": 39, "Thing": 0})
    assert commits(graph) == before + 1
    assert graph.snapshot().record.message == "all"
    assert graph.query(
        'query q() { match { $a: Person $a knows $b $b.name = "p39" } return { $a.age } }'
    ).to_pylist() == [{"a.age": 38}]
    assert graph.export_arrow("node:Thing").read_all().to_pylist() == [
        {"id": "t", "big": 2**64 - 1, "at": moment, "tags": ["a", "b"], "face": [0.5, 1.0]}
    ]
    # A row that breaks a rule leaves nothing of any type behind.
    with pytest.raises(ConstraintError, match="nobody"):
        graph.spark.write(
            {"Person": spark.createDataFrame([("new",)], "name string"),
             "Knows": spark.createDataFrame([("new", "nobody")], "src string, dst string")}
        )  # fmt: skip
    assert graph.count("Person") == 40
    # Merging replaces whole rows; overwriting a type with nothing empties it.
    merged = spark.createDataFrame([("p01", 99)], "name string, age int")
    graph.spark.write({"Person": merged, "Knows": nothing}, mode="merge")
    assert graph.spark.read("Person", where="name = 'p01'").first()["age"] == 99
    graph.spark.write({"Knows": nothing}, mode="overwrite")
    assert (graph.count("Knows"), graph.count("Person")) == (0, 40)


def test_what_cannot_be_written_is_told_before_anything_runs(spark: SparkSession, graph: Graph) -> None:
    frame = spark.createDataFrame([("a",)], "name string")

    with pytest.raises(InvalidRequestError, match="unknown type 'Nobody'"):
        graph.spark.write({"Nobody": frame})
    with pytest.raises(InvalidRequestError, match="unknown type 'Persn'; did you mean `Person`"):
        graph.spark.write({"Persn": frame})
    with pytest.raises(InvalidRequestError, match="Person is no frame of Spark's but a list: make one"):
        graph.spark.write({"Person": [{"name": "a"}]})
    with pytest.raises(InvalidRequestError, match="a write needs a frame for at least one type"):
        graph.spark.write(frame)  # type: ignore[arg-type]  # what is wrong with it
    with pytest.raises(NotFoundError, match="there is no type 'Know'; did you mean `Knows`"):
        graph.spark.read("Know")
    with pytest.raises(NotFoundError, match="Person has no column 'nam'; did you mean `name`"):
        graph.spark.read("Person", columns=["nam"])
    with pytest.raises(InvalidRequestError, match="given twice"):
        graph.spark.write({"Person": frame, "node:Person": frame})
    with pytest.raises(InvalidRequestError, match="at least one type"):
        graph.spark.write({})
    with pytest.raises(InvalidRequestError, match="no stream"):
        graph.spark.stream(frame, stream_id="s", checkpoint="x", types="Person")
    with pytest.raises(InvalidRequestError, match="the type of the rows is missing"):
        graph.spark.stream(frame, stream_id="s", checkpoint="x")
    with pytest.raises(InvalidRequestError, match="unknown mode 'mrege'"):
        graph.spark.write({"Person": frame}, mode="mrege")
    with pytest.raises(InvalidRequestError, match="a condition is a text in SQL, like 'age > 40', not 5"):
        graph.spark.read("Person", where=5)  # type: ignore[arg-type]  # what is wrong with it
    with pytest.raises(InvalidRequestError, match="'my-' is no such beginning"):
        graph.spark.views(prefix="my-")
    with pytest.raises(InvalidRequestError, match=r"made with SparkSettings, like .*, not with 'local\[2\]'"):
        graph.spark.session("local[2]")
    assert graph.spark.read("Person", columns="name").columns == ["name"]


def test_a_session_that_was_stopped_is_told(spark: SparkSession, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as stopped:
        stopped.setattr(spark.sparkContext, "_jsc", None)
        with pytest.raises(InvalidRequestError, match="the Spark session given was stopped"):
            graph.load(b"", mode="append", spark=spark)
    with pytest.raises(
        InvalidRequestError, match="a Spark session, or on one made with SparkSettings; a str is neither"
    ):
        graph.load(b"", mode="append", spark="local[2]")
    assert graph.snapshot().number == 1


def test_streams_that_make_no_sense_are_told_before_they_start(
    spark: SparkSession, graph: Graph, tmp_path: Path
) -> None:
    rows = spark.readStream.format("rate").load()
    stream = partial(graph.spark.stream, stream_id="s", checkpoint=tmp_path / "checkpoint")
    for start, told in (
        (partial(stream, rows, types="Persn"), "unknown type 'Persn'; did you mean `Person`"),
        (partial(stream, rows, types="Person", mode="mrege"), "unknown mode 'mrege'; one of append, merge, overwrite"),
        (partial(stream, rows, types="Person", files_per_batch=2), "files are counted in a folder only"),
        (partial(stream, rows, types="Person", every="1 second", available_now=True), "leave one of both out"),
        (partial(stream, rows, types="Person", every="now and then"), "the stream 's' cannot start: .*now and then"),
        (partial(stream, rows, types="Person", stream_id=""), "a stream needs an id"),
        (partial(stream, [1], types="Person"), "the rows are no stream"),
        (partial(stream, tmp_path, types="Person"), "name their types themselves: leave out the type"),
        (partial(stream, tmp_path, files_per_batch=0), "a batch takes one file or more, not 0"),
    ):
        with pytest.raises(InvalidRequestError, match=told):
            start()
    with pytest.raises(NotFoundError, match=r"the folder .*nowhere cannot be read: .*make it first"):
        stream(tmp_path / "nowhere")
    with pytest.raises(NotFoundError, match="branch 'nowhere'"):
        stream(tmp_path, branch="nowhere")
    assert not spark.streams.active


@pytest.mark.s3
@pytest.mark.usefixtures("s3_environment")
def test_frames_for_a_graph_in_an_object_store_go_to_its_tables_without_a_detour(
    spark: SparkSession, s3_store: S3Store
) -> None:
    graph = omnigraph.init(f"{s3_store.uri}/graph", SCHEMA)
    people = spark.range(0, 40, 1, 4).select(F.format_string("p%02d", "id").alias("name"))
    knows = spark.createDataFrame([("p00", "p39")], "from string, to string")
    under_way: list[str] = []

    def look() -> None:
        under_way.extend(listed.path for listed in s3_store.list("graph/"))

    with armed(Failpoint.LOAD_READ, look):
        done = graph.spark.write({"Person": people, "Knows": knows})

    assert (done.nodes, done.edges) == ({"Person": 40}, {"Knows": 1})
    assert len([path for path in under_way if path.endswith(".lance") and "/data/" in path]) == 5
    assert not [path for path in under_way if path.endswith(".parquet")]
    files = set(under_way)
    with pytest.raises(ConstraintError, match="the frame for Knows, partition 0"):
        graph.spark.write({"Knows": spark.createDataFrame([("p00", "nobody")], "from string, to string").coalesce(1)})
    left = {listed.path for listed in s3_store.list("graph/") if "/data/" in listed.path}
    assert left <= files, "what was written is deleted again"


def test_types_are_views_for_sql(spark: SparkSession, graph: Graph) -> None:
    graph.write({"Person": [{"name": "a", "age": 1}, {"name": "b", "age": 2}]}, {"Knows": [{"from": "a", "to": "b"}]})

    names = graph.spark.views(prefix="g_")
    graph.write({"Person": [{"name": "c"}]})

    assert names == {
        "node:Person": "g_Person", "node:Thing": "g_Thing", "edge:Knows": "g_Knows", "edge:Thing": "g_Thing_edge"
    }  # fmt: skip
    found = spark.sql(
        "select a.name, b.age, (select count(*) from g_Person) as people from g_Knows k "
        "join g_Person a on k.src = a.id join g_Person b on k.dst = b.id where b.age > 1"
    )
    assert [tuple(row) for row in found.collect()] == [("a", 2, 2)]


def test_spark_writes_one_type_by_itself(spark: SparkSession, graph: Graph) -> None:
    graph.spark.session()
    people = spark.createDataFrame([("a", 1), ("b", 2)], "name string, age int")
    writing = people.write.format("omnigraph").option("graph", graph.uri).option("type", "Person")
    before = commits(graph)

    writing.mode("append").option("message", "from spark").save()

    assert graph.count("Person") == 2
    assert (commits(graph), graph.snapshot().record.message) == (before + 1, "from spark")
    with pytest.raises(PySparkException, match="'a'"):
        writing.mode("append").option("mode", "append").save()
    assert graph.count("Person") == 2
    more = spark.createDataFrame([("b", 20), ("c", 3)], "name string, age int")
    more.write.format("omnigraph").options(graph=graph.uri, type="Person", mode="merge").mode("append").save()
    assert sorted(map(str, graph.export_arrow("Person").read_all().column("age").to_pylist())) == ["1", "20", "3"]
    more.write.format("omnigraph").options(graph=graph.uri, type="Person").mode("overwrite").save()
    assert graph.count("Person") == 2


@pytest.mark.torture
def test_much_that_spark_writes_by_itself_is_loaded_by_a_spark_of_its_own(spark: SparkSession, graph: Graph) -> None:
    graph.spark.session()
    rows = spark.range(5_000).selectExpr("concat('p', id) as name", "cast(id % 90 as int) as age")
    writing = rows.write.format("omnigraph").options(graph=graph.uri, type="Person", engine="spark")
    writing.mode("append").save()
    assert graph.count("Person") == 5_000
    assert spark.range(3).count() == 3, "the session of the frame is as it was"
    with pytest.raises(PySparkException, match="held by 'p"):
        rows.limit(1).union(rows.limit(1)).write.format("omnigraph").options(
            graph=graph.uri, type="Person", engine="spark", mode="merge"
        ).mode("append").save()
    assert graph.count("Person") == 5_000


def test_answers_of_algorithms_become_properties_in_one_commit(spark: SparkSession, graph: Graph) -> None:
    graph.write(
        {"Person": [{"name": name, "age": 1} for name in "abcde"]},
        {"Knows": [{"from": a, "to": b, "far": 2.5} for a, b in ("ab", "bc", "ca", "cd")]},
    )
    before = commits(graph)
    algorithms = graph.spark.analytics(edges=["Knows"])

    done = algorithms.pagerank().write_back("rank")

    assert (commits(graph), done.nodes) == (before + 1, {"Person": 5})
    rows = {row["id"]: row for row in graph.export_arrow("Person").read_all().to_pylist()}
    assert sum(row["rank"] for row in rows.values()) == pytest.approx(1.0)
    assert rows["c"]["rank"] > rows["e"]["rank"]
    assert {row["age"] for row in rows.values()} == {1}
    # What was computed on an older state is not written over a newer one.
    with pytest.raises(PreconditionError):
        algorithms.degrees().write_back({"degree": "friends"})
    fresh = graph.spark.analytics(edges=["Knows"])
    fresh.degrees().write_back({"degree": "friends"})
    assert graph.spark.read("Person", where="name = 'c'").first()["friends"] == 3
    answers = {row["id"]: row["value"] for row in fresh.connected_components().frame.collect()}
    assert answers == {"a": "Person:a", "b": "Person:a", "c": "Person:a", "d": "Person:a", "e": "Person:e"}
    reached = fresh.shortest_paths([("Person", "a")], weight="far").frame.collect()
    assert {(row["type"], row["id"]): row["value"] for row in reached} == {
        ("Person", "a"): 0.0, ("Person", "b"): 2.5, ("Person", "c"): 5.0, ("Person", "d"): 7.5
    }  # fmt: skip
    with pytest.raises(InvalidRequestError, match="no node 'z'"):
        fresh.shortest_paths([("Person", "z")])
    with pytest.raises(InvalidRequestError, match="has the property shoe"):
        fresh.k_core().write_back("shoe")
    with pytest.raises(InvalidRequestError, match="no edge type 'Nobody'"):
        graph.spark.analytics(edges=["Nobody"])
    before = commits(graph)
    for ask, told in (
        (partial(graph.spark.analytics, edges="Know"), "there is no edge type 'Know'; did you mean `Knows`"),
        (partial(graph.spark.analytics, edges=[]), "there are no edges to count"),
        (partial(fresh.pagerank, damping=1.5), "damping is a number from 0 to 1, and 1.5 is not"),
        (partial(fresh.pagerank, tolerance=-1), "tolerance is a number of 0 or more, and -1 is not"),
        (partial(fresh.label_propagation, rounds_max=-1), "rounds_max is a whole number of 0 or more, and -1 is not"),
        (partial(fresh.shortest_paths, [("Persn", "a")]), "no nodes of type 'Persn'; did you mean `Person`"),
        (partial(fresh.shortest_paths, [("Person", "a")], weight="since"), "have no number 'since'"),
        (partial(fresh.degrees().write_back, "friends"), "the answers have no column 'value'; there is `degree`"),
        (partial(fresh.degrees().write_back, {"degree": "group"}), "group of Person is String?: write it into a prop"),
        (partial(fresh.degrees().write_back, {"degree": "name"}), "name is the key of Person"),
        (partial(fresh.degrees().write_back, {}), "say into which property the answers go"),
    ):
        with pytest.raises(InvalidRequestError, match=told.replace("?:", "[?]:")):
            ask()
    assert commits(graph) == before


def test_an_export_to_many_files_is_the_one_stream_in_pieces(spark: SparkSession, graph: Graph, tmp_path: Path) -> None:
    graph.write(
        {"Person": [{"name": f"p{n * 37 % 100:02}", "age": n} for n in range(100)],
         "Thing": [{"id": "t", "big": 2**64 - 1, "tags": ["é\n"], "face": [0.5, 1.0]}, {"id": "u"}]},
        {"Knows": [{"id": f"k{n}", "from": "p01", "to": f"p{n:02}"} for n in range(9)]},
    )  # fmt: skip
    stream = io.BytesIO()
    graph.export(stream)

    done = graph.export(tmp_path / "out", files=3)

    assert done.files == tuple(sorted(map(str, (tmp_path / "out").iterdir())))
    assert len(done.files) > 4
    assert b"".join(Path(file).read_bytes() for file in done.files) == stream.getvalue()
    assert done.rows == {"edge:Knows": 9, "edge:Thing": 0, "node:Person": 100, "node:Thing": 2}
    tables = graph.export(tmp_path / "tables", format="parquet", types=["node:Thing"], files=1)
    assert pyarrow.parquet.read_table(tables.files[0]).column("big").to_pylist() == [2**64 - 1, None]
    with pytest.raises(InvalidRequestError, match="graphml is one file"):
        graph.export(tmp_path / "more", format="graphml", files=2)
    with pytest.raises(InvalidRequestError, match="one file or more of each type, not 0"):
        graph.export(tmp_path / "more", files=0)
    with pytest.raises(InvalidRequestError, match="s3://bucket/out is neither: export to a file, and copy that"):
        graph.export("s3://bucket/out", files=2)
    assert not (tmp_path / "more").exists()


# -- streams --------------------------------------------------------------------------------------------------------

KILLED_AFTER_ITS_SECOND_COMMIT = """
import os, signal, sys
import omnigraph
from omnigraph.api import spark as api
from omnigraph.pipeline.settings import SparkSettings

root, inbox, checkpoint = sys.argv[1:]
real, done = api.load, []

def load_and_die(*given):
    result = real(*given)
    done.append(result)
    if len(done) == 2:  # the commit is made, and Spark does not know it yet
        os.kill(os.getpid(), signal.SIGKILL)
    return result

api.load = load_and_die
graph = omnigraph.open(root)
graph.spark.session(SparkSettings(master="local[1]", driver_memory="512m"))
graph.spark.stream(inbox, stream_id="inbox", checkpoint=checkpoint, mode="append", available_now=True,
                   files_per_batch=1).awaitTermination()
"""


def test_a_stream_that_is_killed_and_started_again_loses_and_doubles_nothing(
    spark: SparkSession, graph: Graph, tmp_path: Path
) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    for number in range(4):
        # Things have no key: one that came twice would be there twice.
        records = [{"type": "Thing", "data": {"big": number * 10 + each}} for each in range(3)]
        (inbox / f"{number}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    before = commits(graph)

    killed = subprocess.run(
        [sys.executable, "-c", KILLED_AFTER_ITS_SECOND_COMMIT, graph.uri, str(inbox), str(tmp_path / "checkpoint")],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert (commits(graph), graph.count("node:Thing")) == (before + 2, 6)

    again = graph.spark.stream(
        inbox,
        stream_id="inbox",
        checkpoint=tmp_path / "checkpoint",
        mode="append",
        available_now=True,
        files_per_batch=1,
    )
    again.awaitTermination()

    assert commits(graph) == before + 4
    rows = graph.export_arrow("node:Thing", columns=["big"]).read_all().to_pylist()
    assert sorted(row["big"] for row in rows) == [number * 10 + each for number in range(4) for each in range(3)]
