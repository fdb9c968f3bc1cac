"""Which answer an error is."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support import operations as op
from tests.support.operations import PERSON
from tests.support.served_here import Answered, InProcess, refused

from omnigraph import errors
from omnigraph.errors import ConflictError, GraphError
from omnigraph.model.commit import MAIN
from omnigraph.model.conflict import ReadSetChanged
from omnigraph.server.errors import ERROR_TABLE, error_response, find_row
from omnigraph.storage.object_store import OutcomeUnknown, StoreTransient
from omnigraph.testing.clock import ManualClock
from omnigraph.transaction.graph_context import Settings
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.write import write

STATUSES = {
    "InvalidRequestError": 400,
    "ParseError": 400,
    "ConstraintError": 400,
    "NotFoundError": 404,
    "ReclaimedError": 410,
    "ChangeGapError": 410,
    "AlreadyExistsError": 409,
    "ConflictError": 409,
    "MergeConflictError": 409,
    "RevertConflictError": 409,
    "ChangeRefusedError": 409,
    "PreconditionError": 412,
    "OutcomeUnknownError": 503,
    "LimitError": 413,
    "UnavailableError": 503,
    "ClockError": 503,
    "BlobSourceError": 424,
    "PermissionDeniedError": 403,
    "FormatError": 500,
    "InternalError": 500,
}


def classes() -> list[type[GraphError]]:
    return [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, GraphError)]


def test_every_class_of_errors_has_the_status_that_its_chart_says() -> None:
    found = {each.__name__: find_row(each("x")).status for each in classes() if each is not GraphError}

    assert found == STATUSES
    chart = errors.__doc__ or ""
    for name, status in STATUSES.items():
        [line] = [line for line in chart.splitlines() if f" {name} " in line]
        said = [word for word in line.split() if word.isdigit()]
        assert said in ([str(status)], []), line


def test_no_row_of_the_table_hides_behind_another() -> None:
    for number, row in enumerate(ERROR_TABLE):
        assert not any(issubclass(row.error, earlier.error) for earlier in ERROR_TABLE[:number]), row


def test_a_table_at_another_version_than_expected_is_told_in_both_vocabularies(tmp_path: Path) -> None:
    parts = op.new_graph(str(tmp_path / "graph"), settings=Settings(durability="process"), clock=ManualClock())
    write(parts, MAIN, op.upsert_many({PERSON: {"a": 1}}))
    seen = parts.log.live_head(MAIN).tables[PERSON].version
    write(parts, MAIN, op.upsert_many({PERSON: {"b": 2}}))
    now = parts.log.live_head(MAIN).tables[PERSON].version

    with pytest.raises(ConflictError) as lost:
        write(parts, MAIN, op.upsert_many({PERSON: {"c": 3}}), WriteOptions(expected_table_versions={PERSON: seen}))
    status, body = error_response(lost.value)

    kind, _, name = PERSON.partition(":")
    assert (status, body["code"]) == (409, "conflict")
    assert body["manifest_conflict"] == {"table_key": PERSON, "expected": str(seen), "actual": str(now)}
    assert body["published_dataset_version_conflict"] == {
        "entity_kind": kind,
        "type_name": name,
        "expected_published_dataset_version": str(seen),
        "actual_published_dataset_version": str(now),
    }


def test_versions_that_a_request_expects_are_checked_and_told_with_a_conflict(serve: InProcess) -> None:
    client = serve()
    key = "node:Author"

    def version() -> int:
        found = client.get("snapshot").json()["datasets"]
        return int(next(each["published_dataset_version"] for each in found if each["type_name"] == "Author"))

    def sent(versions: object) -> list[Answered]:
        insert = {"query": 'query q() { insert Author { name: "New" } }', "expected_table_versions": versions}
        load = {"data": '{"type":"Author","data":{"name":"New"}}', "expected_table_versions": versions}
        lines: dict[str, Any] = {"params": {"expected_table_versions": json.dumps(versions)}, "content": load["data"]}
        return [
            client.post("mutate", json=insert),
            client.post("change", json=insert),
            client.post("load", json=load),
            client.post("ingest", json=load),
            client.post("load/ndjson", headers={"content-type": "application/x-ndjson"}, **lines),
        ]

    seen = version()
    insert = {"query": 'query q() { insert Author { name: "First" } }', "expected_table_versions": {key: seen}}
    assert client.post("mutate", json=insert).status_code == 200
    now = version()

    for refusal in sent({key: seen}):
        body = refused(refusal, 409, f"{key} is at version {now}, not at {seen}", "conflict")
        assert body["manifest_conflict"] == {"table_key": key, "expected": str(seen), "actual": str(now)}
        # As a text, so that JavaScript and jq can send it back as it came: the numbers have 64 bits.
        actual = body["published_dataset_version_conflict"]["actual_published_dataset_version"]
        assert actual == str(now)
    for wrong in ({"Author": 1}, {key: "one"}, {key: "-1"}, {key: "9" * 21}, {key: 1.5}, [key], "no", {key: True}):
        for answer_ in sent(wrong):
            assert (answer_.status_code, answer_.json()["code"]) == (400, "bad_request"), answer_.text
    assert version() == now
    [done, *_] = sent({key: actual})
    assert done.status_code == 200
    condition = {"Omnigraph-If-Graph-Commit": done.json()["commit"]["graph_commit_id"]}
    refused(client.post("mutate/if-graph-commit", json=insert, headers=condition), 409, f"not at {seen}", "conflict")


def test_a_read_that_somebody_changed_names_the_table_with_both_versions() -> None:
    changed = ReadSetChanged("node:Book", "7", "9")

    _, body = error_response(ConflictError("moved", conflicts=(changed,), code="read_set_conflict"))
    _, of_schema = error_response(ConflictError("moved", conflicts=(ReadSetChanged("schema", "a", "b"),)))

    assert body["read_set_conflict"] == {"member": "node:Book", "expected": "7", "actual": "9"}
    assert body["manifest_conflict"] == {"table_key": "node:Book", "expected": "7", "actual": "9"}
    assert (body["kind"], body["reason"]) == ("ConflictError", "read_set_conflict")
    assert "manifest_conflict" not in of_schema


def test_errors_of_stores_are_told_by_the_class_that_callers_know() -> None:
    assert error_response(StoreTransient("busy", path="x"))[1]["kind"] == "UnavailableError"
    assert error_response(OutcomeUnknown("lost", path="x"))[0] == 503


def test_details_that_say_nothing_are_left_out() -> None:
    status, body = error_response(errors.MergeConflictError("nothing"))

    assert (status, set(body)) == (409, {"error", "code", "kind", "reason"})
