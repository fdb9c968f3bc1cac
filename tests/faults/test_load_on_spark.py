"""Loads on Spark that are cut, killed, interrupted or overtaken: each is seen whole or not at all."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import omnigraph
from omnigraph import Graph, LoadResult, limits
from omnigraph.errors import ConstraintError, InvalidRequestError, LimitError, UnavailableError
from omnigraph.failpoints import Crash, Failpoint, armed
from omnigraph.model.commit import RECOVERY_ACTOR
from omnigraph.pipeline.load.jobs import spark_fault

SCHEMA = "node Person { name: String @key age: I32? }\nedge Knows: Person -> Person"
PLACES = [place for place in Failpoint if place.startswith(("load.", "write.", "publish.entry_put", "publish.intent"))]
# In the quick run, the places that differ in what is on the store.
OFTEN = (
    Failpoint.LOAD_NOTED,
    Failpoint.LOAD_JUDGED,
    Failpoint.WRITE_TABLE_STAGED,
    Failpoint.WRITE_INTENT_COMPLETED,
    Failpoint.PUBLISH_ENTRY_PUT,
)
CASES = [pytest.param(place, marks=() if place in OFTEN else pytest.mark.torture) for place in PLACES]
# Before these nothing can be finished; from these on everything can.
FINISHED = (Failpoint.WRITE_INTENT_COMPLETED, Failpoint.PUBLISH_ENTRY_PUT, Failpoint.PUBLISH_INTENT_CLEARED)
PEOPLE = 150_000
INTERRUPTS, INTERRUPTED_EVERY_S = 8, 0.08


def lines(first: int, count: int) -> str:
    return "".join(
        f'{{"type":"Person","data":{{"name":"p{n}","age":{n % 90}}}}}\n' for n in range(first, first + count)
    )


def edges(first: int, count: int) -> str:
    return "".join(f'{{"edge":"Knows","from":"p{n}","to":"p{first}"}}\n' for n in range(first, first + count))


@pytest.fixture(autouse=True)
def _spread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is judged by the driver, however little it is."""
    monkeypatch.setattr(limits, "LOAD_NEAR_BYTES", -1)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that takes workers a while."""
    path = tmp_path_factory.mktemp("large") / "people.jsonl"
    path.write_text(lines(0, PEOPLE))
    return path


@pytest.fixture
def graph(folder: Path) -> Iterator[Graph]:
    with omnigraph.init(folder / "graph", SCHEMA) as graph:
        graph.write(nodes={"Person": [{"name": "first"}]})
        yield graph


def intents(graph: Graph) -> list[str]:
    return sorted(each.name for each in (Path(graph.uri) / "__recovery").glob("*.json"))


def head(graph: Graph) -> str:
    return graph.snapshot().commit


@contextmanager
def while_a_worker_reads(file: Path, action: Callable[[int], None]) -> Iterator[None]:
    """Do something, once, as soon as a worker has the file open."""
    over = threading.Event()

    def reads(pid: str) -> bool:
        try:
            return any(found.readlink() == file for found in Path("/proc", pid, "fd").iterdir())
        except OSError:  # the process, or the descriptor, is gone by now
            return False

    def look() -> None:
        while not over.is_set():
            for pid in (folder.name for folder in Path("/proc").iterdir() if folder.name.isdigit()):
                if int(pid) != os.getpid() and reads(pid):
                    action(int(pid))
                    return

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield
    finally:
        over.set()
        looking.join()


def crash() -> None:
    raise Crash


@pytest.mark.parametrize("place", CASES)
def test_a_load_that_dies_is_all_there_or_not_there_at_all(graph: Graph, spark: SparkSession, place: Failpoint) -> None:
    data = (lines(0, 3) + edges(0, 3)).encode()
    with armed(place, crash), pytest.raises(Crash):
        graph.load(data, mode="append", spark=spark, actor="loader")
    with omnigraph.open(graph.uri) as reopened:
        counts = reopened.count("Person"), reopened.count("Knows")
        assert counts == ((4, 3) if place in FINISHED else (1, 0))
        assert intents(reopened) == []
        if counts == (1, 0):
            assert reopened.load(data, mode="append", spark=spark).total_entities == 6
        assert (reopened.count("Person"), reopened.count("Knows")) == (4, 3)


def test_a_worker_that_is_killed_fails_the_load_and_leaves_nothing(
    graph: Graph, spark: SparkSession, large: Path
) -> None:
    before = head(graph)
    with (
        while_a_worker_reads(large, lambda pid: os.kill(pid, signal.SIGKILL)),
        pytest.raises(UnavailableError, match="nothing was loaded; load again") as failed,
    ):
        graph.load(large, mode="append", spark=spark)
    assert failed.value.code == "spark_job_failed"
    assert (head(graph), intents(graph)) == (before, [])
    assert graph.load(large, mode="append", spark=spark).nodes == {"Person": PEOPLE}
    assert graph.count("Person") == PEOPLE + 1


def test_an_interrupted_load_is_cancelled_and_leaves_nothing(graph: Graph, spark: SparkSession, large: Path) -> None:
    before = head(graph)
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with (
            while_a_worker_reads(large, lambda _: os.kill(os.getpid(), signal.SIGINT)),
            pytest.raises(KeyboardInterrupt),
        ):
            graph.load(large, mode="append", spark=spark)
    finally:
        signal.signal(signal.SIGINT, usual)
    assert (head(graph), intents(graph)) == (before, [])
    assert graph.load(lines(0, 2).encode(), mode="append", spark=spark).total_entities == 2


@pytest.mark.parametrize("handler", ["Python's", pytest.param("PySpark's", marks=pytest.mark.torture)])
def test_an_interrupt_at_any_moment_is_one_for_the_caller(graph: Graph, spark: SparkSession, handler: str) -> None:
    """Ctrl-C at many moments of a load: nothing else is ever raised, and whatever comes next works."""
    data = lines(0, 300).encode()
    if handler == "Python's":
        usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    else:
        usual = signal.signal(signal.SIGINT, pyspark_handler(spark))
    try:
        for moment in range(INTERRUPTS):
            sender = threading.Timer(moment * INTERRUPTED_EVERY_S, os.kill, (os.getpid(), signal.SIGINT))
            with pytest.raises(KeyboardInterrupt):
                sender.start()
                graph.load(data, mode="merge", spark=spark)
                threading.Event().wait()
            sender.join()
            assert graph.count("Person") in (1, 301)
            assert intents(graph) == []
    finally:
        signal.signal(signal.SIGINT, usual)
    assert graph.load(data, mode="merge", spark=spark).total_entities == 300
    assert graph.count("Person") == 301


def pyspark_handler(spark: SparkSession) -> Callable[[int, object], None]:
    """What PySpark does about Ctrl-C in a session that the main thread made."""

    def handle(_signal: int, _frame: object) -> None:
        try:
            spark.sparkContext.cancelAllJobs()
        finally:
            raise KeyboardInterrupt

    return handle


def test_one_bad_record_at_the_end_of_many_refuses_them_all(
    graph: Graph, spark: SparkSession, large: Path, tmp_path: Path
) -> None:
    before = head(graph)
    file = tmp_path / "people.jsonl"
    file.write_bytes(large.read_bytes() + b'{"type":"Person","data":{"name":"last","age":"old"}}')
    with pytest.raises(InvalidRequestError) as refused:
        graph.load(file, mode="append", spark=spark)
    told = f"line {PEOPLE + 1}: strict property 'age' expects Int32, got \"old\" (in people.jsonl)"
    assert str(refused.value) == told
    assert (head(graph), intents(graph)) == (before, [])
    kept = graph.load(file, mode="append", spark=spark, rejects=tmp_path / "rejects")
    assert (kept.nodes, len(kept.rejects)) == ({"Person": PEOPLE}, 1)


@pytest.mark.torture
def test_one_bad_record_at_the_end_of_five_million_refuses_them_all(
    graph: Graph, spark: SparkSession, tmp_path: Path
) -> None:
    before, many, some = head(graph), 5_000_000, 100_000
    file = tmp_path / "people.jsonl"
    with file.open("w") as out:
        for first in range(0, many, some):
            out.write(lines(first, some))
        out.write(lines(0, 1))  # of a key that is there, five million lines before
    with pytest.raises(ConstraintError) as refused:
        graph.load(file, mode="append", spark=spark)
    assert str(refused.value).endswith(f"(line {many + 1} of people.jsonl)")
    assert (head(graph), intents(graph)) == (before, [])
    assert len(list((Path(graph.uri) / "nodes").rglob("*.lance"))) == 1, "what was written is taken away again"


def test_two_loads_at_once_both_land_on_one_branch_and_on_two(graph: Graph, spark: SparkSession) -> None:
    graph.branches.create("other")

    def load(first: int, branch: str) -> LoadResult:
        return graph.load((lines(first, 50) + edges(first, 50)).encode(), mode="append", branch=branch, spark=spark)

    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(load, (0, 100, 0), ("main", "main", "other")))
    assert len({each.commit for each in done}) == 3
    assert (graph.count("Person"), graph.count("Knows")) == (101, 100)
    assert (graph.count("Person", branch="other"), graph.count("Knows", branch="other")) == (51, 50)


def test_a_head_that_moves_costs_no_second_reading(graph: Graph, spark: SparkSession) -> None:
    """What others wrote of the same types is judged again; the rows were written once, and stay where they are."""
    other = omnigraph.open(graph.uri)
    left = ["Zoe", "Zed"]

    def meanwhile() -> None:
        if left:  # the write inside comes by here as well, and lets in the next
            other.write(nodes={"Person": [{"name": left.pop()}]})

    def files() -> int:
        return len(list((Path(graph.uri) / "nodes").rglob("*.lance")))

    before = files()
    with armed(Failpoint.WRITE_PREPARED, meanwhile):
        done = graph.load((lines(0, 5) + edges(0, 5)).encode(), mode="append", spark=spark)
    assert done.attempts == 2
    assert files() - before == 3, "two of the others', and one of the load's"
    assert (graph.count("Person"), graph.count("Knows")) == (8, 5)


def test_a_full_disk_is_told_with_what_to_do() -> None:
    error = spark_fault("Job aborted\n\tat java\nOSError: [Errno 28] No space left on device")
    assert isinstance(error, LimitError)
    assert "make room" in str(error)


SCRIPT = """
import os, signal, sys
import omnigraph
from omnigraph import limits
from omnigraph.failpoints import Failpoint, armed
from omnigraph.pipeline.settings import SparkSettings
uri, data, master, place = sys.argv[1:]
limits.LOAD_NEAR_BYTES = -1
limits.LOAD_PIECE_BYTES = limits.LOAD_PIECE_BYTES_MIN = 256 * 1024
conf = (("spark.speculation", "true"), ("spark.speculation.multiplier", "1"), ("spark.speculation.quantile", "0.1"))
settings = SparkSettings(master=master, driver_memory="1g", conf=conf)
graph = omnigraph.open(uri)
def die():
    os.kill(os.getpid(), signal.SIGKILL)
