"""What the numbers say, and what they say a request costs."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from prometheus_client import REGISTRY
from tests.support.served_here import Answered, InProcess

import omnigraph
from omnigraph.api.maintenance import MaintenanceReport
from omnigraph.server import metrics
from omnigraph.server.maintenance import record_pass

INSERT = "query q($n: String) { insert Author { name: $n } }"
ALL = "query q() { match { $a: Author } return { $a.name } }"
RENAME = 'query q($t: String) { update Book set { title: $t } where isbn = "0-1" }'


def number(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def store_requests() -> Counter[str]:
    found: Counter[str] = Counter()
    for family in metrics.STORE_REQUESTS.collect():
        for sample in family.samples:
            if sample.name.endswith("_total"):
                found[sample.labels["kind"]] += int(sample.value)
    return found


def cost(work: Callable[[], Answered]) -> dict[str, int]:
    before = store_requests()
    answer = work()
    assert answer.status_code == 200, answer.text
    return dict(store_requests() - before)


def insert(client: TestClient, name: str) -> Answered:
    return client.post("mutate", json={"query": INSERT, "params": {"n": name}})


def test_a_request_costs_the_store_no_more_than_a_call_in_process(serve: InProcess) -> None:
    client = serve()
    insert(client, "first")
    client.post("query", json={"query": ALL})

    assert cost(lambda: insert(client, "second")) == {"get": 1, "list": 1, "make_durable": 1, "put_if_absent": 1}
    assert cost(lambda: client.post("query", json={"query": ALL})) == {"get": 1}


def test_commits_and_conflicts_are_counted(serve: InProcess) -> None:
    client = serve()
    commits = number("omnigraph_commits_total", graph="library")
    conflicts = number("omnigraph_conflicts_total", graph="library", reason="merge_conflicts")
    client.post("branches", json={"name": "other"})
    for branch in ("main", "other"):
        client.post("mutate", json={"query": RENAME, "params": {"t": branch}, "branch": branch})

    assert client.post("branches/merge", json={"source": "other"}).status_code == 409

    assert number("omnigraph_commits_total", graph="library") == commits + 3
    assert number("omnigraph_conflicts_total", graph="library", reason="merge_conflicts") == conflicts + 1


def test_paths_of_callers_do_not_become_series(serve: InProcess) -> None:
    client = serve()
    for name in ("nothing", "graphs", "x" * 50):
        client.get(name)
        client.get(f"http://testserver/{name}")
        client.request(name.upper(), "schema")

    text = client.get("http://testserver/metrics").text

    assert "nothing" not in text.lower()
    assert "xxxx" not in text.lower()


def test_a_pass_of_maintenance_is_counted_with_what_failed() -> None:
    passes = number("omnigraph_maintenance_passes_total", graph="record_pass")

    record_pass("record_pass", MaintenanceReport(failures=["sweep: the store does not answer"]))

    assert number("omnigraph_maintenance_passes_total", graph="record_pass") == passes + 1
    assert number("omnigraph_maintenance_failures_total", graph="record_pass") == 1


def test_what_a_pass_of_maintenance_finds_damaged_is_counted_and_logged_as_an_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with omnigraph.init(tmp_path / "g", "node Person { name: String @key }") as graph:
        graph.write({"Person": [{"name": "ada"}]})
        next((tmp_path / "g").glob("nodes/*/data/*.lance")).unlink()
        report = graph.maintain_once(omnigraph.Maintenance(optimize=False, sweep=False))

    record_pass("damaged", report)

    assert number("omnigraph_maintenance_damaged_total", graph="damaged") == 1
    assert report.verified is not None
    assert number("omnigraph_maintenance_verified_files_total", graph="damaged") == report.verified.found.files
    assert [record.levelname for record in caplog.records] == ["ERROR"]
