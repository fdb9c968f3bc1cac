"""What the table port asks of an object store: counted at the wire."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from tests.support.s3_proxy import S3Proxy

from omnigraph.model.commit import Pin
from omnigraph.storage.tables.tables import IndexKind, IndexSpec, RowsToStage, Tables

pytestmark = pytest.mark.s3

FIELDS: "list[pa.Field[Any]]" = [pa.field("id", pa.string(), nullable=False), pa.field("age", pa.int64())]
PERSON = pa.schema(FIELDS)
BY_ID = IndexSpec("by_id", "id", IndexKind.BTREE)
ONE_VERSION = Counter({("PUT", "transactions"): 1, ("PUT", "versions"): 1})
DATA = Counter({("PUT", "data"): 1})
DELETION = Counter({("PUT", "deletions"): 1})


def people(ages: Mapping[str, int]) -> pa.Table:
    return pa.table({"id": list(ages), "age": list(ages.values())}, schema=PERSON)


def writes(proxy: S3Proxy) -> Counter[tuple[str, str]]:
    return Counter({what: times for what, times in proxy.counts().items() if what[0] not in {"GET", "HEAD", "LIST"}})


def reads(proxy: S3Proxy) -> int:
    return sum(times for what, times in proxy.counts().items() if what[0] in {"GET", "HEAD", "LIST"})


@pytest.fixture
def remote(s3_proxy: S3Proxy, s3_prefix: str) -> Tables:
    uri = f"s3://omnigraph-tests/{s3_prefix}"
    return Tables(uri, storage_options=s3_proxy.options.as_storage_options())


@pytest.fixture
def plain(remote: Tables) -> Pin:
    """Two hundred people."""
    pin = remote.create("nodes/01PERSON", PERSON)
    everyone = {f"p{number}": number for number in range(200)}
    return remote.stage_rows(pin, RowsToStage(appends=people(everyone))).pin


@pytest.fixture
def base(remote: Tables, plain: Pin) -> Pin:
    """The same with an index that has been used."""
    pin = remote.stage_index(plain, BY_ID).pin
    assert remote.open(pin).rows_with_ids(["p199"]).num_rows == 1
    return pin


def test_a_chain_of_one_row_appends_is_three_puts_each_and_reads_nothing(
    s3_proxy: S3Proxy, remote: Tables, plain: Pin
) -> None:
    pin = plain
    for number in range(5):
        s3_proxy.reset()
        pin = remote.stage_rows(pin, RowsToStage(appends=people({f"new{number}": 1}))).pin
        assert s3_proxy.counts() == DATA + ONE_VERSION
    assert pin.rows == 205


def test_with_an_index_an_append_reads_once_which_segments_there_are(
    s3_proxy: S3Proxy, remote: Tables, base: Pin
) -> None:
    pin = base
    for number in range(5):
        s3_proxy.reset()
        pin = remote.stage_rows(pin, RowsToStage(appends=people({f"new{number}": 1}))).pin
        assert writes(s3_proxy) == DATA + ONE_VERSION
        assert reads(s3_proxy) <= 1


def test_a_one_row_insert_that_is_looked_up_reads_at_most_two(s3_proxy: S3Proxy, remote: Tables, base: Pin) -> None:
    pin = base
    for number in range(5):
        s3_proxy.reset()
        pin = remote.stage_rows(pin, RowsToStage(upserts=people({f"new{number}": 1}))).pin
        assert writes(s3_proxy) == DATA + ONE_VERSION
        assert reads(s3_proxy) <= 2  # the segments there are, and the row that the write before has left unindexed


def test_a_one_row_delete_is_three_puts_and_reads_at_most_two(s3_proxy: S3Proxy, remote: Tables, base: Pin) -> None:
    pin = base
    for number in range(5):
        s3_proxy.reset()
        pin = remote.stage_rows(pin, RowsToStage(deleted_ids=(f"p{number}",))).pin
        assert writes(s3_proxy) == DELETION + ONE_VERSION
        assert reads(s3_proxy) <= 2  # the segments there are, and the deletion vector of the write before


def test_a_one_row_update_is_four_puts_and_reads_at_most_three(s3_proxy: S3Proxy, remote: Tables, base: Pin) -> None:
    pin = base
    for number in range(5):
        s3_proxy.reset()
        pin = remote.stage_rows(pin, RowsToStage(upserts=people({f"p{number}": -1}))).pin
        assert writes(s3_proxy) == DATA + DELETION + ONE_VERSION
        assert reads(s3_proxy) <= 3  # all of the above


def test_a_rebase_writes_no_data_and_reads_at_most_two(s3_proxy: S3Proxy, remote: Tables, base: Pin) -> None:
    staged = remote.stage_rows(base, RowsToStage(upserts=people({"p1": -1}), deleted_ids=("p2",)))
    onto = remote.stage_rows(base, RowsToStage(upserts=people({"p3": -1})))
    s3_proxy.reset()
    rebased = remote.rebase(base, staged.pin, onto.pin)
    assert rebased is not None
    assert writes(s3_proxy) == DELETION + ONE_VERSION
    assert reads(s3_proxy) <= 2  # the segments there are, and the deletion vector that the others wrote


def test_a_pinned_version_is_opened_with_two_requests_and_then_with_none(
    s3_proxy: S3Proxy, remote: Tables, base: Pin, s3_prefix: str
) -> None:
    other = Tables(f"s3://omnigraph-tests/{s3_prefix}", storage_options=s3_proxy.options.as_storage_options())
    s3_proxy.reset()
    other.open(base)
    assert reads(s3_proxy) <= 2
    s3_proxy.reset()
    assert other.open(base).count() == 200
    assert s3_proxy.counts() == Counter()


def test_a_write_that_changes_nothing_writes_nothing(s3_proxy: S3Proxy, remote: Tables, base: Pin) -> None:
    s3_proxy.reset()
    assert remote.stage_rows(base, RowsToStage(deleted_ids=("nobody",))).is_unchanged
    assert writes(s3_proxy) == Counter()


def test_everything_works_on_an_object_store(remote: Tables, base: Pin) -> None:
    pin = remote.stage_rows(base, RowsToStage(upserts=people({"p1": -1, "new": 5}), deleted_ids=("p2",))).pin
    pin = remote.stage_index_delta(pin, BY_ID).pin
    pin = remote.stage_columns(pin, renamed={"age": "years"}, added=[pa.field("more", pa.string())]).pin
    pin = remote.stage_compaction(pin, [BY_ID]).pin
    pin = remote.fold_index(pin, BY_ID).pin
    found = remote.open(pin).rows_with_ids(["p1", "p2", "new"]).sort_by("id").to_pylist()
    assert found == [{"id": "new", "years": 5, "more": None}, {"id": "p1", "years": -1, "more": None}]
    assert remote.open(pin).layout().fragments == 1
    assert all(name.startswith("nodes/01PERSON/") for name in remote.files(pin))