if place == "none":
    print(graph.load(data, mode="append", spark=settings).total_entities)
else:
    with armed(Failpoint(place), die):
        graph.load(data, mode="append", spark=settings)
"""


def run_apart(graph: Graph, data: Path, master: str, place: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", SCRIPT, graph.uri, str(data), master, place]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    "place",
    [
        "write.intent_completed",
        pytest.param("load.read", marks=pytest.mark.torture),
        pytest.param("write.table_staged", marks=pytest.mark.torture),
    ],
)
def test_a_driver_that_is_killed_is_finished_or_undone_by_the_next_open(
    graph: Graph, tmp_path: Path, place: str
) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text(lines(0, 1_000) + edges(0, 1_000))
    killed = run_apart(graph, data, "local[2]", place)
    assert killed.wait(timeout=200) == -signal.SIGKILL, killed.communicate()[1]
    killed.communicate()
    assert graph.snapshot().count("Knows") == 0, "nobody sees what is not published"
    with omnigraph.open(graph.uri) as reopened:
        whole = place == "write.intent_completed"
        assert (reopened.count("Person"), reopened.count("Knows")) == ((1_001, 1_000) if whole else (1, 0))
        assert intents(reopened) == []
        kinds = {each.actor for each in reopened.commits.list()}
        assert RECOVERY_ACTOR in kinds


def test_tasks_that_run_again_or_twice_double_nothing(graph: Graph, large: Path) -> None:
    running = run_apart(graph, large, "local[2,4]", "none")
    with while_a_worker_reads(large, lambda pid: os.kill(pid, signal.SIGKILL)):
        out, err = running.communicate(timeout=250)
    assert (running.returncode, out.strip()) == (0, str(PEOPLE)), err
    assert graph.count("Person") == PEOPLE + 1
    names = graph.export_arrow("Person", columns=["id"]).read_all().column("id")
    assert len(names.unique()) == PEOPLE + 1


@pytest.mark.torture
def test_an_executor_that_is_killed_is_replaced_and_doubles_nothing(graph: Graph, large: Path) -> None:
    def kill_its_parents(pid: int) -> None:
        """The executor: the Java process above the worker and the daemon that made it."""
        daemon = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        executor = int(Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(executor, signal.SIGKILL)

    running = run_apart(graph, large, "local-cluster[2,1,1024]", "none")
    with while_a_worker_reads(large, kill_its_parents):
        out, err = running.communicate(timeout=280)
    assert (running.returncode, out.strip()) == (0, str(PEOPLE)), err
    assert graph.count("Person") == PEOPLE + 1


def test_a_file_system_that_takes_no_more_leaves_nothing(graph: Graph, tmp_path: Path) -> None:
    """A real refusal of the system: no file may grow beyond a few kilobytes."""
    data = tmp_path / "data.jsonl"
    data.write_text(lines(0, 20_000))
    script = (
        "import resource, signal, sys, omnigraph\n"
        "from omnigraph.errors import GraphError\n"
        "graph = omnigraph.open(sys.argv[1])\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))\n"
        "try:\n    graph.load(sys.argv[2], mode='append', engine='local')\n"
        "except GraphError as fault:\n    print('refused', fault.code)\n"
    )
    command = [sys.executable, "-c", script, graph.uri, str(data)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.stdout.startswith("refused"), ended.stderr
    with omnigraph.open(graph.uri) as reopened:
        assert reopened.count("Person") == 1
        assert reopened.load(data, mode="append", engine="local").total_entities == 20_000


ON_A_FULL_DISK = """
import resource, sys
import omnigraph
from omnigraph import limits
from omnigraph.errors import GraphError
from omnigraph.pipeline import session
from omnigraph.pipeline.settings import SparkSettings
limits.LOAD_NEAR_BYTES = -1
uri, data, where = sys.argv[1:]
spark = session.spark_session(SparkSettings(master="local[2]", driver_memory="1g"))
java = session._ours.gateway.process_id
resource.prlimit(java, resource.RLIMIT_FSIZE, (65536, 65536))
try:
    omnigraph.open(uri).load(data, mode="append", spark=spark, dry_run=where == "Spark")
except GraphError as fault:
    print(fault.code, str(fault))
"""


# Where nothing is to be written to the graph, Spark's own files are what there is no room for.
@pytest.mark.parametrize("where", ["graph", pytest.param("Spark", marks=pytest.mark.torture)])
def test_a_disk_that_is_full_for_workers_leaves_nothing_and_says_what_to_do(
    graph: Graph, tmp_path: Path, where: str
) -> None:
    """A real refusal of the system: no file of Spark and its workers may grow beyond some kilobytes."""
    before = head(graph)
    data = tmp_path / "data.jsonl"
    data.write_text(lines(0, 20_000))
    command = [sys.executable, "-c", ON_A_FULL_DISK, graph.uri, str(data), where]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert ended.stdout.startswith("disk_full the disk is full, so nothing was loaded: make room"), ended
    assert (head(graph), intents(graph)) == (before, [])
    with omnigraph.open(graph.uri) as reopened:
        assert reopened.load(data, mode="append", engine="local").total_entities == 20_000


def test_what_spark_says_is_passed_on() -> None:
    error = spark_fault("org.apache.spark.SparkException: Job aborted\nTraceback\nValueError: odd\n\tat org.apache")
    assert str(error).endswith("load again: ValueError: odd")
    assert error.code == "spark_job_failed"
